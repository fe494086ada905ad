"""The stages of a DVC pipeline and its artifacts: writing them, and what stages depend on in
`tfrecreg.toml`.

- `run`: the operation: `dvc.yaml` as it should be
- `stages`: the stages and the artifact of one dataset, as text
- `document`: putting them into a `dvc.yaml` that may hold others
- `policy`: the part of `tfrecreg.toml` that one dataset's stages depend on, as DVC's parameters

Nothing here imports DVC: the pipeline can be written, and held against the registry in CI, without.
"""

from __future__ import annotations

from tfrecreg.operations.pipeline.policy import next_expiry, policy_of, write_policy
from tfrecreg.operations.pipeline.run import Changes, PipelineResult, pipeline

__all__ = ["Changes", "PipelineResult", "next_expiry", "pipeline", "policy_of", "write_policy"]

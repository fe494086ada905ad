"""The stages of a DVC pipeline and its artifacts.

- `run`: the operation: `dvc.yaml` as it should be
- `stages`: the stages and the artifact of one dataset, and the settings that they depend on
- `dvc_yaml`: putting them into a `dvc.yaml` that may hold others

Nothing here imports DVC: writing the pipeline, and checking it in CI, works without it.
"""

"""Releasing a build: checked, frozen, numbered.

- `number`: the number, which must not say less than what changed
- `run`: the operation: gate, number, bytes, one rename
"""

from __future__ import annotations

from tfrecreg.operations.release.run import ReleaseRequest, ReleaseResult, release

__all__ = ["ReleaseRequest", "ReleaseResult", "release"]

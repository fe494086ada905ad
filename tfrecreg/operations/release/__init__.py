"""Releasing a build: checked, frozen, numbered.

- `number`: the number, which must not say less than what changed
- `run`: the operation: gate, number, bytes, one rename
- `publish`: a build and its release in one go
"""

from __future__ import annotations

from tfrecreg.operations.release.publish import publish
from tfrecreg.operations.release.run import ReleaseRequest, ReleaseResult, release

__all__ = ["ReleaseRequest", "ReleaseResult", "publish", "release"]

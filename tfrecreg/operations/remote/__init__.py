"""Releases in DVC's remotes: sent there, brought back, and what nobody refers to any more.

- `push`: the bytes of releases to a remote
- `pull`: the bytes of a release to `versions/`, every one of them verified
- `gc`: what may go from this machine
"""

from __future__ import annotations

from tfrecreg.operations.remote.gc import Doomed, gc
from tfrecreg.operations.remote.pull import PullResult, pull
from tfrecreg.operations.remote.push import PushResult, push

__all__ = ["Doomed", "PullResult", "PushResult", "gc", "pull", "push"]

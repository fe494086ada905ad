"""Releases in DVC's remotes, and what may be removed.

- `transfer`: push the bytes of releases to a remote, and pull them into `versions/`, verified
- `garbage`: remove what nothing refers to
- `bucket_folders`: builds in buckets that nothing refers to
"""

from __future__ import annotations

from tfrecreg.operations.remote.garbage import Doomed, gc
from tfrecreg.operations.remote.transfer import PullResult, PushResult, pull, push

__all__ = ["Doomed", "PullResult", "PushResult", "gc", "pull", "push"]

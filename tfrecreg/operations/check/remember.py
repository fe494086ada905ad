"""Where checks remember what they found in shards: on this machine only."""

from __future__ import annotations

import os
from pathlib import Path

from tfrecreg.registry import Registry, layout
from tfrecreg.scan import ScanCache
from tfrecreg.storage import LocalStorage

__all__ = ["scan_cache"]


def scan_cache(registry: Registry | None, *, reuse: bool) -> ScanCache | None:
    """The entries of a registry, or of this user where there is none; None where that is nowhere.

    Args:
        registry: has them in ``.tfrecreg/cache/checks``. Without one they are in
            ``tfrecreg/checks`` below `XDG_CACHE_HOME` or ``~/.cache``.
        reuse: whether to reuse them, and to make new ones; else they are kept up to date only.
    """
    if registry is not None:
        return ScanCache(registry.storage, layout.CHECKS, reuse=reuse)
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not folder.startswith("/"):  # the specification: relative paths are to be ignored
        try:
            folder = str(Path.home() / ".cache")
        except RuntimeError:
            return None
    return ScanCache(LocalStorage(folder), "tfrecreg/checks", reuse=reuse)

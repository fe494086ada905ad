"""Sound copies of damaged files, from other places that have them."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tfrecreg.core.registry import layout
from tfrecreg.core.registry.history.verify import copy_verified
from tfrecreg.core.registry.keeper import tracker
from tfrecreg.core.registry.lookup import Release, Resolved
from tfrecreg.core.storage.interface import Readable, Storage
from tfrecreg.core.values.errors import RefusedError, StorageError
from tfrecreg.core.values.progress import Progress


def take(
    resolved: Resolved, here: Readable, paths: Collection[str], stage: Storage, progress: Progress
) -> list[str]:
    """Copy files from other copies on this machine, and DVC. Each is hashed."""
    taken = []
    for path in sorted(paths):
        for place in _places(resolved, here):
            try:
                copy_verified(place, stage, resolved.manifest.entries[path])
            except (StorageError, RefusedError):
                continue
            taken.append(path)
            break
    left = sorted(set(paths) - set(taken))
    if left:
        taken += tracker().supply(resolved.dataset, resolved.manifest, left, stage, progress)
    return taken


def _places(resolved: Resolved, here: Readable) -> Iterator[Readable]:
    storage = resolved.registry.storage
    folders = [layout.build_folder(resolved.dataset.name)]
    if isinstance(resolved, Release):
        folders.append(layout.version_folder(resolved.dataset.name, resolved.version))
    places = (storage.below(folder) for folder in folders)
    return (each for each in places if each.root != here.root)

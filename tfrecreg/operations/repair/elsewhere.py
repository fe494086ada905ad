"""Sound files of what is to be repaired, from the other places that have them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from tfrecreg.errors import FailureError, RefusedError, StorageError
from tfrecreg.operations.remote.releases import files_of
from tfrecreg.operations.remote.transfer import bring
from tfrecreg.progress import Progress
from tfrecreg.records.hashing import hash_file
from tfrecreg.registry import layout
from tfrecreg.registry.lookup import Release, Resolved
from tfrecreg.storage.interface import Readable, Storage
from tfrecreg.storage.locations import store_at
from tfrecreg.storage.verified_copy import copy_verified
from tfrecreg.tracking import dvc


def take(
    resolved: Resolved, here: Readable, paths: Collection[str], stage: Storage, progress: Progress
) -> list[str]:
    """Copy files from other copies on this machine, the bucket, and DVC. Each is hashed.

    Args:
        resolved: the build or release.
        here: the place that lacks the files.
        paths: of the files, without the manifest.
        stage: where to.
        progress: receives notes about places that cannot be read.

    Returns:
        the files that were found, in order.
    """
    expected = files_of(resolved.manifest)
    taken = []
    for path in sorted(paths):
        size, digest = expected[path]
        for place in _places(resolved, here):
            try:
                copy_verified(place, stage, path, size, digest)
            except (StorageError, RefusedError):
                continue
            taken.append(path)
            break
    left = sorted(set(paths) - set(taken))
    if left and kept_in_dvc(resolved):
        taken += _from_dvc(resolved, left, stage, progress)
    return taken


def _places(resolved: Resolved, here: Readable) -> Iterator[Readable]:
    storage = resolved.registry.storage
    folders = [layout.build_folder(resolved.dataset.name)]
    if isinstance(resolved, Release):
        folders.append(layout.version_folder(resolved.dataset.name, resolved.version))
    places: list[Readable] = [storage.below(folder) for folder in folders]
    if resolved.location is not None:
        places.append(store_at(resolved.location))
    return (each for each in places if each.root != here.root)


def kept_in_dvc(resolved: Resolved) -> bool:
    """Whether it is a release whose bytes DVC keeps, and DVC is here."""
    release = resolved.manifest.release
    root = resolved.registry.storage.root
    return (
        release is not None
        and release.dvc is not None
        and dvc.available()
        and dvc.initialised(root)
    )


def _from_dvc(
    resolved: Resolved, paths: Collection[str], stage: Storage, progress: Progress
) -> list[str]:
    assert isinstance(resolved, Release)
    root = resolved.registry.storage.root
    try:
        with dvc.locked(root, partial(progress.note, "waiting for DVC")):
            bring(resolved, paths, stage, None, progress, required=False)
    except (FailureError, RefusedError) as error:
        progress.note(f"DVC does not help: {error.message}")
    expected = files_of(resolved.manifest)
    found = []
    for path in paths:
        if stage.stat(path) is None:
            continue
        if hash_file(stage, path) == expected[path]:
            found.append(path)
        else:
            stage.remove(path)
    return found

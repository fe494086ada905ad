"""Files that belong to a build and are not in its folder: published with it, or not at all.

The schema of a first build is one. It is put before the folder, so that no build is seen without
it. A note in the stage says which files these are; where the folder did not follow, whoever holds
the lock next removes them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from blake3 import blake3

from tfrecreg.core.registry.manifest.model import Manifest
from tfrecreg.core.registry.registry import Dataset
from tfrecreg.core.values.documents import read_note, render_note
from tfrecreg.core.values.errors import ManifestError, NewerFormatError

_NOTE = "beside.json"


class _Note(msgspec.Struct, frozen=True):
    manifest: str
    """Digest of the manifest of the build."""
    files: dict[str, str]
    """Path to blake3, of the files that were missing."""


@contextlib.contextmanager
def published_with(
    dataset: Dataset,
    stage: str,
    manifest: Manifest,
    files: Mapping[str, bytes],
    tried: Callable[..., Any],
) -> Iterator[None]:
    """Put files that are missing, and remove them again unless the block publishes the build."""
    storage = dataset.registry.storage
    missing = {path: data for path, data in files.items() if storage.stat(path) is None}
    if not missing:
        yield
        return
    try:
        digests = {path: blake3(data).hexdigest() for path, data in missing.items()}
        with storage.create(f"{stage}/{_NOTE}") as writer:
            writer.write(render_note(_Note(manifest.digest, digests)))
        for path, data in missing.items():
            storage.put_if_absent(path, data)
        yield
    finally:
        tried(settle_beside, dataset, stage)


def settle_beside(dataset: Dataset, stage: str) -> None:
    """Remove files that were put for a build that was not published."""
    storage, place = dataset.registry.storage, f"{stage}/{_NOTE}"
    if storage.stat(place) is None:
        return
    try:
        note = read_note(storage.read(place), _Note)
    except ValueError:
        note = _Note("", {})  # not ours: no file is recorded
    if not _is_published(dataset, note.manifest):
        for path, digest in note.files.items():
            if storage.stat(path) is not None and blake3(storage.read(path)).hexdigest() == digest:
                storage.remove(path)
    storage.remove(place)


def _is_published(dataset: Dataset, digest: str) -> bool:
    try:
        found = dataset.build_manifest()
    except (ManifestError, NewerFormatError):
        return False
    return found is not None and found.digest == digest

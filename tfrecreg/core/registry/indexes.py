"""The indexes of a build or release: beside its shards, or kept when it was released."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from blake3 import blake3

from tfrecreg.core.records.index import INDEX_LIMIT
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest.model import FileEntry, Manifest
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import (
    ManifestError,
    MissingFileError,
    NewerFormatError,
    StorageError,
)

IndexPlace: TypeAlias = tuple[Readable, str]
"""Possible places of an index: a storage, and the path there."""


def index_places(registry: Registry, folder: str | None, entry: FileEntry) -> list[IndexPlace]:
    """Possible places of the index in the registry, the most reliable first."""
    kept = (registry.storage, layout.cached_index(entry.blake3))
    return [kept] if folder is None else [kept, (registry.storage, f"{folder}/{entry.path}")]


def find_index(places: Iterable[IndexPlace], entry: FileEntry) -> tuple[str, bytes] | None:
    """An index: its path in its storage and its bytes. None where no file has its digest."""
    refused: StorageError | None = None
    for storage, place in places:
        try:
            data = storage.read(place, limit=INDEX_LIMIT)
        except MissingFileError:
            continue
        except StorageError as error:
            refused = error
            continue
        if blake3(data).hexdigest() == entry.blake3:
            return place, data
    if refused is not None:
        raise refused
    return None


def keep_indexes_of_release(dataset: Dataset) -> None:
    """Keep the indexes of a build that is a release, before another one takes its place.

    If DVC or a person copied the build, they may be nowhere else, and the next release is compared
    with them.
    """
    registry = dataset.registry
    try:
        build = dataset.build_manifest()
        if build is None:
            return
        wanted = {shard.index for shard in build.shards}
        lost = [
            entry
            for entry in build.files
            if entry.path in wanted
            and registry.storage.stat(layout.cached_index(entry.blake3)) is None
        ]
        if not lost or not _is_released(dataset, build):
            return
    except (ManifestError, NewerFormatError):
        return  # a damaged index is not compared
    for entry in lost:
        places = index_places(registry, layout.build_folder(dataset.name), entry)
        found = find_index(places, entry)
        if found is not None:
            registry.storage.put_if_absent(layout.cached_index(entry.blake3), found[1])


def _is_released(dataset: Dataset, build: Manifest) -> bool:
    for version in reversed(dataset.versions):
        release = dataset.release_manifest(version).release
        if release is not None and release.build == build.digest:
            return True
    return False

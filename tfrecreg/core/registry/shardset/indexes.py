"""The indexes of a build or release: beside its shards, or kept when it was released.

The names of the files of catalogs, and which of them no build and no release needs.

Below the folder of catalogs are

- ``places/``: a note for each shard file: its size, time and inode, and the digest of its bytes
- ``shards/``: a Parquet file of the records of each shard, and one of their objects if there are
  any, named by the digests of the shard and of the index that has its keys
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from typing import TypeAlias

import msgspec
from blake3 import blake3

from tfrecreg.core.records.index import INDEX_LIMIT
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import FileEntry, Manifest
from tfrecreg.core.registry.registry import Dataset, Registry
from tfrecreg.core.storage.interface import Entry, Readable
from tfrecreg.core.storage.writer import is_temporary
from tfrecreg.core.values.documents import read_note
from tfrecreg.core.values.errors import (
    ManifestError,
    MissingFileError,
    NewerFormatError,
    StorageError,
    TfrecregError,
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


CATALOG_FORMAT = 4
"""Of the files and of what is in them. A new number discards all catalogs."""
CATALOGS = f"{layout.STATE}/cache/catalogs"
"""Their folder in a registry."""
_SUFFIXES = (f"-{CATALOG_FORMAT}.parquet", f"-{CATALOG_FORMAT}-objects.parquet")
_NOTE_LIMIT = 1 << 16


class FileStamp(msgspec.Struct, frozen=True):
    """What identifies the bytes of a file without reading them."""

    size: int
    mtime_ns: int
    inode: int


class PlaceNote(msgspec.Struct, frozen=True):
    """What is known of the file of a shard."""

    state: FileStamp
    shard: str
    """Hex blake3 of the bytes."""


def note_path(place: str) -> str:
    """Path of the note about a file, named by its absolute path or URL."""
    name = blake3(os.fsencode(place)).hexdigest(16)
    return f"places/{name[:2]}/{name[2:]}.json"


def read_place(place: Readable, path: str) -> PlaceNote | None:
    """A note; None where it is missing or damaged."""
    try:
        return read_note(place.read(path, limit=_NOTE_LIMIT), PlaceNote)
    except (TfrecregError, ValueError):
        return None


def catalog_paths(shard: str, index: str) -> tuple[str, str]:
    """Paths of the files of records and of objects, by digests; that of an index may be empty."""
    records, objects = (f"shards/{shard[:2]}/{shard}-{index}{suffix}" for suffix in _SUFFIXES)
    return records, objects


def unreferenced(place: Readable, shards: Collection[str]) -> Iterator[Entry]:
    """The files of catalogs of other shards than these, of other formats, and damaged notes."""
    for entry in place.list(""):
        folder, _, rest = entry.path.partition("/")
        if entry.kind != "file" or is_temporary(entry.path):
            continue
        if folder == "places":
            note = read_place(place, entry.path)
            is_needed = note is not None and note.shard in shards
        else:
            shard = os.path.basename(rest).partition("-")[0]  # noqa: PTH119 - no path of this system
            is_needed = shard in shards and rest.endswith(_SUFFIXES)
        if not is_needed:
            yield entry

"""Finds the indexes of a build or release, and the files in the catalogs of queries.

The folder of catalogs has

- ``places/``: a note for each shard file: its size, time and inode, and the digest of its bytes
- ``shards/``: for each shard, a Parquet file with its records, and another with its objects if it
  has any. The name of each file consists of two digests: the digest of the shard, and the digest of
  the index that has the keys of the records.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
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


def index_places(registry: Registry, folder: str | None, entry: FileEntry) -> list[IndexPlace]:
    """Possible places of the index `entry` in the registry, the most reliable first."""
    kept = (registry.storage, layout.cached_index(entry.blake3))
    return [kept] if folder is None else [kept, (registry.storage, f"{folder}/{entry.path}")]


def find_index(places: Iterable[IndexPlace], entry: FileEntry) -> tuple[str, bytes] | None:
    """The path of an index in its storage, and its bytes. None if no place has the right bytes."""
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
    """Before another build replaces a released build, keep the indexes of the released build,
    because the next release is compared with these indexes. If the released build was copied to
    this machine, the build's folder may have the only copy of the indexes.
    """
    registry = dataset.registry
    lost: list[FileEntry] = []
    with suppress(ManifestError, NewerFormatError):  # a damaged index is not used for comparisons
        build = dataset.build_manifest()
        missing = [] if build is None else list(indexes_not_kept(registry, build))
        releases = (dataset.release_manifest(each).release for each in reversed(dataset.versions))
        if build is not None and missing:
            is_released = build.digest in (each.build for each in releases if each)
            lost = missing if is_released else []
    for entry in lost:
        places = index_places(registry, layout.build_folder(dataset.name), entry)
        found = find_index(places, entry)
        if found is not None:
            registry.storage.put_if_absent(layout.cached_index(entry.blake3), found[1])


def indexes_not_kept(registry: Registry, build: Manifest) -> Iterator[FileEntry]:
    """The indexes of a build, except those of which the registry has a copy."""
    wanted = {shard.index for shard in build.shards}
    for entry in build.files:
        kept = layout.cached_index(entry.blake3)
        if entry.path in wanted and registry.storage.stat(kept) is None:
            yield entry


CATALOG_FORMAT = 5
"""The format of catalog files and their content. A new number discards all catalogs."""
CATALOGS = f"{layout.STATE}/cache/catalogs"
_SUFFIXES = (f"-{CATALOG_FORMAT}.parquet", f"-{CATALOG_FORMAT}-objects.parquet")
_NOTE_LIMIT = 1 << 16


class FileStamp(msgspec.Struct, frozen=True):
    """Facts that identify a file's bytes without reading them."""

    size: int
    mtime_ns: int
    inode: int


class PlaceNote(msgspec.Struct, frozen=True):
    """The known facts about the file of a shard."""

    state: FileStamp
    shard: str


def note_path(place: str) -> str:
    """Path of the note about a file; its name is made from the file's absolute path or URL."""
    name = blake3(os.fsencode(place)).hexdigest(16)
    return f"places/{name[:2]}/{name[2:]}.json"


def read_place(place: Readable, path: str) -> PlaceNote | None:
    """The note about a file; None if it is missing or damaged."""
    try:
        return read_note(place.read(path, limit=_NOTE_LIMIT), PlaceNote)
    except (TfrecregError, ValueError):
        return None


def catalog_paths(shard: str, index: str) -> tuple[str, str]:
    """The paths of a shard's two catalog files, one for records and one for objects. `shard` and
    `index` are the digests of the shard and of its index; `index` may be empty.
    """
    records, objects = (f"shards/{shard[:2]}/{shard}-{index}{suffix}" for suffix in _SUFFIXES)
    return records, objects


def unreferenced(place: Readable, shards: Collection[str]) -> Iterator[Entry]:
    """Notes and catalog files that none of `shards` needs, including damaged notes."""
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

"""The files of catalogs: in ``.tfrecreg/cache/catalogs`` of a registry, and for files of no
registry in ``tfrecreg/catalogs`` of the user's cache.

`tfrecreg.core.registry.indexes` has their names. A file with the name of a catalog is that catalog:
files get their names when they are complete. One that cannot be opened is removed. As in git's
index, no note is kept of a file that was changed less than two seconds before it was read: its time
might not show the next change.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import msgspec

from tfrecreg.builtin.query.packages import arrow_module, parquet
from tfrecreg.builtin.query.rows import CatalogEntry, read_entry
from tfrecreg.builtin.query.visitor import CatalogPart
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.registry.indexes import (
    CATALOGS,
    FileStamp,
    PlaceNote,
    catalog_paths,
    note_path,
    read_place,
)
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage, user_cache
from tfrecreg.core.values.errors import StorageError, TfrecregError

_RACY_NS = 2_000_000_000
_GLOB = frozenset("*?[]{}")


class KeptCatalog(NamedTuple):
    """A catalog with the absolute paths of its files."""

    entry: CatalogEntry
    records: str
    objects: str
    """This file exists if the entry says so."""


def kept_in(place: Storage, part: CatalogPart) -> KeptCatalog:
    """Write a catalog to a folder. Its file of records comes last: it is the catalog."""
    records, objects = catalog_paths(part.entry.shard, part.entry.index)
    for path, data in ((objects, part.objects), (records, part.records)):
        if data:
            with place.create(path, durable=False) as writer:
                writer.write(data)
    return KeptCatalog(part.entry, f"{place.root}/{records}", f"{place.root}/{objects}")


def is_readable(path: str) -> bool:
    """Whether a Parquet file can be read to its end."""
    try:
        parquet().read_table(path)
    except (OSError, arrow_module().ArrowException):
        return False
    return True


def remove_files(paths: Iterable[str]) -> None:
    """Remove files that are of no use."""
    for path in paths:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 - a path is text


def state_of(shard: Shard) -> FileStamp | None:
    """The state of the file of a shard now; None where it cannot identify the bytes.

    A web server may send neither time nor ETag: then a change would not show.
    """
    try:
        entry = shard.storage.stat(shard.path, follow="all")
    except TfrecregError:
        return None
    if entry is None or entry.kind != "file" or entry.mtime_ns <= 0:
        return None
    return FileStamp(entry.size, entry.mtime_ns, entry.inode)


def is_settled(state: FileStamp, since: int) -> bool:
    """Whether a file had not changed for a while at the time `since`, in nanoseconds."""
    return since - state.mtime_ns >= _RACY_NS


class CatalogCache:
    """The catalogs that are kept for a target: in its registry, else in the user's cache.

    Where neither can be written, or none are to be kept, they are in a temporary folder until
    :meth:`close`.
    """

    def __init__(self, target: Target, *, keeps: bool = True) -> None:
        places: list[Storage | None] = [
            target.home.below(CATALOGS)
            if target.home is not None and target.home.is_local
            else None
        ]
        cache = user_cache()
        if places == [None] or not _is_writable(places[0]):
            places.append(cache.below("tfrecreg/catalogs") if cache is not None else None)
        plain = (each for each in places if each is not None and _is_plain(each.root))
        self._places = [*plain] if keeps else []
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove what is temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def known_digest(self, shard: Shard, state: FileStamp | None) -> str:
        """The digest of the bytes of a file in this state; empty where it is not known."""
        for place in self._places if state is not None else ():
            note = read_place(place, _note_path(shard))
            if note is not None and note.state == state:
                return note.shard
        return ""

    def note_digest(self, shard: Shard, state: FileStamp, digest: str) -> None:
        """Remember the digest of the bytes of a file."""
        note = msgspec.json.encode(PlaceNote(state, digest))
        for place in self._places:
            with suppress(StorageError), place.create(_note_path(shard), durable=False) as writer:
                writer.write(note)
                return

    def recall(self, digest: str, index: str) -> KeptCatalog | None:
        """The catalog of the bytes with these digests; None if it is missing or damaged."""
        for place in self._places if digest else ():
            paths = catalog_paths(digest, index)
            records, objects = (f"{place.root}/{path}" for path in paths)
            if not _is_file(place, paths[0]):
                continue
            try:
                entry = read_entry(records)
                if entry.has_objects:
                    parquet().read_metadata(objects)
            except (OSError, ValueError, arrow_module().ArrowException):
                remove_files((records, objects))
                continue
            return KeptCatalog(entry, records, objects)
        return None

    def keep(self, part: CatalogPart) -> KeptCatalog:
        """Keep the catalog of a shard."""
        for place in self._writable():
            try:
                return kept_in(place, part)
            except StorageError:
                if self._temporary is not None and place.root == self._temporary.name:
                    raise
        raise AssertionError("the temporary folder is the last one")

    def _writable(self) -> Iterator[Storage]:
        yield from self._places
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="tfrecreg-catalogs-")
        yield LocalStorage(self._temporary.name)


def _is_plain(path: str) -> bool:
    """Whether DuckDB takes a path for itself, not for a glob, and can be told it at all."""
    return path.isprintable() and not _GLOB & set(path)


def _is_writable(place: Storage | None) -> bool:
    """Whether its nearest existing folder may be written."""
    if place is None:
        return False
    folder = place.root
    while not os.path.isdir(folder):  # noqa: PTH112 - a root is text
        folder = os.path.dirname(folder)  # noqa: PTH120
    return os.access(folder, os.W_OK)


def _is_file(place: Storage, path: str) -> bool:
    with suppress(TfrecregError):
        found = place.stat(path)
        return found is not None and found.kind == "file"
    return False


def _note_path(shard: Shard) -> str:
    return note_path(f"{shard.storage.root}/{shard.path}")

"""The files of catalogs: in ``.tfrecreg/cache/catalogs`` of a registry, and for files of no
registry in ``tfrecreg/catalogs`` of the user's cache.

`tfrecreg.registry.catalogs` has their names. Before a file is used, all of its bytes are read for
its CRC32C, a tenth of the work of the digest in its name; damaged files are made again. As in git's
index, no note is kept of a file that was changed less than two seconds before it was read: its time
might not show the next change.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

import google_crc32c
import msgspec
from blake3 import blake3

from tfrecreg.builtin.query.chunks import PartFile
from tfrecreg.builtin.query.visitor import CatalogPart
from tfrecreg.errors import StorageError, TfrecregError
from tfrecreg.records.hashing import hash_file
from tfrecreg.registry.catalogs import CATALOGS, part_path, put_note, read_kept
from tfrecreg.scan.interface import Shard, Target
from tfrecreg.storage.interface import Storage
from tfrecreg.storage.local import LocalStorage, user_cache

CATALOG_FORMAT = 3
"""Of the files and of what is in them. A new number discards all catalogs."""
_RACY_NS = 2_000_000_000
_GLOB = frozenset("*?[]{}")
_PIECE = 1 << 17
"""Bytes that are read at once: few enough to stay in a cache of the processor."""
_WORTH_THREADS = 1 << 28
"""Bytes of catalogs above which threads gain more than their start costs."""


class FileStamp(msgspec.Struct, frozen=True):
    """What identifies the bytes of a file without reading them."""

    size: int
    mtime_ns: int
    inode: int


class CatalogEntry(msgspec.Struct, frozen=True):
    """The catalog of the bytes of one shard."""

    format: int
    shard: str
    """Hex blake3 of the bytes of the shard."""
    index: str
    """Hex blake3 of the index that has the keys; empty without one."""
    records: int
    faults: int
    """Damaged places, whose records are left out."""
    left_out: tuple[str, ...]
    """Features without columns."""
    parts: tuple[PartFile, ...]


class _Note(msgspec.Struct, frozen=True):
    format: int
    state: FileStamp
    shard: str
    """Hex blake3 of the bytes."""


class KeptCatalog(NamedTuple):
    """A catalog with its place."""

    entry: CatalogEntry
    place: Storage
    """The folder of its Parquet files."""

    def path(self, part: PartFile) -> str:
        """Absolute path of one of its files."""
        return f"{self.place.root}/{part_path(part.blake3)}"


def catalog_entry(part: CatalogPart) -> CatalogEntry:
    """The entry of a catalog that was made."""
    return CatalogEntry(
        format=CATALOG_FORMAT,
        shard=part.shard,
        index=part.index_digest,
        records=part.records,
        faults=part.faults,
        left_out=part.left_out,
        parts=tuple(made for made, _ in part.files),
    )


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

    Where neither can be written, they are in a temporary folder until :meth:`close`.
    """

    def __init__(self, target: Target) -> None:
        places: list[Storage | None] = [
            target.home.below(CATALOGS)
            if target.home is not None and target.home.is_local
            else None
        ]
        cache = user_cache()
        if places == [None] or not _is_writable(places[0]):
            places.append(cache.below("tfrecreg/catalogs") if cache is not None else None)
        self._places = [each for each in places if each is not None and _is_plain(each.root)]
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove what is temporary."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def known_digest(self, shard: Shard, state: FileStamp | None) -> str:
        """The digest of the bytes of a file in this state; empty where it is not known."""
        for place in self._places if state is not None else ():
            note = read_kept(place, _place_path(shard), _Note)
            if note is not None and note.format == CATALOG_FORMAT and note.state == state:
                return note.shard
        return ""

    def note_digest(self, shard: Shard, state: FileStamp, digest: str) -> None:
        """Remember the digest of the bytes of a file."""
        self._write(_place_path(shard), _Note(CATALOG_FORMAT, state, digest))

    def recall_each(
        self, named: Sequence[tuple[str, str]], threads: int
    ) -> list[KeptCatalog | None]:
        """The catalogs of the bytes with these digests; None if one is missing or damaged."""
        known = [list(self._entries(*each)) for each in named]
        size = sum(part.bytes for each in known for kept in each for part in kept.entry.parts)
        if threads < 2 or size < _WORTH_THREADS:
            return list(map(_first_sound, known))
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(_first_sound, known))

    def _entries(self, digest: str, index: str) -> Iterator[KeptCatalog]:
        for place in self._places if digest else ():
            entry = read_kept(place, _entry_path(digest, index), CatalogEntry)
            expected = CATALOG_FORMAT, digest, index
            if entry is not None and (entry.format, entry.shard, entry.index) == expected:
                yield KeptCatalog(entry, place)

    def keep(self, part: CatalogPart) -> KeptCatalog:
        """Keep the catalog of a shard."""
        entry = catalog_entry(part)
        for place in self._writable():
            try:
                for made, data in part.files:
                    if not _is_sound(place, made):
                        with place.create(part_path(made.blake3), durable=False) as writer:
                            writer.write(data)
                put_note(place, _entry_path(part.shard, part.index_digest), entry)
            except StorageError:
                if self._temporary is not None and place.root == self._temporary.name:
                    raise
                continue
            return KeptCatalog(entry, place)
        raise AssertionError("the temporary folder is the last one")

    def _writable(self) -> Iterator[Storage]:
        yield from self._places
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="tfrecreg-catalogs-")
        yield LocalStorage(self._temporary.name)

    def _write(self, path: str, value: object) -> None:
        for place in self._places:
            try:
                put_note(place, path, value)
            except StorageError:
                continue
            return


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


def _first_sound(known: Sequence[KeptCatalog]) -> KeptCatalog | None:
    """The first of some catalogs of the same bytes whose files are as they were written."""
    for kept in known:
        if all(_is_sound(kept.place, part) for part in kept.entry.parts):
            return kept
    return None


def _is_sound(place: Storage, part: PartFile) -> bool:
    path = part_path(part.blake3)
    with suppress(TfrecregError):
        found = place.stat(path)
        if found is None or found.kind != "file" or found.size != part.bytes:
            return False
        if google_crc32c.implementation == "c":
            return _crc32c(place, path) == part.crc32c
        return hash_file(place, path)[1] == part.blake3
    return False


def _crc32c(place: Storage, path: str) -> int:
    crc = position = 0
    with place.open(path) as reader:
        while piece := reader.read_at(position, _PIECE):
            crc = google_crc32c.extend(crc, piece)
            position += len(piece)
    return crc


def _place_path(shard: Shard) -> str:
    name = blake3(os.fsencode(f"{shard.storage.root}/{shard.path}")).hexdigest(16)
    return f"places/{name[:2]}/{name[2:]}.json"


def _entry_path(digest: str, index: str) -> str:
    name = blake3(f"{CATALOG_FORMAT} {digest} {index}".encode()).hexdigest()
    return f"shards/{name[:2]}/{name[2:]}.json"

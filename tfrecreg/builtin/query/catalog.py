"""The catalogs of all shards of a target: from the cache, or made in a pass over the bytes.

`tfrecreg.core.registry.shardset.indexes` has their names. A file with such a name is that catalog:
files get their names when they are complete. One that cannot be opened is removed. As in git's
index, no note is kept of a file that was changed less than two seconds before it was read: its time
might not show the next change.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import msgspec

from tfrecreg.builtin.query.cells import arrow_module, expect_packages, parquet
from tfrecreg.builtin.query.rows import CatalogEntry, CatalogPart, CatalogVisitor, read_entry
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.check.scan.run import Crashed, ScanTask, ShardScan, scan_shard
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.records.hashing import hash_file
from tfrecreg.core.registry.shardset.indexes import (
    CATALOGS,
    FileStamp,
    PlaceNote,
    catalog_paths,
    note_path,
    read_place,
)
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage, user_cache
from tfrecreg.core.values.errors import FailureError, NoShardsError, StorageError, TfrecregError
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine

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


T = TypeVar("T")
R = TypeVar("R")

_WORTH_WORKERS = 64 << 20
"""Bytes of shards above which workers gain more than their start costs."""


class ShardCatalog(NamedTuple):
    """The catalog of one shard of a target."""

    shard: Shard
    kept: KeptCatalog
    state: FileStamp | None
    """Of the file, when its digest was found out."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    shard: Shard
    state: FileStamp | None
    since: int


def catalogs_of(
    target: Target, cache: CatalogCache, engine: Engine, progress: Progress
) -> list[ShardCatalog]:
    """The catalogs of the shards of a target, in their order.

    A catalog is used for a file whose state a note knows, or whose digest is computed now. All
    others are made.
    """
    expect_packages()
    indexes = _index_digests(target)
    found: dict[int, ShardCatalog] = {}
    wanted: dict[int, _Wanted] = {}
    doubtful: dict[int, tuple[_Wanted, KeptCatalog]] = {}
    for number, shard in enumerate(target.shards):
        since, state = time.time_ns(), state_of(shard)
        each = _Wanted(shard, state, since)
        digest, index = cache.known_digest(shard, state), indexes.get(shard.index or "", "")
        listed = shard.entry.blake3 if shard.entry is not None else ""
        kept = cache.recall(digest or listed, index)
        if kept is None:
            wanted[number] = each
        elif digest:
            found[number] = ShardCatalog(shard, kept, state)
        else:
            # The bytes that the manifest names have a catalog: reading their digest is quicker.
            doubtful[number] = each, kept
    _recognize(doubtful, wanted, found, cache, engine, target, progress)
    _make(wanted, found, cache, engine, target, progress)
    return [found[number] for number in sorted(found)]


def _index_digests(target: Target) -> dict[str, str]:
    """By path, the digests of indexes that the manifest names; no others are used."""
    files = target.manifest.files if target.manifest is not None else ()
    return {each.path: each.blake3 for each in files}


def _recognize(
    doubtful: dict[int, tuple[_Wanted, KeptCatalog]],
    wanted: dict[int, _Wanted],
    found: dict[int, ShardCatalog],
    cache: CatalogCache,
    engine: Engine,
    target: Target,
    progress: Progress,
) -> None:
    """Use the catalogs of shards that agree with the manifest; the others are wanted."""
    if not doubtful:
        return
    shards = [each.shard for each, _ in doubtful.values()]
    digests = _run(engine, _digest_of, shards, f"recognizing {target.name}", progress, shards)
    for (number, (each, kept)), digest in zip(doubtful.items(), digests, strict=True):
        if digest != kept.entry.shard:
            wanted[number] = each
            continue
        _note(cache, each, digest)
        found[number] = ShardCatalog(each.shard, kept, each.state)


def _make(
    wanted: dict[int, _Wanted],
    found: dict[int, ShardCatalog],
    cache: CatalogCache,
    engine: Engine,
    target: Target,
    progress: Progress,
) -> None:
    if not wanted:
        return
    maker = (PluginId("catalog", "catalog"), pickle.dumps(CatalogVisitor))
    shards = [each.shard for each in wanted.values()]
    tasks = [ScanTask(shard, (maker,), digest=True) for shard in shards]
    scans = _run(engine, scan_shard, tasks, f"cataloguing {target.name}", progress, shards)
    for (number, each), scanned in zip(wanted.items(), scans, strict=True):
        part = _opened(each.shard, scanned)
        kept = cache.keep(part)
        _note(cache, each, part.entry.shard)
        found[number] = ShardCatalog(each.shard, kept, each.state)


def _opened(shard: Shard, scanned: ShardScan) -> CatalogPart:
    name = safe(shard.name, limit=1000)
    (part,) = scanned.parts
    if scanned.end is None or part is None:
        raise FailureError(
            f"`{name}` cannot be read: {scanned.unreadable}",
            hint="make it readable, and ask again",
        )
    if isinstance(part, Crashed):
        raise FailureError(
            f"`{name}` cannot be catalogued: {part.reason}", hint="this is a bug: report it"
        )
    made = pickle.loads(part)
    if not isinstance(made, CatalogPart):
        raise TypeError(f"a catalog is {made!r}")
    if made.problem:
        raise NoShardsError(
            f"`{name}` is not a TFRecord: {made.problem}",
            hint=f"tfrecreg check {name}",
            place=shard.name,
        )
    return made


def _note(cache: CatalogCache, each: _Wanted, digest: str) -> None:
    """Remember the digest, unless the file changed while it was read, or shortly before."""
    state = each.state
    if state is None or state_of(each.shard) != state or not is_settled(state, each.since):
        return
    cache.note_digest(each.shard, state, digest)


def _digest_of(shard: Shard) -> str:
    return hash_file(shard.storage, shard.path)[1]


def _run(
    engine: Engine,
    function: Callable[[T], R],
    tasks: Sequence[T],
    label: str,
    progress: Progress,
    shards: Sequence[Shard],
) -> Iterator[R]:
    """The results one by one, with progress: only one of them is in memory."""
    sizes = [entry.size if (entry := state_of(shard)) is not None else 0 for shard in shards]
    total = sum(shard.entry.records for shard in shards if shard.entry is not None)
    chosen = engine.for_work(map(float, sizes), _WORTH_WORKERS)
    with working(progress, label, total), closing(chosen.run(function, tasks)) as results:
        for shard, size, result in zip(shards, sizes, results, strict=True):
            yield result
            records = shard.entry.records if shard.entry is not None else 0
            progress.advance(records, size)

"""The catalogs of all shards of a target, read from the cache or made by reading the shards.

A catalog file gets its final name once it is complete. A note records the digest of a shard's
bytes. It is valid while the shard keeps its size, time and inode. As in git's index, a shard gets
no note if it changed less than two seconds before it was read.

If a feature has more than :data:`SHORT_VALUES` values in a record, or more than
:data:`SHORT_BYTES` bytes, a catalog stores only the number and the size of these values. For
:data:`CLASS_NAMES`, the limit is :data:`CLASS_BYTES`.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.registry.indexes import (
    CATALOGS,
    FileStamp,
    PlaceNote,
    catalog_paths,
    note_path,
    read_place,
)
from tfrecreg.core.schema.labels import BOX, OBJECT_LABEL, PER_OBJECT
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage, user_cache
from tfrecreg.core.values.errors import (
    FailureError,
    MissingExtraError,
    NoShardsError,
    StorageError,
    TfrecregError,
)
from tfrecreg.core.values.progress import Progress, working
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine

if TYPE_CHECKING:
    from tfrecreg.builtin.query.rows import CatalogPart


def arrow_module() -> Any:
    import pyarrow

    return pyarrow


def parquet() -> Any:
    import pyarrow.parquet

    return pyarrow.parquet


def expect_packages() -> None:
    try:
        parquet()
        import_module("duckdb")
    except ImportError as error:
        raise MissingExtraError("asking in SQL", "query") from error


SHORT_VALUES = 16
SHORT_BYTES = 64
CLASS_BYTES = 1 << 16
CLASS_NAMES = frozenset(("image/class/text", "label"))
"""The features that may contain class names."""

_PREFIX = "image/object/"
SIDES = tuple((name.rpartition("/")[2], name) for name in BOX)
OBJECT_TEXT = f"{_PREFIX}class/text"
MORE = tuple(
    (name.removeprefix(_PREFIX).replace("/", "_"), name)
    for name in PER_OBJECT
    if name not in (OBJECT_LABEL, OBJECT_TEXT, f"{_PREFIX}view")
)
OBJECT_NUMBERS = ("label_number", *(column for column, _ in MORE))
"""Numeric columns of an object."""
OBJECT_SIDES = tuple(side for side, _ in SIDES)
"""Sides of boxes, as fractions of the image's sides."""
COLUMN_FEATURES = 1000
"""Maximum number of features with columns, per shard and per target. Later features get none."""
IMAGE_COLUMNS = ("format", "height", "width", "channels")
BOX_COLUMNS = ("boxes", "boxes_area", "smallest_box")
METADATA = b"tfrecreg"
"""The key of the metadata in a file of records."""


class CellColumns(msgspec.Struct, frozen=True, order=True):
    """The contents of a catalog for one feature of one kind."""

    feature: str
    """The name of the feature, with invalid UTF-8 as escapes."""
    kind: str
    """``bytes``, ``float`` or ``int64``."""
    is_list: bool
    """Whether any record has no value or several values."""
    is_many: bool
    """Whether any record has more than one value."""
    has_values: bool
    """Whether values are stored for at least one record."""
    is_cut: bool
    """Whether the values of at least one record are not stored."""

    def joined(self, other: CellColumns) -> CellColumns:
        """Combine the descriptions of this feature in two catalogs."""
        flags = ("is_list", "is_many", "has_values", "is_cut")
        return msgspec.structs.replace(
            self, **{name: getattr(self, name) or getattr(other, name) for name in flags}
        )


class CatalogEntry(msgspec.Struct, frozen=True):
    """What the catalog of one shard contains, stored in the metadata of the catalog's file of
    records.
    """

    shard: str
    """Hex blake3 of the bytes of the shard."""
    index: str
    """Hex blake3 of the index with the keys; empty if the shard has no index."""
    faults: int
    """Number of damaged places. The catalog leaves out the records there."""
    left_out: tuple[str, ...]
    """Features without columns, at most :data:`COLUMN_FEATURES` of them."""
    features: tuple[CellColumns, ...]
    """Entry N, counted from 0, has the columns ``vN``, ``nN`` and ``sN``."""
    has_images: bool
    """Whether the records have :data:`IMAGE_COLUMNS`."""
    has_boxes: bool
    """Whether the records have :data:`BOX_COLUMNS`."""
    has_objects: bool
    """Whether the catalog has a file of objects."""


def read_entry(path: str) -> CatalogEntry:
    metadata = parquet().read_metadata(path).metadata or {}
    return msgspec.json.decode(metadata.get(METADATA, b""), type=CatalogEntry)


def sql_name(name: str) -> str:
    """The name of a column or a table, quoted for SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(value: str) -> str:
    return "'" + shown_text(value).replace("'", "''") + "'"


def shown_text(value: str) -> str:
    """A Python string as text that DuckDB accepts. NULs and invalid UTF-8 are escaped."""
    shown = value.replace("\0", "\\x00").encode("utf-8", "surrogateescape")
    return shown.decode("utf-8", "backslashreplace")


def sql_list(values: Iterable[str]) -> str:
    return f"[{', '.join(values)}]"


_RACY_NS = 2_000_000_000
_GLOB = frozenset("*?[]{}")
_BYTE_SECONDS = 8e-9
"""Approximate time to catalog one byte of a shard."""


class KeptCatalog(NamedTuple):
    """A catalog, with the absolute paths of its files."""

    entry: CatalogEntry
    records: str
    objects: str
    """Path of the file of objects, which exists only if ``entry.has_objects``."""


class ShardCatalog(NamedTuple):
    shard: Shard
    kept: KeptCatalog
    state: FileStamp | None
    """The state of the file when its digest was computed."""


def kept_in(place: Storage, part: CatalogPart) -> KeptCatalog:
    """Write a catalog to a folder. The file of records, written last, marks it as complete."""
    records, objects = catalog_paths(part.entry.shard, part.entry.index)
    for path, data in ((objects, part.objects), (records, part.records)):
        if data:
            with place.create(path, durable=False) as writer:
                writer.write(data)
    return KeptCatalog(part.entry, f"{place.root}/{records}", f"{place.root}/{objects}")


def state_of(shard: Shard) -> FileStamp | None:
    """The current state of a shard's file; None if the state cannot identify the bytes of the file.

    If a web server sends neither time nor ETag, a change of the file would go unnoticed.
    """
    try:
        entry = shard.storage.stat(shard.path, follow="all")
    except TfrecregError:
        return None
    if entry is None or entry.kind != "file" or entry.mtime_ns <= 0:
        return None
    return FileStamp(entry.size, entry.mtime_ns, entry.inode)


class CatalogCache:
    """Keeps the catalogs of a target in its registry, or else in the user's cache.

    If the registry and the user's cache are read-only, or if `keeps` is false, a temporary folder
    has the catalogs until :meth:`close`.
    """

    def __init__(self, target: Target, *, keeps: bool = True) -> None:
        home, cache = target.home, user_cache()
        places: list[Storage] = []
        if home is not None:
            places.append(home.below(CATALOGS))
        if cache is not None:
            places.append(cache.below("tfrecreg/catalogs"))
        # DuckDB would take `*?[]{}` in a path for a glob, and cannot receive unprintable paths.
        plain = (each for each in places if each.root.isprintable() and not _GLOB & set(each.root))
        self._places = [*plain] if keeps else []
        self._temporary: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """Remove the temporary folder."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def known_digest(self, shard: Shard, state: FileStamp | None) -> str:
        """The digest of the bytes of a file in this state; empty if it is unknown."""
        for place in self._places if state is not None else ():
            note = read_place(place, _note_path(shard))
            if note is not None and note.state == state:
                return note.shard
        return ""

    def note_digest(self, shard: Shard, state: FileStamp | None, since: int, digest: str) -> None:
        """Remember the digest of a file in this state. Nothing is remembered if the file changed
        shortly before the time `since`, or if the file changed while it was read.
        """
        if state is None or since - state.mtime_ns < _RACY_NS or state_of(shard) != state:
            return
        note, path = msgspec.json.encode(PlaceNote(state, digest)), _note_path(shard)
        for place in self._places:
            with suppress(StorageError), place.create(path, durable=False) as writer:
                writer.write(note)
                return

    def recall(self, digest: str, index: str) -> KeptCatalog | None:
        """The catalog for these digests of a shard and its index; None if missing or damaged."""
        for place in self._places if digest else ():
            records, objects = (f"{place.root}/{path}" for path in catalog_paths(digest, index))
            if not os.path.isfile(records):  # noqa: PTH113 - a path is text
                continue
            try:
                entry = read_entry(records)
                if entry.has_objects:
                    parquet().read_metadata(objects)
            except (OSError, ValueError, arrow_module().ArrowException):
                continue  # it is made again, in its place
            return KeptCatalog(entry, records, objects)
        return None

    def keep(self, part: CatalogPart) -> KeptCatalog:
        for place in self._places:
            with suppress(StorageError):
                return kept_in(place, part)
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="tfrecreg-catalogs-")
        return kept_in(LocalStorage(self._temporary.name), part)


def _note_path(shard: Shard) -> str:
    return note_path(f"{shard.storage.root}/{shard.path}")


def catalogs_of(
    target: Target, cache: CatalogCache, engine: Engine, progress: Progress
) -> list[ShardCatalog]:
    """The catalogs of the shards of a target, in order of the shards.

    A catalog is reused if a note describes the current state of its shard. All others are made.
    """
    files = target.manifest.files if target.manifest is not None else ()
    indexes = {each.path: each.blake3 for each in files}  # other indexes are not used
    found: dict[int, ShardCatalog] = {}
    wanted: dict[int, tuple[Shard, FileStamp | None]] = {}
    since = time.time_ns()
    for number, shard in enumerate(target.shards):
        state = state_of(shard)
        digest = cache.known_digest(shard, state)
        kept = cache.recall(digest, indexes.get(shard.index or "", ""))
        if kept is None:
            wanted[number] = shard, state
        else:
            found[number] = ShardCatalog(shard, kept, state)
    if wanted:
        made = _made([*wanted.values()], engine, target, progress)
        for (number, (shard, state)), part in zip(wanted.items(), made, strict=True):
            kept = cache.keep(part)
            cache.note_digest(shard, state, since, part.entry.shard)
            found[number] = ShardCatalog(shard, kept, state)
    return [found[number] for number in sorted(found)]


def _made(
    wanted: Sequence[tuple[Shard, FileStamp | None]],
    engine: Engine,
    target: Target,
    progress: Progress,
) -> Iterator[CatalogPart]:
    """Scan shards, and make a catalog of each shard."""
    from tfrecreg.builtin.query.rows import CatalogVisitor
    from tfrecreg.core.check.scan.interface import Need
    from tfrecreg.core.check.scan.run import ScanTask, scan_shard

    maker = pickle.dumps(CatalogVisitor)
    tasks = [ScanTask(shard, (maker,), Need.DIGESTS) for shard, _ in wanted]
    sizes = [state.size if state is not None else 0 for _, state in wanted]
    counts = [each.entry.records if each.entry is not None else 0 for each, _ in wanted]
    chosen = engine.for_work(size * _BYTE_SECONDS for size in sizes)
    label = f"cataloguing {target.name}"
    with working(progress, label, sum(counts)), closing(chosen.run(scan_shard, tasks)) as scans:
        # One result at a time is in memory.
        for (shard, _), size, count, scanned in zip(wanted, sizes, counts, scans, strict=True):
            name = safe(shard.name, limit=1000)
            (part,) = scanned.parts
            if scanned.end is None or part is None:
                raise FailureError(f"`{name}` cannot be read: {scanned.unreadable}")
            if isinstance(part, str):
                raise FailureError(f"`{name}` cannot be catalogued: {part}")
            made: CatalogPart = pickle.loads(part)
            expect_tfrecord(name, made, NoShardsError)
            yield made
            progress.advance(count, size)


def expect_tfrecord(
    name: str, part: CatalogPart, error: type[NoShardsError | FailureError]
) -> None:
    if part.problem:
        hint = f"tfrecreg check {name}"
        raise error(f"`{name}` is not a TFRecord: {part.problem}", hint=hint)

"""Making one shard, in a worker: whole, or in segments that are joined in the parent.

Either way its bytes are the same. A segment is a task of its own, so that one large shard keeps
all cores busy.

The place of a build's shards, which knows the finished ones.

The stage of a plan is named after its digest, so another plan never sees the shards of a killed
build in it, nor the notes about them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from tfrecreg.core.build.base import BaseShard
from tfrecreg.core.build.plan import PlannedShard
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.records.hashing import hash_file, record_digest
from tfrecreg.core.records.writer import Segment, SegmentWriter, ShardWriter, WrittenShard
from tfrecreg.core.registry.manifest import FileEntry, ShardEntry
from tfrecreg.core.storage.interface import Entry, Readable, Storage
from tfrecreg.core.storage.raw import RawStorage
from tfrecreg.core.values.documents import read_note, render_note
from tfrecreg.core.values.errors import PluginError, StorageError, TfrecregError
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True)
class Maker:
    """What all tasks of a build have in common. Picklable."""

    folder: Storage
    """Where the shards are made."""
    source: bytes
    """The source, pickled: a worker unpacks it once, not for every task, since it may open and
    decompress files."""
    plan: str
    """The plan's digest: open files of a source are valid for this plan only."""
    compression: Literal["none", "gzip"]
    raw: RawStorage | None = None
    """The raw data; None where a program has the data."""
    indexed: bool = True
    """Whether shards get an index and a SHA-256."""

    def writer(self, shard: PlannedShard) -> ShardWriter:
        """Writes a shard and, if it is to have one, its index."""
        return ShardWriter(
            self.folder,
            shard.path,
            compression=self.compression,
            index_path=shard.index if self.indexed else None,
            sha256=self.indexed,
        )

    def reading(self, objects: Sequence[Entry]) -> AbstractContextManager[None]:
        """Fetch raw objects ahead of the source while the context lasts."""
        if self.raw is None:
            return nullcontext()
        return self.raw.reading_ahead((each.path for each in objects), objects)


@dataclass(frozen=True, slots=True)
class BuildTask:
    """All that a worker needs to make one shard. Picklable."""

    maker: Maker
    shard: PlannedShard
    objects: tuple[Entry, ...] = ()
    """Raw objects of its items, as far as known in the parent."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """All that a worker needs to make one segment. Picklable."""

    maker: Maker
    scratch: Storage
    path: str
    """Path of the segment's file in `scratch`."""
    items: tuple[Item, ...]
    objects: tuple[Entry, ...] = ()
    """Raw objects of the items, as far as known in the parent."""
    is_first: bool = False
    """Whether it is the first one of its shard."""


@dataclass(slots=True, kw_only=True)
class _Notes:
    """Skipped items and remarks."""

    features: dict[str, int] = field(default_factory=dict)
    """Feature name to bytes of its values."""
    skipped: list[Skipped] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    """On the items that were written."""
    objects: int = 0

    def add(self, other: _Notes) -> None:
        for name, size in other.features.items():
            self.features[name] = self.features.get(name, 0) + size
        self.skipped += other.skipped
        self.remarks += other.remarks
        self.objects += other.objects


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeSegment:
    """What became of a segment."""

    segment: Segment
    notes: _Notes


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeShard:
    """A finished shard: the data for the manifest and the ledger."""

    entry: ShardEntry
    """Without SHA-256 if the shard is not indexed."""
    index: FileEntry | None
    """None if the shard is not indexed."""
    features: dict[str, int]
    """Feature name to bytes of its values."""
    skipped: list[Skipped] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    """On the items that were written."""
    objects: int = 0
    """Number of objects in the records."""
    kept: bool = False
    """It is a shard of the base, as it was."""


def make_part(task: BuildTask | SegmentTask) -> MadeShard | MadeSegment:
    """Make a whole shard, or a segment."""
    return make_shard(task) if isinstance(task, BuildTask) else make_segment(task)


def make_shard(task: BuildTask) -> MadeShard:
    """Make the examples of the shard's items and write them."""
    maker, shard = task.maker, task.shard
    kept = keep_shard(task)
    if kept is not None and _link(maker.folder, shard, indexed=maker.indexed):
        return kept
    notes = _Notes()
    with maker.reading(task.objects), maker.writer(shard) as writer:
        for number, items in enumerate(shard.segments()):
            _write(maker, items, writer, notes, compare=number == 0)
            writer.end_member()
    return _made(shard, writer.written, notes)


def keep_shard(task: BuildTask) -> MadeShard | None:
    """The shard of the base, if today's items give the same bytes; None otherwise. Writes nothing.

    Raises as :func:`make_shard` does.
    """
    if task.shard.base is None:
        return None
    with task.maker.reading(task.objects):
        return _kept(task.maker, task.shard, task.shard.base)


def _kept(maker: Maker, shard: PlannedShard, base: BaseShard) -> MadeShard | None:
    index = base.read_index()
    source = _source(maker.plan, maker.source)
    notes = _Notes()
    at = 0
    for item in shard.items:
        made = _example(source, item, notes)
        if isinstance(made, Skipped):
            notes.skipped.append(made)
            continue
        same = at < len(index) and index.key(at) == item.key
        if not same or record_digest(made) != index.digests[at].tobytes():
            return None
        at += 1
    if at != len(index):
        return None
    entry = replace(base.entry, path=shard.path, index=shard.index)
    return MadeShard(
        entry=entry if maker.indexed else replace(entry, sha256=""),
        index=replace(base.index, path=shard.index) if maker.indexed else None,
        features=notes.features,
        skipped=notes.skipped,
        remarks=notes.remarks,
        objects=notes.objects,
        kept=True,
    )


def _link(folder: Storage, shard: PlannedShard, *, indexed: bool) -> bool:
    """Link a shard of the base and its index into the folder; False where its bytes are not
    here, or not what they were: then it is rebuilt.
    """
    base = shard.base
    if base is None or base.path is None:
        return False
    if not _has(base.storage, base.path, base.entry.blake3):
        return False
    _put(base.path, base.entry.blake3, folder, shard.path, base.storage)
    if indexed:
        _put(base.index_path, base.index.blake3, folder, shard.index, base.storage)
    return True


def _put(source: str, digest: str, folder: Storage, target: str, origin: Readable) -> None:
    """Link a file into a folder; a killed run, or another worker just now, may have done so."""
    if _has(folder, target, digest):
        return
    folder.remove(target)
    try:
        folder.link(source, target, origin=origin)
    except StorageError:
        if not _has(folder, target, digest):
            raise


def _has(storage: Readable, path: str, digest: str) -> bool:
    try:
        return hash_file(storage, path)[1] == digest
    except StorageError:
        return False


def make_segment(task: SegmentTask) -> MadeSegment:
    """Make the examples of the segment's items and write them; raises as :func:`make_shard`."""
    notes = _Notes()
    writer = SegmentWriter(task.scratch, task.path, task.maker.compression)
    try:
        with task.maker.reading(task.objects):
            _write(task.maker, task.items, writer, notes, compare=task.is_first)
        return MadeSegment(segment=writer.close(), notes=notes)
    finally:
        writer.abort()


def join_segments(
    maker: Maker, scratch: Storage, shard: PlannedShard, segments: Iterable[MadeSegment]
) -> MadeShard:
    """Write a shard from its segments, which come in order and are removed."""
    notes = _Notes()
    with maker.writer(shard) as writer:
        for made in segments:
            writer.append(scratch, made.segment)
            scratch.remove(made.segment.path)
            notes.add(made.notes)
    return _made(shard, writer.written, notes)


def _made(shard: PlannedShard, written: WrittenShard, notes: _Notes) -> MadeShard:
    entry = ShardEntry.of(shard.path, written, split=shard.split, index=shard.index)
    return MadeShard(
        entry=entry,
        index=FileEntry.of(shard.index, written.index) if written.index is not None else None,
        features=notes.features,
        skipped=notes.skipped,
        remarks=notes.remarks,
        objects=notes.objects,
    )


def _write(
    maker: Maker,
    items: Sequence[Item],
    writer: ShardWriter | SegmentWriter,
    notes: _Notes,
    *,
    compare: bool,
) -> None:
    """Make and write the records of some items; `compare` makes the first one twice."""
    source = _source(maker.plan, maker.source)
    for number, item in enumerate(items):
        made = _example(source, item, notes)
        if isinstance(made, Skipped):
            notes.skipped.append(made)
        else:
            digest = record_digest(made) if maker.indexed else None
            writer.write(made, digest=digest, key=item.key)
        if compare and number == 0:
            before = _identity(made)
            del made  # one large record at a time
            _expect_same(source, item, before, notes.remarks)


def _identity(made: bytes | Skipped) -> bytes | Skipped:
    return made if isinstance(made, Skipped) else record_digest(made)


def _expect_same(
    source: GuardedSource, item: Item, before: bytes | Skipped, remarks: Sequence[Remark]
) -> None:
    """Make the first item of a shard again: a source that makes something else is not pure."""
    again = _Notes()
    if _identity(_example(source, item, again)) != before or again.remarks != remarks:
        raise PluginError(
            f"{source.plugin_id} made `{safe(item.key)}` of the split `{safe(item.split)}` twice, "
            f"and the results differ{source.place('example')}",
            hint="this is an error in the plugin: `example` depends on its item alone, not on the "
            "time, random numbers or earlier calls",
        )


@lru_cache(maxsize=1)
def _source(plan: str, pickled: bytes) -> GuardedSource:
    """The source of a build, which stays open in a worker."""
    del plan  # part of the key
    source: GuardedSource = pickle.loads(pickled)
    return source


def close_source() -> None:
    """Close the files that this process has opened for a source."""
    _source.cache_clear()


def make_payload(source: GuardedSource, item: Item) -> bytes | Skipped:
    """One item's record; raises as :func:`make_shard` does."""
    return _example(source, item, _Notes())


def _example(source: GuardedSource, item: Item, notes: _Notes) -> bytes | Skipped:
    made = source.record(item, notes.features)
    if isinstance(made, Skipped):
        return made
    notes.remarks.extend(made.remarks)
    notes.objects += made.objects
    return made.payload


BUILD = "build"
"""Folder of a stage: the unfinished build."""


@dataclass(frozen=True, slots=True)
class StageSink:
    """The shards of a build, and which of them are finished."""

    stage: Storage
    """Rooted at the stage, for the notes on finished shards."""
    folder: Storage
    """Rooted at the build's folder in it, which takes the place of the old build."""
    indexed: bool = True
    """Whether shards get an index and a SHA-256 as they are made. Else publishing makes both."""

    def finish(self, shard: PlannedShard, made: MadeShard) -> None:
        """Note that a shard is finished; its bytes are durable by now."""
        with self.stage.create(_journal_path(shard)) as writer:
            writer.write(render_note(made))

    def finished(self, shards: Sequence[PlannedShard]) -> dict[str, MadeShard]:
        """The finished ones of these shards, by path, hashed again."""
        found = ((shard.path, self._finished(shard)) for shard in shards)
        return {path: made for path, made in found if made is not None}

    def _finished(self, shard: PlannedShard) -> MadeShard | None:
        if self.stage.stat(_journal_path(shard)) is None:
            return None
        try:
            made = read_note(self.stage.read(_journal_path(shard)), MadeShard)
            is_whole = is_intact(self.folder, made)
        except (TfrecregError, ValueError):
            # An invalid journal costs only the work of making the shard again.
            return None
        return made if is_whole else None


def _journal_path(shard: PlannedShard) -> str:
    return f"journal/{shard.path}.json"


def is_intact(build: Readable, made: MadeShard) -> bool:
    """Whether a shard, and its index if any, are in the folder with unchanged bytes."""
    files = (made.entry,) if made.index is None else (made.entry, made.index)
    return all(hash_file(build, entry.path)[1] == entry.blake3 for entry in files)

"""Makes one shard in a worker, whole or in segments that the parent joins.

The bytes of a shard are the same in both cases. The stage of a plan is named after the plan's
digest, so another plan never sees the shards of a killed build, or the notes about them.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from tfrecreg.core.build.plan import PlannedShard
from tfrecreg.core.build.sources.guarded import GuardedSource
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.build.state import remove_leftovers
from tfrecreg.core.records.hashing import hash_file, record_digest
from tfrecreg.core.records.writer import Segment, SegmentWriter, ShardWriter, WrittenShard
from tfrecreg.core.registry.manifest import FileEntry, ShardEntry
from tfrecreg.core.storage.interface import Entry, Readable, Storage
from tfrecreg.core.storage.raw import RawStorage
from tfrecreg.core.values.documents import read_note, render_note
from tfrecreg.core.values.errors import StorageError, TfrecregError


@dataclass(frozen=True, slots=True)
class Stage:
    """The unpublished shards of a plan, with a note about each finished shard."""

    storage: Storage

    @property
    def folder(self) -> Storage:
        """The unfinished build, which takes the place of the old one."""
        return self.storage.below("build")

    @property
    def segments(self) -> Storage:
        return self.storage.below("segments")

    def clear(self) -> None:
        """Remove unfinished files of killed writers. There must be no other writers."""
        remove_leftovers(self.folder)
        self.storage.remove("segments")

    def finish(self, made: MadeShard) -> None:
        """Record that a shard is finished. Its bytes must already be durable."""
        with self.storage.create(_journal(made.entry.path)) as writer:
            writer.write(render_note(made))

    def finished(self, shard: PlannedShard) -> MadeShard | None:
        """The shard if an earlier run finished it and its files did not change, else None."""
        try:
            made = read_note(self.storage.read(_journal(shard.path)), MadeShard)
        except (TfrecregError, ValueError):
            return None  # an invalid note costs only the work of making the shard again
        files = (made.entry, made.index)
        whole = all(_has(self.folder, each.path, each.blake3) for each in files)
        return made if whole else None


def _journal(shard: str) -> str:
    return f"journal/{shard}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildTask:
    """All that a worker needs to make one shard, or a segment of it. Picklable."""

    stage: Stage
    source: bytes
    """The pickled source, which a worker unpacks once, because it may open and decompress files."""
    plan: str
    """The plan's digest. Files that a source opened are valid only for this plan."""
    compression: Literal["none", "gzip"]
    raw: RawStorage | None = None
    """The raw data; None if a program holds the data."""
    shard: PlannedShard
    """The shard. If the task makes a segment, the shard has only the segment's items."""
    objects: tuple[Entry, ...] = ()
    """The raw objects of the items, as far as the parent knows them. They can be fetched ahead."""
    segment: int | None = None

    def reading(self) -> AbstractContextManager[None]:
        """Fetch raw objects ahead of the source while the context lasts."""
        raw, objects = self.raw, self.objects
        if raw is None:
            return nullcontext()
        return raw.reading_ahead((each.path for each in objects), objects)

    def writer(self) -> ShardWriter:
        shard = self.shard
        return ShardWriter(
            self.stage.folder, shard.path, compression=self.compression, index_path=shard.index
        )


@dataclass(slots=True, kw_only=True)
class Notes:
    """Facts about the items of a shard. The records are not included."""

    features: dict[str, int] = field(default_factory=dict)
    """Size of each feature's values in bytes, by feature name."""
    skipped: list[Skipped] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    """Remarks on the written items."""
    objects: int = 0

    def add(self, other: Notes) -> None:
        for name, size in other.features.items():
            self.features[name] = self.features.get(name, 0) + size
        self.skipped += other.skipped
        self.remarks += other.remarks
        self.objects += other.objects


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeSegment:
    segment: Segment
    notes: Notes


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeShard:
    """A finished shard: the data for the manifest and the ledger."""

    entry: ShardEntry
    index: FileEntry
    notes: Notes
    kept: bool = False

    @classmethod
    def of(cls, shard: PlannedShard, written: WrittenShard, notes: Notes) -> MadeShard:
        """The result for a shard, after the shard and its index were written."""
        assert written.index is not None
        return cls(
            entry=ShardEntry.of(shard.path, written, split=shard.split, index=shard.index),
            index=FileEntry.of(shard.index, written.index),
            notes=notes,
        )


def make_part(task: BuildTask) -> MadeShard | MadeSegment:
    return make_shard(task) if task.segment is None else make_segment(task)


def make_shard(task: BuildTask) -> MadeShard:
    kept = keep_shard(task)
    if kept is not None and _link(task.stage.folder, task.shard):
        return kept
    notes = Notes()
    with task.reading(), task.writer() as writer:
        for number, items in enumerate(task.shard.segments()):
            _write(task, items, writer, notes, compare=number == 0)
            writer.end_member()
    return MadeShard.of(task.shard, writer.written, notes)


def make_segment(task: BuildTask) -> MadeSegment:
    notes = Notes()
    path = f"{task.shard.path}.{task.segment}"
    writer = SegmentWriter(task.stage.segments, path, task.compression)
    try:
        with task.reading():
            _write(task, task.shard.items, writer, notes, compare=task.segment == 0)
        return MadeSegment(segment=writer.close(), notes=notes)
    finally:
        writer.abort()


def join_segments(task: BuildTask, segments: Iterable[MadeSegment]) -> MadeShard:
    """Write the shard of `task` from its segments, in order, and remove the segments."""
    notes, folder = Notes(), task.stage.segments
    with task.writer() as writer:
        for made in segments:
            writer.append(folder, made.segment)
            folder.remove(made.segment.path)
            notes.add(made.notes)
    return MadeShard.of(task.shard, writer.written, notes)


def keep_shard(task: BuildTask) -> MadeShard | None:
    """The unchanged shard of the base, or None if any record would change. Writes nothing."""
    shard = task.shard
    if shard.base is None:
        return None
    index = shard.base.read_index()
    source = _source(task.plan, task.source)
    notes = Notes()
    at = 0
    with task.reading():
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
    return MadeShard(
        entry=replace(shard.base.entry, path=shard.path, index=shard.index),
        index=replace(shard.base.index, path=shard.index),
        notes=notes,
        kept=True,
    )


def _link(folder: Storage, shard: PlannedShard) -> bool:
    """Link the base's shard and the shard's index into the folder. False if the shard's file is
    missing or its bytes changed.
    """
    base = shard.base
    if base is None or base.path is None or not _has(base.storage, base.path, base.entry.blake3):
        return False
    _put(base.path, base.entry.blake3, folder, shard.path, base.storage)
    _put(base.index_path, base.index.blake3, folder, shard.index, base.storage)
    return True


def _put(source: str, digest: str, folder: Storage, target: str, origin: Readable) -> None:
    """Link a file into a folder, unless a killed run or another worker has already linked it."""
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


def _write(
    task: BuildTask,
    items: Sequence[Item],
    writer: ShardWriter | SegmentWriter,
    notes: Notes,
    *,
    compare: bool,
) -> None:
    """Make and write the records of some items. With `compare`, the first record is made twice."""
    source = _source(task.plan, task.source)
    for number, item in enumerate(items):
        made = _example(source, item, notes)
        if isinstance(made, Skipped):
            notes.skipped.append(made)
        else:
            writer.write(made, digest=record_digest(made), key=item.key)
        if compare and number == 0:
            before, again = _identity(made), Notes()
            del made  # keep only one large record in memory
            same = _identity(_example(source, item, again)) == before
            if not same or again.remarks != notes.remarks:
                raise source.plugin_id.error(
                    f"made `{item.key}` of the split `{item.split}` twice, and the results differ: "
                    "`example` must depend on its item alone"
                )


def _identity(made: bytes | Skipped) -> bytes | Skipped:
    return made if isinstance(made, Skipped) else record_digest(made)


@lru_cache(maxsize=1)
def _source(plan: str, pickled: bytes) -> GuardedSource:
    """The opened source of a build. A worker keeps the source open."""
    del plan  # part of the key
    source: GuardedSource = pickle.loads(pickled)
    return source


def close_source() -> None:
    """Close the files that this process has opened for a source."""
    _source.cache_clear()


def make_payload(source: GuardedSource, item: Item) -> bytes | Skipped:
    """Make one item's record. Raises the same errors as :func:`make_shard`."""
    return _example(source, item, Notes())


def _example(source: GuardedSource, item: Item, notes: Notes) -> bytes | Skipped:
    made = source.record(item, notes.features)
    if isinstance(made, Skipped):
        return made
    notes.remarks.extend(made.remarks)
    notes.objects += made.objects
    return made.payload

"""One shard, made again in a worker: from what is left of it, and from the raw data.

The index says which records it had, in which order, and where its gzip members began. A record
that is still there is taken as it is, for its digest proves it; the others are made again.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfrecreg.digests import record_digest
from tfrecreg.errors import StorageError
from tfrecreg.example import canonical
from tfrecreg.index import Index
from tfrecreg.manifest import ShardEntry
from tfrecreg.operations.builds.shard import make_payload
from tfrecreg.records import Compression, RecordBatch, ShardWriter, Written, scan
from tfrecreg.sources import GuardedSource, Item, Skipped
from tfrecreg.storage import Storage
from tfrecreg.text import safe

__all__ = ["RemadeShard", "RemakeTask", "remake"]

Wrong = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemakeTask:
    """All that a worker needs to make one shard again. Picklable."""

    entry: ShardEntry
    """What it has to become."""
    index: Index
    items: Mapping[str, Item]
    """Key to item, of the items that the raw data still have."""
    source: bytes | None
    """The source, pickled; None where the raw data are not at hand."""
    compression: Compression
    folder: Storage
    """Rooted at the folder that the damaged shard lies in, if it is there."""
    stage: Storage
    """Rooted at the folder in the making."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemadeShard:
    """A shard that was made again."""

    path: str
    taken: int
    """Records that were still there."""
    made: int
    """Records that were made from the raw data."""
    bytes: int
    blake3: str
    """Hex digest of what it became."""
    stream_blake3: str
    """Hex digest of its decompressed stream."""
    index_blake3: str
    """Hex digest of its index."""
    differ: int = 0
    """How many records came out otherwise, or not at all."""
    first: str = ""
    """The key of the first of them,"""
    reason: str = ""
    """and what is the matter with it."""

    @classmethod
    def of(cls, written: Written, path: str, *, taken: int, wrong: Wrong = ()) -> RemadeShard:
        """What was written, and what is wrong with it: keys and reasons."""
        key, reason = next(iter(wrong), ("", ""))
        return cls(
            path=path,
            taken=taken,
            made=written.records - taken,
            bytes=written.bytes,
            blake3=written.blake3,
            stream_blake3=written.stream_blake3,
            index_blake3=written.index_blake3,
            differ=len(wrong),
            first=key,
            reason=reason,
        )


def remake(task: RemakeTask) -> RemadeShard:
    """Make the shard again. Whether it is the one that it was is for the caller to see.

    Raises:
        RawDataError: the source cannot read its raw data.
        PluginError: the source failed.
        StorageError: the stage cannot be written.
    """
    source: GuardedSource | None = None if task.source is None else pickle.loads(task.source)
    entry, index = task.entry, task.index
    members = {stream for _, stream in index.members}
    offsets = index.offsets()
    found = _found(task)
    number, payload = next(found, (-1, b""))
    taken = 0
    wrong: list[tuple[str, str]] = []
    with ShardWriter(
        task.stage, entry.path, compression=task.compression, index_path=entry.index
    ) as writer:
        for record in range(len(index)):
            if int(offsets[record]) in members:
                writer.end_member()
            key = index.key(record)
            digest = index.digests[record].tobytes()
            if record == number:
                writer.write(payload, digest=digest, key=key)
                taken += 1
                number, payload = next(found, (-1, b""))
                continue
            made = _made(task, source, key)
            if isinstance(made, str):
                wrong.append((key, made))
                continue
            new = record_digest(made)
            if new != digest:
                wrong.append((key, "its record came out differently"))
            writer.write(made, digest=new, key=key)
    return RemadeShard.of(writer.written, entry.path, taken=taken, wrong=wrong)


def _made(task: RemakeTask, source: GuardedSource | None, key: str) -> bytes | str:
    """The record of an item, or why there is none."""
    if source is None:
        return "the raw data are not at hand"
    item = task.items.get(key)
    if item is None:
        return "the raw data have no such item any more"
    made = make_payload(source, item)
    if isinstance(made, Skipped):
        return f"the source skips it now: {made.code} {safe(made.detail)}"
    return made


def _found(task: RemakeTask) -> Iterator[tuple[int, bytes]]:
    """What is still there: number and payload, in order."""
    index, entry = task.index, task.entry
    events = scan(
        task.folder,
        entry.path,
        declared=task.compression,
        known_offsets=index.offsets(),
        members=index.members,
    )
    following = 0
    try:
        for event in events:
            if not isinstance(event, RecordBatch) or not event.whole:
                continue
            for number, payload in enumerate(event.payloads(), event.first):
                # Records that moved are made again: it is only work.
                here = following <= number < len(index)
                if here and record_digest(canonical(payload)) == index.digests[number].tobytes():
                    following = number + 1
                    yield number, payload
    except StorageError:
        return  # it is missing, or the disk fails: all the rest is made again

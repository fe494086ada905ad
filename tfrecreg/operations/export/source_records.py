"""The records of a registered shard, verified while they are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tfrecreg.operations.export.shards import ExportTask, expect_file, refused
from tfrecreg.records.batch import Fault, RecordBatch
from tfrecreg.records.reader import scan
from tfrecreg.scan.interface import Shard
from tfrecreg.scan.large_records import LargeRecords


class ShardRecord(NamedTuple):
    """One record of a shard."""

    number: int
    """Its number in the shard, from 0."""
    payload: bytes


def verified_records(task: ExportTask) -> Iterator[ShardRecord]:
    """Read all records of the shard of `task`, in order.

    What was read is known to be the registered stream only when the iterator has ended.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
        UsageError: a record is larger than 1 GiB.
        StorageError: the file system refused.
    """
    expect_file(task)
    entry = task.entry
    large = LargeRecords(_shard(task), "export")
    try:
        for event in scan(task.bytes, entry.path, declared=task.compression, digest=True):
            if isinstance(event, Fault):
                raise refused(task, f"{event.code} at byte {event.offset}: {event.detail}")
            if isinstance(event, RecordBatch):
                yield from _records(event, large)
            elif event.stream_blake3 != entry.stream_blake3:
                expected, found = entry.stream_blake3[:16], (event.stream_blake3 or "")[:16]
                raise refused(
                    task, f"its records should have the digest {expected}…, found {found}…"
                )
    finally:
        large.close()


def _records(batch: RecordBatch, large: LargeRecords) -> Iterator[ShardRecord]:
    if batch.whole:
        yield from map(ShardRecord, range(batch.first, batch.first + len(batch)), batch.payloads())
        return
    for position, length in enumerate(batch.lengths):
        number = batch.first + position
        yield ShardRecord(number, large.payload(number, batch.offsets[position], length))


def _shard(task: ExportTask) -> Shard:
    return Shard(
        split=task.entry.split,
        number=0,
        name=task.entry.path,
        storage=task.bytes,
        path=task.entry.path,
        declared=task.compression,
        entry=task.entry,
        index=None,
    )

"""The records of a registered shard, verified while they are read, and decoded ones with keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.check.scan.large_records import LargeRecords
from tfrecreg.core.example.decode import decode_fast, decode_fully
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.wire import NotAnExampleError
from tfrecreg.core.plugins.exporters.shards import (
    ExportedShard,
    ShardToExport,
    expect_file,
    export_unchanged,
    read_back,
    refused,
)
from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.framing import frame
from tfrecreg.core.records.gzip.writer import GzipEncoder
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reader import scan
from tfrecreg.core.values.errors import FailureError, ManifestError, MissingFileError, UsageError
from tfrecreg.core.values.text import safe


class ShardRecord(NamedTuple):
    """One record of a shard."""

    number: int
    """Its number in the shard, from 0."""
    payload: bytes


def verified_records(task: ShardToExport) -> Iterator[ShardRecord]:
    """Read all records of the shard of `task`, in order.

    Only the end of the iterator proves that this is the registered stream.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
        UsageError: a record is larger than 1 GiB.
    """
    expect_file(task)
    entry = task.entry
    large = LargeRecords(_shard(task), "export")
    try:
        for event in scan(task.storage, entry.path, declared=task.compression, digest=True):
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


def export_gzip(task: ShardToExport) -> ExportedShard:
    """Put the shard into the folder in gzip, and compare its records with the manifest there.

    Raises:
        RefusedError: the shard is missing, damaged or another one.
    """
    if task.compression == "gzip":
        return export_unchanged(task)
    encoder = GzipEncoder()
    with task.folder.create(task.name) as writer:
        for record in verified_records(task):
            head, foot = frame(record.payload)
            writer.write(encoder.write(b"".join((head, record.payload, foot))))
        writer.write(encoder.end_member())
    read_back(task, "gzip")
    return ExportedShard(how="compressed", entry=task.entry, name=task.name)


def write_records(task: ShardToExport, payloads: Iterable[bytes]) -> None:
    """Write payloads as the TFRecord file ``task.name`` of the folder, without compression."""
    with task.folder.create(task.name) as writer:
        for payload in payloads:
            head, foot = frame(payload)
            writer.write(b"".join((head, payload, foot)))


def written_records(task: ShardToExport) -> Iterator[bytes]:
    """The payloads of that file, in order.

    Raises:
        FailureError: it is damaged.
    """
    large = LargeRecords(replace(_shard(task), storage=task.folder, path=task.name), "export")
    try:
        for event in scan(task.folder, task.name, declared="none", digest=False):
            if isinstance(event, Fault):
                raise FailureError(
                    f"`{safe(task.name)}` cannot be read again: {event.code} at byte "
                    f"{event.offset}: {event.detail}",
                    hint="the disk may be faulty: export to another one",
                )
            if isinstance(event, RecordBatch):
                yield from (each.payload for each in _records(event, large))
    finally:
        large.close()


def _records(batch: RecordBatch, large: LargeRecords) -> Iterator[ShardRecord]:
    if batch.whole:
        yield from map(ShardRecord, range(batch.first, batch.first + len(batch)), batch.payloads())
        return
    for position, length in enumerate(batch.lengths):
        number = batch.first + position
        yield ShardRecord(number, large.payload(number, batch.offsets[position], length))


def _shard(task: ShardToExport) -> Shard:
    return Shard(
        split=task.entry.split,
        number=0,
        name=task.entry.path,
        storage=task.storage,
        path=task.entry.path,
        declared=task.compression,
        entry=task.entry,
        index=None,
    )


class KeyedExample(NamedTuple):
    """One record of a shard, decoded."""

    number: int
    """Its number in the shard, from 0."""
    key: str | None
    """Key of its item, with surrogate escapes if it is not UTF-8; None without an index."""
    size: int
    """Bytes of the payload."""
    features: Example


def keyed_examples(task: ShardToExport, records: Iterator[ShardRecord]) -> Iterator[KeyedExample]:
    """The records as Examples, with their keys.

    Raises:
        UsageError: a record is not an Example, or has fields that no Example has.
        RefusedError: the index of the shard is missing.
        ManifestError: the index of the shard is damaged.
    """
    index = _index(task)
    for record in records:
        features = _features(record.payload)
        if features is None:
            raise UsageError(
                f"record {record.number} of `{safe(task.entry.path)}` of `{task.reference}` is not "
                "a tf.train.Example, or has fields that it does not define",
                hint="`--to arrayrecord` exports any payload",
            )
        key = None if index is None else index.key(record.number)
        yield KeyedExample(record.number, key, len(record.payload), features)


def _index(task: ShardToExport) -> Index | None:
    path = task.entry.index
    if not path:
        return None
    try:
        index = load_index(task.storage, path)
    except MissingFileError:
        raise refused(task, f"its index `{safe(path)}` is missing") from None
    if len(index) != task.entry.records:
        raise ManifestError(
            f"`{safe(path)}` has {len(index)} records, and its shard {task.entry.records}",
            hint=f"tfrecreg check {task.reference}",
        )
    return index


def _features(payload: bytes) -> Example | None:
    found = decode_fast(payload)
    if found is not None:
        return found[0]
    try:
        features, unknown = decode_fully(payload)
    except NotAnExampleError:
        return None
    return None if unknown else features

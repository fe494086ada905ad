"""A shard of a part, held against its receipt and the items of the plan.

Every claim of a receipt is compared with bytes: digests and sizes of both files, the records and
their digests, the bytes of each feature, and that each item is a record or a skipped item, in the
order of the plan. Nothing here shows that a record is the one that the raw data give: for that a
shard is made again (`remake`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfrecreg.digests import record_digest
from tfrecreg.errors import ManifestError, NewerFormatError, StorageError
from tfrecreg.example.decode import decode_or_none
from tfrecreg.index import Index, load_index
from tfrecreg.manifest import FileEntry, ShardEntry
from tfrecreg.operations.builds.parts.receipts import Receipt
from tfrecreg.records import Compression, RecordBatch, StreamEnd, scan
from tfrecreg.records.hashing import hash_both
from tfrecreg.storage import Storage
from tfrecreg.text import safe


@dataclass(frozen=True, slots=True)
class ExamineTask:
    """All that a worker needs to examine one shard. Picklable."""

    build: Storage
    """Rooted at the folder of the shards."""
    receipt: Receipt
    keys: tuple[str, ...]
    """Keys of the items of the plan, in order."""
    split: str
    compression: Compression


@dataclass(frozen=True, slots=True)
class ExaminedShard:
    """The result for one shard."""

    shard: str
    problem: str
    """The first claim that does not hold; empty if all do."""


class _Refused(Exception):
    """A claim that does not hold."""


def examine_shard(task: ExamineTask) -> ExaminedShard:
    """Compare every claim of a receipt with the bytes and the plan."""
    problem = ""
    try:
        receipt = task.receipt
        _expect_file(task.build, receipt.shard, "its bytes are")
        _expect_file(task.build, receipt.index, "the bytes of its index are")
        index = load_index(task.build, receipt.index.path)
        _expect_items(task, index.keys())
        _expect_records(task, index)
    except _Refused as refusal:
        problem = str(refusal)
    except (StorageError, ManifestError, NewerFormatError) as error:
        problem = error.message
    return ExaminedShard(task.receipt.shard.path, problem)


def _expect_file(build: Storage, entry: ShardEntry | FileEntry, what: str) -> None:
    found = hash_both(build, entry.path)
    if (found.bytes, found.blake3, found.sha256) != (entry.bytes, entry.blake3, entry.sha256):
        raise _Refused(
            f"{what} not those of its receipt: expected {entry.bytes:,} bytes, blake3 "
            f"{safe(entry.blake3[:16])}…, found {found.bytes:,} bytes, {found.blake3[:16]}…"
        )


def _expect_items(task: ExamineTask, keys: Sequence[str]) -> None:
    """Each item is the next record, or skipped; and nothing else is there."""
    skipped = Counter(each.key for each in task.receipt.skipped)
    if any(each.split != task.split for each in task.receipt.skipped):
        raise _Refused("its receipt lists skipped items of another split")
    at = 0
    for key in task.keys:
        if at < len(keys) and keys[at] == key:
            at += 1
        elif skipped[key]:
            skipped[key] -= 1
        else:
            raise _Refused(
                f"the item `{safe(key)}` of the plan is neither its next record nor in the ledger "
                "of its receipt"
            )
    if at < len(keys):
        raise _Refused(f"its record `{safe(keys[at])}` is not an item of the plan at that place")
    more = next((key for key, count in skipped.items() if count), None)
    if more is not None:
        raise _Refused(f"its receipt lists the skipped item `{safe(more)}`, unknown to the plan")


def _expect_records(task: ExamineTask, index: Index) -> None:
    """Records, digests, and the bytes of each feature."""
    entry = task.receipt.shard
    features: Counter[str] = Counter()
    number = 0
    for payload in _payloads(task, index):
        if number == len(index) or record_digest(payload) != index.digests[number].tobytes():
            raise _Refused(f"its record {number} is not the one of its index")
        example = decode_or_none(payload)
        if example is None:
            raise _Refused(f"its record {number} is not an Example")
        for name, feature in example.items():
            features[name] += feature.wire_bytes
        number += 1
    said = (entry.split, entry.records, entry.payload_bytes)
    found = (task.split, number, int(index.lengths.sum()))
    if said != found:
        raise _Refused(
            f"its receipt says {entry.records:,} records of {entry.payload_bytes:,} bytes in "
            f"`{safe(entry.split)}`, found {number:,} of {found[2]:,} in `{safe(task.split)}`"
        )
    if dict(features) != task.receipt.features:
        raise _Refused("its receipt says other sizes of features than its records have")


def _payloads(task: ExamineTask, index: Index) -> Iterator[bytes]:
    entry = task.receipt.shard
    events = scan(
        task.build,
        entry.path,
        declared=task.compression,
        digest=True,
        hold_limit=int(index.lengths.max(initial=1)),
    )
    for event in events:
        if isinstance(event, RecordBatch):
            yield from event.payloads()
        elif isinstance(event, StreamEnd):
            if event.stream_blake3 != entry.stream_blake3:
                raise _Refused("its receipt has another digest of its decompressed stream")
        else:
            raise _Refused(f"it is damaged: {event.code} at byte {event.offset}")

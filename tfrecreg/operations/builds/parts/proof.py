"""What receipts claim, proven in the pass that reads the whole build back.

A shard is read once for this and for the check of every new build. The digests and lengths of its
records are taken from its bytes, and with the keys of the plan they become its index: a part sends
none. SHA-256, which receipts do not have, is computed there, too. Nothing here shows that a record
is the one that the raw data give: for that a shard is made again (`remake`).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tfrecreg.digests import record_digest
from tfrecreg.errors import TfrecregError
from tfrecreg.example.columns import message_bytes
from tfrecreg.example.decode import decode_or_none
from tfrecreg.example.model import Example
from tfrecreg.findings import Code, Finding, Measure
from tfrecreg.index import INDEX_LIMIT, IndexBuilder
from tfrecreg.manifest.model import FileEntry
from tfrecreg.operations.builds.parts.plan_files import PlanFolder
from tfrecreg.operations.builds.parts.receipt_model import Receipt
from tfrecreg.operations.builds.parts.receipts import (
    FalseClaimError,
    record_keys,
    refuse_all,
    refused_shard,
)
from tfrecreg.operations.builds.plan import PlannedShard
from tfrecreg.operations.builds.read_back import ReadBackProof
from tfrecreg.operations.builds.shard import MadeShard
from tfrecreg.progress import Progress, working
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.records.writer import hashed_write
from tfrecreg.scan.interface import Need, Shard, Target, Visitor
from tfrecreg.scan.large_records import LargeRecords
from tfrecreg.storage.interface import Storage
from tfrecreg.text import safe
from tfrecreg.validators.record_tables import tables_of


@dataclass(frozen=True, slots=True)
class SeenShard:
    """The content of one shard."""

    end: StreamEnd
    digests: bytes
    """The digests of its records, concatenated."""
    lengths: array[int]
    """Bytes of each payload."""
    features: dict[str, int]
    """Feature name to bytes of its values."""
    problem: str
    """The first record that is not an Example; empty if all are."""
    damage: str
    """The first fault; empty without one."""


class ReceiptProof(ReadBackProof):
    """Compares shards with their receipts.

    Args:
        shards: every shard of the build, as planned, in their order.
    """

    name = "receipts"
    codes: Sequence[Code] = ()
    needs = Need.DIGESTS | Need.SHA256 | Need.MEMBERS

    def __init__(
        self, shards: Sequence[PlannedShard], receipts: Mapping[str, Receipt], plan: PlanFolder
    ) -> None:
        self._shards = shards
        self._receipts = receipts
        self._plan = plan
        self._seen: dict[str, SeenShard] = {}

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        del target, options
        return _Prover

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SeenShard]]
    ) -> Iterator[Finding | Measure]:
        del target
        self._seen = {shard.path: part for shard, part in parts}
        yield from ()

    def proven(self, folder: Storage, progress: Progress) -> list[MadeShard]:
        """The shards with SHA-256 and index.

        Of shards that are not what their receipts say, the first is an error, and the others are
        notes.

        Raises:
            RefusedError: a claim does not hold.
            UsageError: a list of the plan, or an index of the base, is damaged.
        """
        made, problems = [], []
        with (
            working(
                progress,
                f"indexing {self._plan.document.dataset}",
                sum(len(shard.items) for shard in self._shards),
            ),
            self._plan.reading_items(self._shards),
        ):
            for shard in self._shards:
                receipt = self._receipts[shard.path]
                try:
                    seen = self._seen.pop(shard.path, None)
                    made.append(_proven(shard, receipt, seen, folder))
                except FalseClaimError as error:
                    problems.append(
                        refused_shard(shard.path, str(error), receipt=receipt, plan=self._plan)
                    )
                progress.advance(len(shard.items), receipt.shard.bytes)
        refuse_all(problems, progress)
        return made


def _proven(
    shard: PlannedShard, receipt: Receipt, seen: SeenShard | None, folder: Storage
) -> MadeShard:
    """The shard that a receipt claims, completed from its bytes."""
    if seen is None:
        raise FalseClaimError("it was removed meanwhile")
    _expect_claims(receipt, seen)
    index = _index(shard, receipt, seen, folder)
    entry = replace(receipt.shard, sha256=seen.end.sha256 or "")
    return replace(receipt.made_shard(), entry=entry, index=index)


def _expect_claims(receipt: Receipt, seen: SeenShard) -> None:
    end, entry = seen.end, receipt.shard
    found = end.blake3 or ""
    if (end.file_bytes, found) != (entry.bytes, entry.blake3):
        raise FalseClaimError(
            f"its bytes are not those of its receipt: expected {entry.bytes:,} bytes, blake3 "
            f"{safe(entry.blake3[:16])}…, found {end.file_bytes:,} bytes, {found[:16]}…"
        )
    if seen.damage:
        raise FalseClaimError(f"it is damaged: {seen.damage}")
    if seen.problem:
        raise FalseClaimError(seen.problem)
    if (end.records, end.payload_bytes) != (entry.records, entry.payload_bytes):
        raise FalseClaimError(
            f"its receipt says {entry.records:,} records of {entry.payload_bytes:,} bytes, found "
            f"{end.records:,} of {end.payload_bytes:,}"
        )
    if end.stream_blake3 != entry.stream_blake3:
        raise FalseClaimError("its receipt has another digest of its decompressed stream")
    if seen.features != receipt.features:
        raise FalseClaimError("its receipt says other sizes of features than its records have")


def _index(shard: PlannedShard, receipt: Receipt, seen: SeenShard, folder: Storage) -> FileEntry:
    """Write the index of a shard whose bytes are those of its receipt."""
    keys = record_keys(shard, receipt.skipped)
    if not receipt.kept:
        index = IndexBuilder.of(seen.digests, seen.lengths, keys)
        written = hashed_write(folder, shard.index, index.render(seen.end.members))
        return FileEntry.of(shard.index, written)
    base = shard.base
    if (
        base is None
        or base.entry.blake3 != receipt.shard.blake3
        or base.read_index().keys() != keys
    ):
        raise FalseClaimError("its receipt says that it is a shard of the base, which it is not")
    # The base may have been adopted: then digests of its records are not of their raw bytes.
    data = base.storage.read(base.index_path, limit=INDEX_LIMIT)
    return FileEntry.of(shard.index, hashed_write(folder, shard.index, data))


class _Prover(Visitor):
    """Collects the index of one shard from its records, and adds up their features."""

    def __init__(self, shard: Shard) -> None:
        self._large = LargeRecords(shard, "check")
        self._digests = bytearray()
        self._lengths = array("q")
        self._features: Counter[str] = Counter()
        self._problem = ""
        self._damage = ""

    def batch(self, batch: RecordBatch) -> None:
        if self._problem:
            return
        self._lengths.extend(batch.lengths)
        try:
            if batch.whole:
                memory = memoryview(batch.memory)  # its slices are views
                for at, length in zip(batch.starts, batch.lengths, strict=True):
                    self._digests += record_digest(memory[at : at + length])
                self._weigh(batch)
            else:
                self._add_large(batch)
        except TfrecregError as error:
            self._problem = error.message

    def _weigh(self, batch: RecordBatch) -> None:
        tables = tables_of(batch)
        for table in tables.tables:
            for name, (_, column) in table.columns.items():
                self._features[name] += int(message_bytes(column.stop - column.start).sum())
        for position, example in tables.examples():
            self._count(batch.first + position, example)

    def _add_large(self, batch: RecordBatch) -> None:
        for position, length in enumerate(batch.lengths):
            number = batch.first + position
            payload = self._large.payload(number, batch.offsets[position], length)
            self._digests += record_digest(payload)
            self._count(number, decode_or_none(payload))

    def _count(self, number: int, example: Example | None) -> None:
        if example is None:
            self._problem = self._problem or f"its record {number} is not an Example"
            return
        for name, feature in example.items():
            self._features[name] += feature.wire_bytes

    def fault(self, fault: Fault) -> None:
        self._damage = self._damage or f"{fault.code} at byte {fault.offset}"

    def close(self, end: StreamEnd) -> SeenShard:
        self._large.close()
        return SeenShard(
            end,
            bytes(self._digests),
            self._lengths,
            dict(self._features),
            self._problem,
            self._damage,
        )

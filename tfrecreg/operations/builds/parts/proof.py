"""What receipts claim, proven in the pass that reads the whole build back.

A shard is read once for this and for the check of every new build: its digests, its records against
those of its index, and the bytes of each feature. SHA-256, which receipts do not have, is computed
there, too. Nothing here shows that a record is the one that the raw data give: for that a shard is
made again (`remake`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfrecreg.digests import record_digest
from tfrecreg.errors import TfrecregError
from tfrecreg.example import Example, decode_or_none
from tfrecreg.findings import Code, Finding, Measure
from tfrecreg.index import Index, load_index
from tfrecreg.operations.builds.conclude import ReadBackProof
from tfrecreg.operations.builds.parts.plan_files import PlanFolder
from tfrecreg.operations.builds.parts.receipts import (
    Receipt,
    other_bytes,
    refuse_all,
    refused_shard,
)
from tfrecreg.progress import Progress
from tfrecreg.records import Fault, FileDigest, RecordBatch, StreamEnd
from tfrecreg.scan import Need, Shard, Target, Visitor
from tfrecreg.scan.large_records import LargeRecords
from tfrecreg.validators.inflation.feature_sample import message_bytes
from tfrecreg.validators.record_tables import tables_of


@dataclass(frozen=True, slots=True)
class SeenShard:
    """The content of one shard."""

    end: StreamEnd
    features: dict[str, int]
    """Feature name to bytes of its values."""
    problem: str
    """The first record that is not an Example, or not that of the index; empty if all are."""
    damage: str
    """The first fault; empty without one."""


class ReceiptProof(ReadBackProof):
    """Compares shards with their receipts.

    Args:
        receipts: by path of the shard, of every shard of the build.
        plan: its folder, for messages.
    """

    name = "receipts"
    codes: Sequence[Code] = ()
    needs = Need.DIGESTS | Need.SHA256

    def __init__(self, receipts: Mapping[str, Receipt], plan: PlanFolder) -> None:
        self._receipts = receipts
        self._plan = plan
        self._seen: dict[str, SeenShard] = {}

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        del target, options
        return _Prover

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SeenShard | None]]
    ) -> Iterator[Finding | Measure]:
        del target
        self._seen = {shard.path: part for shard, part in parts if part is not None}
        yield from ()

    def expect(self, progress: Progress) -> dict[str, str]:
        """Raise for the first shard that is not what its receipt says, and note the others.

        Shards that could not be read have no part: the report of the check has them as errors.

        Returns:
            SHA-256 by path of the shard, as hex.

        Raises:
            RefusedError: a claim does not hold.
        """
        problems = []
        for path, receipt in self._receipts.items():
            seen = self._seen.get(path)
            problem = _problem(receipt, seen) if seen is not None else ""
            if problem:
                problems.append(refused_shard(path, problem, receipt=receipt, plan=self._plan))
        refuse_all(problems, progress)
        ends = {path: seen.end.sha256 for path, seen in self._seen.items()}
        return {path: sha256 for path, sha256 in ends.items() if sha256 is not None}


def _problem(receipt: Receipt, seen: SeenShard) -> str:
    """The first claim that does not hold; empty if all do."""
    end, entry = seen.end, receipt.shard
    found = FileDigest(end.file_bytes, end.blake3 or "", "")  # as in a receipt
    wrong = other_bytes(entry, found)
    if wrong:
        return f"its bytes are {wrong}"
    if seen.damage:
        return f"it is damaged: {seen.damage}"
    if seen.problem:
        return seen.problem
    if end.records != entry.records:  # the index has as many as the receipt says
        return f"its index has {entry.records:,} records, found {end.records:,}"
    if end.stream_blake3 != entry.stream_blake3:
        return "its receipt has another digest of its decompressed stream"
    if seen.features != receipt.features:
        return "its receipt says other sizes of features than its records have"
    return ""


class _Prover(Visitor):
    """Compares the records of one shard with its index, and adds up its features."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._large = LargeRecords(shard, "check")
        self._features: Counter[str] = Counter()
        self._problem = ""
        self._damage = ""

    @cached_property
    def _index(self) -> Index:
        assert self._shard.index is not None
        return load_index(self._shard.storage, self._shard.index)

    def batch(self, batch: RecordBatch) -> None:
        if self._problem:
            return
        try:
            if batch.whole:
                memory = memoryview(batch.memory)  # its slices are no copies
                spans = zip(batch.starts, batch.lengths, strict=True)
                digests = [record_digest(memory[at : at + length]) for at, length in spans]
                self._add(batch.first, digests)
                self._weigh(batch)
            else:
                self._add_large(batch)
        except TfrecregError as error:
            self._problem = error.message

    def _add(self, first: int, digests: Sequence[bytes]) -> None:
        """Compare the digests of records with the index."""
        known = self._index.digests[first : first + len(digests)]
        if b"".join(digests) == known.tobytes():
            return
        rows = [row.tobytes() for row in known]
        same = next(n for n, digest in enumerate(digests) if [digest] != rows[n : n + 1])
        self._refuse(f"its record {first + same} is not the one of its index")

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
            self._add(number, [record_digest(payload)])
            self._count(number, decode_or_none(payload))

    def _count(self, number: int, example: Example | None) -> None:
        if example is None:
            self._refuse(f"its record {number} is not an Example")
            return
        for name, feature in example.items():
            self._features[name] += feature.wire_bytes

    def _refuse(self, problem: str) -> None:
        self._problem = self._problem or problem

    def fault(self, fault: Fault) -> None:
        self._damage = self._damage or f"{fault.code} at byte {fault.offset}"

    def close(self, end: StreamEnd) -> SeenShard:
        self._large.close()
        return SeenShard(end, dict(self._features), self._problem, self._damage)

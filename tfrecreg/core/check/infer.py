"""Drafts a schema, and makes other results that need every record of a target."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.batch_columns import batch_digests
from tfrecreg.core.records.framing import HEADER_BYTES
from tfrecreg.core.records.gzip_access import DamagedGzipError, Inflater
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.stream import sniff_compression
from tfrecreg.core.schema.payload_kinds import PayloadCounts, described
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.values.errors import FailureError, RefusedError, UsageError
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import safe, si_bytes
from tfrecreg.core.workers.interface import Engine

if TYPE_CHECKING:
    from tfrecreg.core.check.scan.run import ScanResult
    from tfrecreg.core.example.sequences import PayloadSketch


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """Damage that was skipped to read the undamaged records. Strings are escaped."""

    shard: str
    record: int | None
    """Number of the first damaged record, if known."""
    offset: int
    """Offset in the stream where the damage starts."""
    reason: str
    """``CRC002: …``."""
    count: int = 1
    """Number of damaged places in the part of the shard that was read."""


def passed_over(name: str, damage: Sequence[PassedOver]) -> RefusedError:
    """The error for a result that was computed without the target's damaged records."""
    first, total = damage[0], sum(each.count for each in damage)
    where = "" if first.record is None else f"record {first.record} of "
    places = "1 damaged place was" if total == 1 else f"{total} damaged places were"
    return RefusedError(
        f"{places} skipped; the first is {where}`{first.shard}`, at byte {first.offset}: "
        f"{first.reason}",
        hint=f"tfrecreg check {name}",
    )


class Collector(Validator):
    """Keeps the part of each shard, and reports no findings."""

    name = "collector"
    codes: Sequence[Code] = ()

    def __init__(self, visitor: Callable[[Shard], Visitor]) -> None:
        self._visitor = visitor
        self.seen: list[tuple[Shard, Any]] = []

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        del target, options
        return self._visitor

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, Any]]
    ) -> Iterator[Finding | Measure]:
        del target
        self.seen = list(parts)
        return iter(())


def read_whole(
    target: Target,
    validators: Sequence[Validator],
    engine: Engine,
    progress: Progress,
    *,
    doing: str,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> ScanResult:
    """Scan all shards of `target`."""
    from tfrecreg.core.check.scan.run import run_scan  # `head` reads no shard as a whole

    result = run_scan(
        target,
        validators,
        engine,
        options=options,
        label=f"{doing} {target.name}",
        progress=progress,
    )
    if not result.complete:
        lost = [f"`{safe(each.shard)}`: {each.reason}" for each in result.unreadable]
        lost += [each.reason for each in result.crashes]
        raise FailureError(f"`{target.name}` was not read completely: {lost[0]}")
    return result


LARGE_LIMIT = 1 << 30
"""Maximum size of a record in bytes, because a digest needs the record in memory."""

_SNIFF_BYTES = 1 << 16


class LargeRecords:
    """Reads the payloads of one shard that are not in memory, in order of their offsets."""

    def __init__(self, storage: Readable, path: str, name: str) -> None:
        self._storage, self._path, self._name = storage, path, name
        self._reader: Reader | None = None
        self._inflater: Inflater | None = None

    def payload(self, batch: RecordBatch) -> bytes:
        """The payload of the only record of a batch that is not in memory."""
        (offset,), (length,) = batch.offsets, batch.lengths
        if length > LARGE_LIMIT:
            raise UsageError(
                f"record {batch.first} of `{self._name}` has {si_bytes(length)}, but at most "
                f"{si_bytes(LARGE_LIMIT)} can be read"
            )
        start = offset + HEADER_BYTES
        if self._reader is None:
            self._reader = self._storage.open(self._path)
            if sniff_compression(self._reader.read_at(0, _SNIFF_BYTES)) == "gzip":
                self._inflater = Inflater(self._reader, 0, 0)
        try:
            if self._inflater is None:
                data = self._reader.read_at(start, length)
            else:
                self._inflater.go(start)
                data = self._inflater.exactly(length)
        except DamagedGzipError:
            data = b""
        if len(data) != length:
            raise UsageError(f"`{self._name}` changed while it was read")
        return data

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


class DigestPart(NamedTuple):
    """The records of one shard."""

    digests: bytes
    """The digests, concatenated in the order of the records."""
    numbers: npt.NDArray[np.int64]
    """The numbers of these records in the shard."""
    faults: int
    """Number of damaged places."""


class DigestVisitor(Visitor):
    """Keeps the digest (16 bytes) and the number (8 bytes) of each record of a shard."""

    def __init__(self, shard: Shard) -> None:
        self._digests = bytearray()
        self._numbers: list[npt.NDArray[np.int64]] = []
        self._large = LargeRecords(shard.storage, shard.path, shard.name)
        self._faults = 0

    def batch(self, batch: RecordBatch) -> None:
        if batch.whole:
            self._digests += batch_digests(batch)
        else:
            self._digests += record_digest(canonical(self._large.payload(batch)))
        self._numbers.append(np.arange(batch.first, batch.first + len(batch)))

    def fault(self, fault: Fault) -> None:
        del fault
        self._faults += 1

    def close(self, end: StreamEnd) -> DigestPart:
        del end
        self._large.close()
        numbers = np.concatenate([np.empty(0, np.int64), *self._numbers])
        return DigestPart(bytes(self._digests), numbers, self._faults)


def infer_schema(
    target: Target,
    engine: Engine,
    progress: Progress = SILENT,
) -> tuple[str, list[PassedOver]]:
    """From every undamaged record of a target, draft a schema for people to review.

    Returns the draft and the damage that was skipped.
    """
    from tfrecreg.core.example.sequences import PayloadSketch

    collector = Collector(_SketchVisitor)
    result = read_whole(target, [collector], engine, progress, doing="looking at")
    if result.records == 0:
        raise UsageError(f"`{target.name}` has no readable record to infer a schema from")
    sketch = PayloadSketch()
    kinds: Counter[str] = Counter()
    damage: list[PassedOver] = []
    for shard, part in collector.seen:
        sketch.merge(part.sketch)
        kinds.update(part.kinds)
        if part.fault is not None:
            damage.append(
                PassedOver(
                    shard=safe(shard.name),
                    record=part.fault.record,
                    offset=part.fault.offset,
                    reason=f"{part.fault.code}: {part.fault.detail}",
                    count=part.faults,
                )
            )
    kind = PayloadKind.EXAMPLE
    if kinds[PayloadKind.SEQUENCE_EXAMPLE.value] > kinds[kind.value]:
        kind = PayloadKind.SEQUENCE_EXAMPLE
    if not (sketch.examples.names if kind is PayloadKind.EXAMPLE else sketch.has_names):
        raise UsageError(
            f"`{target.name}` has no Example with a feature, so there is no schema to infer: found "
            f"{described(kinds)}"
        )
    return sketch.render(target.dataset or target.name, kind), damage


class _ShardSketch(NamedTuple):
    sketch: PayloadSketch
    kinds: Mapping[str, int]
    """Number of payloads by kind, as a check counts them."""
    fault: Fault | None
    """The first damage of the shard."""
    faults: int


class _SketchVisitor(Visitor):
    def __init__(self, shard: Shard) -> None:
        from tfrecreg.core.example.sequences import PayloadSketch

        self._sketch = PayloadSketch()
        self._shard = shard
        self._payloads = PayloadCounts()
        self._fault: Fault | None = None
        self._faults = 0

    def batch(self, batch: RecordBatch) -> None:
        self._payloads.add(self._shard, batch)
        for position, (example, kind) in enumerate(zip(batch.examples, batch.kinds, strict=True)):
            payload = batch.payload(position) if kind is PayloadKind.SEQUENCE_EXAMPLE else b""
            self._sketch.add(payload, kind or PayloadKind.OTHER, example)

    def fault(self, fault: Fault) -> None:
        self._fault = self._fault or fault
        self._faults += 1

    def close(self, end: StreamEnd) -> _ShardSketch:
        del end
        return _ShardSketch(self._sketch, self._payloads.kinds, self._fault, self._faults)

"""Drafts of a schema from records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tfrecreg.core.check.scan.interface import Shard, Target, Validator, Visitor
from tfrecreg.core.check.scan.whole import PassedOver, read_whole
from tfrecreg.core.example.kinds import PayloadKind
from tfrecreg.core.example.sequences import PayloadSketch
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.schema.roles.payload_kinds import PayloadCounter, described
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Code, Finding, Measure
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine


def infer_schema(
    target: Target,
    engine: Engine,
    progress: Progress = SILENT,
    *,
    damage: list[PassedOver] | None = None,
) -> str:
    """Draft a schema for people to review, from every undamaged record of a target."""
    sketcher = _Sketcher()
    result = read_whole(
        target,
        [sketcher],
        engine,
        progress,
        doing="looking at",
        otherwise="a schema from incomplete data would refuse the rest",
    )
    if result.records == 0:
        raise UsageError(
            f"`{target.name}` has no readable record to infer a schema from",
            hint="`tfrecreg check` gives the reason",
        )
    kinds = sketcher.kinds
    kind = PayloadKind.EXAMPLE
    if kinds[PayloadKind.SEQUENCE_EXAMPLE.value] > kinds[kind.value]:
        kind = PayloadKind.SEQUENCE_EXAMPLE
    names = sketcher.sketch.examples.names
    if not (names if kind is PayloadKind.EXAMPLE else sketcher.sketch.has_names):
        raise UsageError(
            f"`{target.name}` has no Example with a feature, so there is no schema to infer: found "
            f"{described(kinds)}",
            hint="a schema describes Examples or SequenceExamples; `tfrecreg head` shows records",
        )
    if damage is not None:
        damage += sketcher.damage
    return sketcher.sketch.render(target.dataset or target.name, kind)


class _ShardSketch(NamedTuple):
    sketch: PayloadSketch
    kinds: Mapping[str, int]
    """Number of payloads by kind, as a check counts them."""
    fault: Fault | None
    """The first damage of the shard."""
    faults: int


class _Sketcher(Validator):
    """A validator that summarizes the records and finds nothing."""

    name = "sketch"
    codes: Sequence[Code] = ()

    def __init__(self) -> None:
        self.sketch = PayloadSketch()
        self.kinds: Counter[str] = Counter()
        self.damage: list[PassedOver] = []

    def begin(
        self, target: Target, options: Mapping[str, Any]
    ) -> Callable[[Shard], _SketchVisitor]:
        del target, options
        return _SketchVisitor

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, _ShardSketch]]
    ) -> Iterator[Finding | Measure]:
        for shard, part in parts:
            self.sketch.merge(part.sketch)
            self.kinds.update(part.kinds)
            if part.fault is not None:
                self.damage.append(
                    PassedOver(
                        shard=safe(shard.name),
                        record=part.fault.record,
                        offset=part.fault.offset,
                        reason=f"{part.fault.code}: {part.fault.detail}",
                        count=part.faults,
                    )
                )
        yield Measure("sketch.target", target.name, target.name)


class _SketchVisitor(Visitor):
    def __init__(self, shard: Shard) -> None:
        self._sketch = PayloadSketch()
        self._payloads = PayloadCounter(shard)
        self._fault: Fault | None = None
        self._faults = 0

    def batch(self, batch: RecordBatch) -> None:
        self._payloads.add(batch)
        for position, (example, kind) in enumerate(zip(batch.examples, batch.kinds, strict=True)):
            payload = batch.payload(position) if kind is PayloadKind.SEQUENCE_EXAMPLE else b""
            self._sketch.add(payload, kind or PayloadKind.OTHER, example)

    def fault(self, fault: Fault) -> None:
        """Damaged records are left out of the sketch."""
        self._fault = self._fault or fault
        self._faults += 1

    def close(self, end: StreamEnd) -> _ShardSketch:
        del end
        return _ShardSketch(self._sketch, self._payloads.seen().kinds, self._fault, self._faults)

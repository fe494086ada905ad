"""Drafting a schema from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tfrecreg.engines import Engine
from tfrecreg.errors import UsageError
from tfrecreg.findings import Code, Finding, Measure
from tfrecreg.operations.full_scan import PassedOver, read_whole
from tfrecreg.progress import SILENT, Progress
from tfrecreg.records import Fault, RecordBatch, StreamEnd
from tfrecreg.scan import Shard, Target, Validator, Visitor
from tfrecreg.schema import SchemaSketch
from tfrecreg.text import safe

__all__ = ["infer_schema"]


class _Sketcher(Validator):
    """Looks at every record the way validators do, and sums up instead of judging."""

    name = "sketch"
    codes: Sequence[Code] = ()

    def __init__(self) -> None:
        self.sketch = SchemaSketch()
        self.damage: list[PassedOver] = []

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], _Eye]:
        del target, options
        return _Eye

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, _Seen]]
    ) -> Iterator[Finding | Measure]:
        for shard, part in parts:
            self.sketch.merge(part.sketch)
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


class _Seen(NamedTuple):
    """What one shard says of the schema."""

    sketch: SchemaSketch
    fault: Fault | None
    """The first damage in it."""
    faults: int


class _Eye(Visitor):
    def __init__(self, shard: Shard) -> None:
        del shard  # one sketch is like another, wherever it was made
        self._sketch = SchemaSketch()
        self._fault: Fault | None = None
        self._faults = 0

    def batch(self, batch: RecordBatch) -> None:
        for example in batch.examples:
            self._sketch.add(example)

    def fault(self, fault: Fault) -> None:
        """Damaged records say nothing of the schema."""
        self._fault = self._fault or fault
        self._faults += 1

    def close(self, end: StreamEnd) -> _Seen:
        del end
        return _Seen(self._sketch, self._fault, self._faults)


def infer_schema(
    target: Target,
    engine: Engine,
    progress: Progress = SILENT,
    *,
    damage: list[PassedOver] | None = None,
) -> str:
    """A draft of a schema for people to review, from every sound record of `target`.

    Args:
        target: whose records.
        engine: where to read them.
        progress: told how far it is.
        damage: is given the first damage of each shard that has any.

    Raises:
        UsageError: there is no record to infer from.
        FailureError: a shard could not be read.
    """
    sketcher = _Sketcher()
    result = read_whole(
        target,
        [sketcher],
        engine,
        progress,
        doing="looking at",
        otherwise="a schema of a part would refuse the rest",
    )
    if result.records == 0:
        raise UsageError(
            f"`{target.name}` has no readable record to infer a schema from",
            hint="`tfrecreg check` on it says why",
        )
    if damage is not None:
        damage += sketcher.damage
    return sketcher.sketch.render(target.dataset or "inferred")

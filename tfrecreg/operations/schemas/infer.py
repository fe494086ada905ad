"""Drafting a schema from records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from tfrecreg.engines import Engine
from tfrecreg.errors import UsageError
from tfrecreg.findings import Code, Finding, Measure
from tfrecreg.operations.progress import SILENT, Progress
from tfrecreg.operations.reading import read_whole
from tfrecreg.records import Fault, RecordBatch, StreamEnd
from tfrecreg.scan import Need, Shard, Target
from tfrecreg.schema import SchemaSketch

__all__ = ["infer_schema"]


class _Sketcher:
    """Looks at every record the way validators do, and sums up instead of judging."""

    name = "sketch"
    codes: Sequence[Code] = ()
    needs = Need.FRAMES | Need.EXAMPLES

    def __init__(self) -> None:
        self.sketch = SchemaSketch()

    def applies(self, target: Target) -> str | None:
        del target
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], _Eye]:
        del target, options
        return _Eye

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, SchemaSketch]]
    ) -> Iterator[Finding | Measure]:
        for _, part in parts:
            self.sketch.merge(part)
        yield Measure("sketch.target", target.name, target.name)


class _Eye:
    def __init__(self, shard: Shard) -> None:
        del shard  # one sketch is like another, wherever it was made
        self._sketch = SchemaSketch()

    def batch(self, batch: RecordBatch) -> None:
        for example in batch.examples:
            self._sketch.add(example)

    def fault(self, fault: Fault) -> None:
        """Damaged records say nothing of the schema; `check` names them."""

    def close(self, end: StreamEnd) -> SchemaSketch:
        del end
        return self._sketch


def infer_schema(target: Target, engine: Engine, progress: Progress = SILENT) -> str:
    """A draft of a schema for people to review, from every record of `target`.

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
    return sketcher.sketch.render(target.dataset or "inferred")

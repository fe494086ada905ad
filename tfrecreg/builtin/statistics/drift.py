"""The `drift` validator: compares a version with another, and the splits of a version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta

from tfrecreg.builtin.statistics.anomalies import by_split
from tfrecreg.builtin.statistics.collect import make_visitor
from tfrecreg.builtin.statistics.distance import Distance, comparators, distances
from tfrecreg.builtin.statistics.make import stats_of
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.part import Conflict, StatisticsPart
from tfrecreg.core.check.scan.interface import BaselineError, Shard, Target, Validator, Visitor
from tfrecreg.core.schema.proto import parse_schema, schema_message
from tfrecreg.core.values.codes import DRF001, DRF002, DRF003, DRF004
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.findings import Code, Finding, Location, Measure, fingerprint
from tfrecreg.core.values.text import listed, safe


@dataclass(frozen=True, slots=True)
class DriftOptions:
    """The limits of the validator."""

    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """The largest distance, 0 to 1, of labels and sizes if the schema has no comparator."""
    min_examples: Annotated[int, Meta(ge=0)] = 100
    """Smaller splits are compared only if the schema has a comparator."""
    split: str = "train"
    """The split that the others of its version are compared with."""


class DriftValidator(Validator):
    """Compares distributions by the schema's comparators; without any, those of labels and
    sizes.
    """

    name = "drift"
    Options = DriftOptions
    codes: Sequence[Code] = (DRF001, DRF002, DRF003, DRF004)

    def __init__(self) -> None:
        self._options = DriftOptions()
        self._schema: Any = None
        self._before: Mapping[str, Any] = {}
        """By split: the statistics of the baseline."""

    def applies(self, target: Target) -> str | None:
        """None if there are two datasets to compare."""
        if target.baseline is None and len({shard.split for shard in target.shards}) < 2:
            return "only one split: name a dataset to compare it with by --against"
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """Read the schema, if there is one, and the baseline.

        The target's schema determines the categories on both sides.
        """
        self._options = read_limits(DriftOptions, options, self.name)
        path = target.schema_path or "schema"
        if target.schema is not None:
            self._schema = schema_message(parse_schema(target.schema, path))
        wanted = StatisticsOptions(schema=target.schema, schema_path=path)
        if target.baseline is not None:
            given = target.baseline
            try:
                made = stats_of(
                    given.target, options=wanted, engine=given.engine, progress=given.progress
                )
            except TfrecregError as error:
                raise BaselineError(error) from error
            self._before = {each.statistics.split: each.statistics.proto for each in made.splits}
        return partial(make_visitor, wanted)

    def merge(self, part: StatisticsPart, more: StatisticsPart) -> StatisticsPart:
        """Merge the parts of two adjacent shards: see
        :meth:`tfrecreg.core.check.scan.Validator.merge`."""
        part.merge(more)
        return part

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, StatisticsPart]]
    ) -> Iterator[Finding | Measure]:
        protos = {
            split: part.proto()
            for split, part in by_split(parts).items()
            if part.examples and not isinstance(part.conflict, Conflict)
        }
        if target.baseline is not None:
            other = target.baseline.target.name
            if not protos.keys() & self._before.keys():
                yield _nothing_in_common(target, other, protos, self._before)
            for split, proto in protos.items():
                before = self._before.get(split)
                if before is not None:
                    name = f"`{split}` of {other}" if split else other
                    yield from self._compare(target, split, proto, before, "drift", name)
        base = protos.get(self._options.split)
        if base is not None:
            for split, proto in protos.items():
                if split != self._options.split:
                    yield from self._compare(
                        target, split, proto, base, "skew", f"`{self._options.split}`"
                    )

    def _compare(
        self,
        target: Target,
        split: str,
        proto: Any,
        other: Any,
        kind: Literal["drift", "skew"],
        name: str,
    ) -> Iterator[Finding | Measure]:
        """Compare one split with another."""
        options = self._options
        fewest = min(proto.datasets[0].num_examples, other.datasets[0].num_examples)
        threshold = options.threshold if fewest >= options.min_examples else None
        wanted = comparators(self._schema, proto, kind, threshold)
        if not wanted:
            yield Measure(
                f"drift.{kind}.{split}",
                None,
                f"`{safe(split)}` was not compared with {safe(name)}: no comparator, or "
                f"fewer than {options.min_examples} examples",
            )
            return
        found, one_sided = distances(proto, other, wanted)
        code = DRF001 if kind == "drift" else DRF002
        for distance in found:
            if distance.value > distance.threshold:
                yield _finding(target, split, code, distance.feature, _text(distance, name))
        for feature in one_sided:
            text = f"`{safe(feature)}` is missing here or in {safe(name)}, so it was not compared"
            yield _finding(target, split, DRF003, feature, text)
        largest = max(found, key=lambda each: each.value, default=None)
        told = _text(largest, name) if largest is not None else f"no distance to {name}"
        told = f"split `{safe(split)}`, {told}" if split else told
        yield Measure(f"drift.{kind}.{split}", largest.value if largest is not None else None, told)


def _text(distance: Distance, name: str) -> str:
    return (
        f"`{safe(distance.feature)}`: the {distance.measure} distance to {safe(name)} is "
        f"{distance.value:.3g}, allowed {distance.threshold:g}"
    )


def _nothing_in_common(
    target: Target, other: str, splits: Iterable[str], others: Iterable[str]
) -> Finding:
    here, there = (
        listed(split or "(no name)" for split in sorted(each)) for each in (splits, others)
    )
    told = f"nothing was compared with {safe(other)}: splits here {here}, there {there}"
    return replace(_finding(target, "", DRF004, "", told), locations=())


def _finding(target: Target, split: str, code: Code, feature: str, message: str) -> Finding:
    return Finding(
        code=code.code,
        rule=code.rule,
        severity=code.severity,
        message=f"split `{safe(split)}`, {message}" if split else message,
        hint=code.hint,
        fingerprint=fingerprint(code.code, dataset=target.dataset, split=split, feature=feature),
        count=1,
        locations=(Location(split=split or None, feature=feature),),
    )

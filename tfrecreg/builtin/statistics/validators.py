"""The validators `statistics` (anomalies of TFDV) and `drift` (distances between distributions)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta

from tfrecreg.builtin.statistics.accumulate import StatisticsOptions
from tfrecreg.builtin.statistics.collect import (
    StatisticsPart,
    StatisticsScan,
    by_split,
    make_visitor,
)
from tfrecreg.builtin.statistics.distance import Distance, comparators, distances
from tfrecreg.builtin.statistics.make import stats_of
from tfrecreg.builtin.statistics.tfdv import Anomaly, judge_statistics, missing_tfdv
from tfrecreg.core.check.scan.interface import BaselineError, Shard, Target, Visitor
from tfrecreg.core.schema.environments import EnvironmentOptions, environment_options
from tfrecreg.core.schema.payload_kinds import no_schema_fits
from tfrecreg.core.values.codes import CORE_CODES, DRF001, DRF002, DRF003, DRF004, SCH199, CodeList
from tfrecreg.core.values.codes.pages import anomaly_code
from tfrecreg.core.values.config import read_limits
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.findings import Code, Finding, Location, Measure, Severity, fingerprint
from tfrecreg.core.values.text import listed, safe

_UNEXPECTED_TYPE = 70
_TOO_MANY = 98


class StatisticsValidator(StatisticsScan):
    """Computes the statistics of each split and compares them with the schema, as TFDV does.

    Its options are :class:`EnvironmentOptions`.
    """

    name = "statistics"
    Options = EnvironmentOptions
    codes: Sequence[Code] = CodeList("SCH1*")

    def __init__(self) -> None:
        self._environment: str | None = None
        self._environments: Mapping[str, str] = {}
        self._schema: Any = None

    def applies(self, target: Target) -> str | None:
        if reason := no_schema_fits(target):
            return reason
        if target.schema is None:
            return "no schema: name one with --schema"
        if missing := missing_tfdv():
            raise missing
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        self._environment, self._environments = environment_options(self.name, options)
        wanted = StatisticsOptions.of(target)
        self._schema = wanted.schema_proto()
        return partial(make_visitor, wanted)

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, StatisticsPart]]
    ) -> Iterator[Finding | Measure]:
        total = 0
        for split, part in by_split(parts).items():
            total += part.examples
            if (conflict := part.conflict) is not None:
                number = _UNEXPECTED_TYPE if conflict.types else _TOO_MANY
                anomaly = Anomaly(conflict.feature, number, False, str(conflict))
                yield _finding(target, split, anomaly)
            elif part.examples:
                environment = self._environments.get(split, self._environment)
                found = judge_statistics(part.proto(), self._schema, environment=environment)
                for anomaly in found:
                    yield _finding(target, split, anomaly)
        text = f"{total:,} examples judged" if total else "no Examples to judge"
        yield Measure("statistics.examples", total, text)


def _finding(target: Target, split: str, anomaly: Anomaly) -> Finding:
    code = CORE_CODES.get(anomaly_code(anomaly.number), SCH199)
    about = f"`{safe(anomaly.feature)}`: " if anomaly.feature else ""
    text = safe(" ".join(anomaly.text.split()), limit=1000).rstrip(". ")
    found = _about(target, split, code, anomaly.feature, f"{about}{text}")
    return replace(found, severity=Severity.WARNING) if anomaly.warning else found


def _about(target: Target, split: str, code: Code, feature: str, message: str) -> Finding:
    """A finding about a feature of a split."""
    return Finding(
        code=code.code,
        rule=code.rule,
        severity=code.severity,
        message=message,
        hint=code.hint,
        fingerprint=fingerprint(code.code, dataset=target.dataset, split=split, feature=feature),
        count=1,
        locations=(Location(split=split or None, feature=feature or None),),
    )


@dataclass(frozen=True, slots=True)
class DriftOptions:
    """The options of the validator."""

    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """The largest allowed distance of labels and sizes, from 0 to 1. It applies only if the schema
    has no comparators."""
    min_examples: Annotated[int, Meta(ge=0)] = 100
    """Splits with fewer examples are compared only with the comparators of the schema."""
    split: str = "train"
    """The split with which the other splits of the same version are compared."""


class DriftValidator(StatisticsScan):
    """Compares the features that have comparators in the schema. If none has any, compares labels
    and sizes.
    """

    name = "drift"
    Options = DriftOptions
    codes: Sequence[Code] = (DRF001, DRF002, DRF003, DRF004)

    def __init__(self) -> None:
        self._options = DriftOptions()
        self._schema: Any = None
        self._before: Mapping[str, Any] = {}
        """The statistics of the baseline, by split."""

    def applies(self, target: Target) -> str | None:
        if target.baseline is None and len({shard.split for shard in target.shards}) < 2:
            return "only one split: use --against to name a dataset to compare it with"
        return None

    def begin(self, target: Target, options: Mapping[str, Any]) -> Callable[[Shard], Visitor]:
        """Read the schema, if there is one, and the baseline.

        The target's schema determines the categories on both sides.
        """
        self._options = read_limits(DriftOptions, options, self.name)
        wanted = StatisticsOptions.of(target)
        self._schema = wanted.schema_proto()
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

    def finish(
        self, target: Target, parts: Iterable[tuple[Shard, StatisticsPart]]
    ) -> Iterator[Finding | Measure]:
        protos = {
            split: part.proto()
            for split, part in by_split(parts).items()
            if part.examples and not (part.conflict and part.conflict.types)
        }
        if target.baseline is not None:
            other = target.baseline.target.name
            if not protos.keys() & self._before.keys():
                here, there = (
                    listed(split or "(no name)" for split in sorted(each))
                    for each in (protos, self._before)
                )
                told = (
                    f"nothing was compared with {safe(other)}, because its splits are {there}, "
                    f"but those of this target are {here}"
                )
                yield replace(_about(target, "", DRF004, "", told), locations=())
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
                f"`{safe(split)}` was not compared with {safe(name)}: without comparators, this "
                f"needs labels or sizes, and {options.min_examples} examples on both sides",
            )
            return
        found, one_sided = distances(proto, other, wanted)
        code = DRF001 if kind == "drift" else DRF002
        where = f"split `{safe(split)}`, " if split else ""
        for distance in found:
            if distance.value > distance.threshold:
                text = f"{where}{_text(distance, name)}"
                yield _about(target, split, code, distance.feature, text)
        for feature in one_sided:
            text = f"`{safe(feature)}` is missing here or in {safe(name)}, so it was not compared"
            yield _about(target, split, DRF003, feature, f"{where}{text}")
        largest = max(found, key=lambda each: each.value, default=None)
        told = _text(largest, name) if largest is not None else f"nothing was compared with {name}"
        value = largest.value if largest is not None else None
        yield Measure(f"drift.{kind}.{split}", value, f"{where}{told}")


def _text(distance: Distance, name: str) -> str:
    return (
        f"`{safe(distance.feature)}`: the {distance.measure} distance to {safe(name)} is "
        f"{distance.value:.3g}, allowed {distance.threshold:g}"
    )

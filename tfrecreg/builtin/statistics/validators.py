"""The validators `statistics` (anomalies of TFDV) and `drift` (distances between distributions).

TFDV defines how far two distributions of a feature are apart. The measures follow
`tensorflow_data_validation/anomalies/metrics.cc`:

* L-infinity compares shares. It is the largest difference between a value's shares on both sides.
* The normalized absolute difference compares counts. It is the largest difference between a value's
  counts on both sides, divided by the sum of all counts.
* The Jensen-Shannon divergence is ``(D(P|M) + D(Q|M)) / 2`` for the mean M of two distributions P
  and Q, with logarithms of base 2. Buckets are divided at the bounds of both histograms, as if the
  numbers in a bucket were spread evenly. Buckets without width are compared separately. An infinite
  number never equals a number of the other side, and neither does NaN. NaN counts only if the
  buckets of both sides have equal bounds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from tfrecreg.builtin.statistics.collect import (
    StatisticsPart,
    StatisticsScan,
    by_split,
    make_visitor,
)
from tfrecreg.builtin.statistics.make import stats_of
from tfrecreg.builtin.statistics.tfdv import Anomaly, judge_statistics, missing_tfdv
from tfrecreg.core.check.scan.interface import BaselineError, Shard, Target, Visitor
from tfrecreg.core.schema.consistency import stage_of
from tfrecreg.core.schema.definition import IGNORED_STAGES
from tfrecreg.core.schema.payload_kinds import no_schema_fits, target_schema
from tfrecreg.core.schema.proto import schema_message
from tfrecreg.core.values.codes import CORE_CODES, DRF001, DRF002, DRF003, DRF004, SCH199, CodeList
from tfrecreg.core.values.codes.pages import anomaly_code
from tfrecreg.core.values.config import EnvironmentOptions, read_limits
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
        self._chosen = EnvironmentOptions()
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
        self._chosen = read_limits(EnvironmentOptions, options, self.name)
        schema = target_schema(target)
        self._schema = schema_message(schema)
        return partial(make_visitor, schema)

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
                environment = self._chosen.environments.get(split, self._chosen.environment)
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


_SIZES = ("height", "width", "depth", "channels", "length", "size")
_LABELS = frozenset({"label", "labels", "class", "target"})

_INFINITY, _DIFFERENCE = "infinity_norm", "normalized_abs_difference"
_DIVERGENCE = "jensen_shannon_divergence"
_MEASURES = {
    _INFINITY: "L-infinity",
    _DIVERGENCE: "Jensen-Shannon",
    _DIFFERENCE: "normalized absolute difference",
}
"""The displayed name for each field of a `FeatureComparator`."""


class Comparator(NamedTuple):
    feature: str
    field: str
    """A key of :data:`_MEASURES`."""
    threshold: float
    quantiles: bool = False
    """Whether a divergence uses histograms whose buckets have equal weight, not equal width."""


class Distance(NamedTuple):
    feature: str
    measure: str
    """``L-infinity``, ``Jensen-Shannon`` or ``normalized absolute difference``."""
    value: float
    threshold: float
    """Threshold of the comparator."""


def comparators(
    schema: Any, statistics: Any, kind: Literal["drift", "skew"], threshold: float | None
) -> list[Comparator]:
    """The comparisons to make.

    If the schema has comparators of this kind, only these are used. Otherwise labels and sizes are
    compared: categories and strings by their L-infinity distance, numbers by their Jensen-Shannon
    divergence.
    """
    known = {feature.name: feature for feature in schema.feature}
    declared = [each for each in known.values() if each.HasField(f"{kind}_comparator")]
    if declared:
        return [own for each in declared for own in _declared(each, f"{kind}_comparator")]
    if threshold is None:
        return []
    fields = {"string_stats": _INFINITY, "num_stats": _DIVERGENCE}
    return [
        Comparator(name, fields[which], threshold)
        for name, entry in _by_name(statistics).items()
        if (which := entry.WhichOneof("stats")) in fields
        and not _is_ignored(known.get(name))
        and _is_of_interest(name, known.get(name))
    ]


def distances(
    statistics: Any, other: Any, wanted: Sequence[Comparator]
) -> tuple[list[Distance], list[str]]:
    """Two lists. The first list has the distances, in order of feature and measure. The second list
    has the features that only one side has.
    """
    here, there = _by_name(statistics), _by_name(other)
    found, one_sided = [], set()
    for each in wanted:
        sides = here.get(each.feature), there.get(each.feature)
        if None not in sides:
            value = _distance(each, *sides)
            if value is not None:
                measure = _MEASURES[each.field]
                found.append(Distance(each.feature, measure, value, each.threshold))
        elif any(sides):
            one_sided.add(each.feature)
    return sorted(found), sorted(one_sided)


def _by_name(statistics: Any) -> dict[str, Any]:
    return {".".join(each.path.step): each for each in statistics.datasets[0].features}


def _declared(feature: Any, field: str) -> Iterator[Comparator]:
    if _is_ignored(feature):
        return
    for descriptor, measure in getattr(feature, field).ListFields():
        if descriptor.name in _MEASURES and measure.HasField("threshold"):
            quantiles = descriptor.name == _DIVERGENCE and measure.source.type == 1
            yield Comparator(feature.name, descriptor.name, measure.threshold, quantiles)


def _is_ignored(feature: Any) -> bool:
    return feature is not None and stage_of(feature) in IGNORED_STAGES


def _is_of_interest(name: str, feature: Any) -> bool:
    words = re.split(r"[^a-z]+", name.lower())
    if words[-1] in _SIZES or not _LABELS.isdisjoint(words):
        return True
    if feature is None:
        return False
    domain = feature.WhichOneof("domain_info")
    if domain in ("string_domain", "domain", "bool_domain"):
        return True
    return domain == "int_domain" and bool(feature.int_domain.is_categorical)


def _distance(comparator: Comparator, one: Any, other: Any) -> float | None:
    """The distance between two `FeatureNameStatistics`; None if it is undefined."""
    counts = _counts(one), _counts(other)
    values = sorted(counts[0].keys() | counts[1].keys())
    p, q = (np.array([side.get(each, 0.0) for each in values]) for side in counts)
    if comparator.field != _DIVERGENCE:
        if comparator.field == _DIFFERENCE:
            total = float(p.sum() + q.sum())
            return float(np.abs(p - q).max(initial=0)) / total if total else 0.0
        return float(np.abs(_shares(p) - _shares(q)).max(initial=0))
    if all(counts):
        return _divergence(p, q)
    histograms = [
        each
        for side in (one, other)
        for each in side.num_stats.histograms
        if (each.type == each.QUANTILES) == comparator.quantiles
    ]
    return _divergence(*_aligned(*histograms)) if len(histograms) == 2 else None


def _counts(entry: Any) -> dict[str, float]:
    """How often each value occurs. Values that are not UTF-8 share a label, so only the most
    frequent of these is counted.
    """
    buckets = entry.string_stats.rank_histogram.buckets
    return {each.label: each.sample_count for each in reversed(buckets)}


def _aligned(one: Any, other: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The counts of two histograms, redistributed to the same buckets."""
    infinite, points, wide = zip(*map(_parts, (one, other)), strict=True)
    bounds = [{bound for low, high, _ in side for bound in (low, high)} for side in wide]
    edges = np.array(sorted(bounds[0] | bounds[1]))
    columns = []
    for at, side in enumerate((one, other)):
        reached = np.zeros(len(edges))
        for low, high, count in wide[at]:
            reached += count * np.clip((edges - low) / (high - low), 0, 1)
        alone = [infinite[at], side.num_nan if bounds[0] == bounds[1] else 0]
        apart = [0.0, 0.0, *alone] if at else [*alone, 0.0, 0.0]
        at_points = [points[at].get(each, 0.0) for each in sorted({*points[0], *points[1]})]
        columns.append(np.concatenate((np.diff(reached), at_points, apart)))
    return columns[0], columns[1]


def _parts(
    histogram: Any,
) -> tuple[float, Mapping[float, float], Sequence[tuple[float, float, float]]]:
    """The count of infinite numbers, the counts of single numbers, and the other buckets."""
    infinite, points, wide = 0.0, dict[float, float](), []
    for each in histogram.buckets:
        low, high, count = each.low_value, each.high_value, each.sample_count
        if not (math.isfinite(low) and math.isfinite(high)):
            infinite += count
        elif low == high:
            points[low] = points.get(low, 0.0) + count
        else:
            wide.append((low, high, count))
    return infinite, points, wide


def _shares(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    total = counts.sum()
    return counts / total if total else counts


def _divergence(p: NDArray[np.float64], q: NDArray[np.float64]) -> float | None:
    """The Jensen-Shannon divergence of counts; None if one side has no counts."""
    if not (p.sum() and q.sum()):
        return None
    p, q = _shares(p), _shares(q)
    mean = (p + q) / 2
    halves = [
        float(np.sum(side[side > 0] * np.log2(side[side > 0] / mean[side > 0]))) for side in (p, q)
    ]
    return min(sum(halves) / 2, 1.0)


@dataclass(frozen=True, slots=True)
class DriftOptions:
    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.1
    """The largest allowed distance of labels and sizes, from 0 to 1. It applies only if the schema
    has no comparators."""
    min_examples: Annotated[int, Meta(ge=0)] = 100
    """Splits with fewer examples are compared only with the comparators of the schema."""
    split: str = "train"
    """The split with which the other splits of the same version are compared."""


class DriftValidator(StatisticsScan):
    """Compares the features that have comparators in the schema. Without comparators, compares
    labels and sizes.
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
        schema = target_schema(target)
        self._schema = schema_message(schema)
        if target.baseline is not None:
            given = target.baseline
            before = replace(given.target, schema=target.schema, schema_path=target.schema_path)
            try:
                made = stats_of(before, engine=given.engine, progress=given.progress)
            except TfrecregError as error:
                raise BaselineError(error) from error
            self._before = {each.statistics.split: each.statistics.proto for each in made.splits}
        return partial(make_visitor, schema)

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

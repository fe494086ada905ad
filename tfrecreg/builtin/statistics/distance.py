"""Measures how far two distributions of a feature are apart, as TFDV defines it.

The measures follow `tensorflow_data_validation/anomalies/metrics.cc`:

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
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.core.schema.definition import IGNORED_STAGES

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
    """How to compare a feature."""

    feature: str
    field: str
    """A key of :data:`_MEASURES`."""
    threshold: float
    quantiles: bool = False
    """Whether a divergence uses histograms whose buckets have equal weight, not equal width."""


class Distance(NamedTuple):
    """Distance between the distributions of a feature."""

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
    """Distances sorted by feature and measure, and the features that only one side has."""
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
    if feature is None:
        return False
    stages = feature.DESCRIPTOR.fields_by_name["lifecycle_stage"].enum_type.values_by_number
    return bool(feature.deprecated or stages[feature.lifecycle_stage].name in IGNORED_STAGES)


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

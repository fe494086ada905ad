"""Features of the records as a page shows them: the numbers of `stats`, over all records."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfrecreg.builtin.statistics.make import SplitStats, Stats
from tfrecreg.builtin.statistics.summary import (
    NOT_UTF8,
    Bucket,
    FeatureSummary,
    Image,
    Numbers,
    Texts,
    number_buckets,
)
from tfrecreg.core.images.drawing.charts import Histogram
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import safe, si_bytes

_SPLITS = 3
"""Splits of a feature with a chart."""
_TOP = 5
"""The most frequent texts of a split."""
_TEXT = 40
"""Characters of such a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureValues:
    """The values of a feature in one split. Strings are escaped for terminals, not for HTML."""

    split: str
    chart: Histogram | None
    """None if all values are equal, or none is a number."""
    different: str
    """The number of different texts, in words; empty for numbers."""
    top: tuple[tuple[str, int], ...]
    """The most frequent texts, with their number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFeature:
    """A feature as a page shows it. Strings are escaped for terminals, not for HTML."""

    name: str
    kind: str
    present: int
    missing: int
    """Records with it, and without."""
    per_record: str
    """Numbers of values of a record, in words."""
    range: str
    """The lowest and the highest value, or the sizes, in words; empty without values."""
    nan: int
    """Numbers that are NaN."""
    splits: tuple[FeatureValues, ...]
    """The first splits; of a target with one, it has no name."""


def page_features(stats: Stats, most: int) -> tuple[tuple[PageFeature, ...], int]:
    """The features of all splits by name, and how many more there are."""
    splits = sorted(stats.splits, key=lambda each: in_reading_order(each.statistics.split))
    records = sum(split.statistics.examples for split in splits)
    found: dict[str, list[tuple[SplitStats, FeatureSummary]]] = {}
    for split in splits:
        for feature in split.features:
            found.setdefault(feature.name, []).append((split, feature))
    names = sorted(found)[:most]
    buckets = {
        split.statistics.split: number_buckets(split.statistics.proto, names)
        for split in splits[:_SPLITS]
    }
    shown = tuple(
        _page_feature(name, found[name], records, buckets, several=len(splits) > 1)
        for name in names
    )
    return shown, len(found) - len(names)


def kinds_of(stats: Stats) -> dict[str, str]:
    """The kind of each feature."""
    return {each.name: _kind(each) for split in stats.splits for each in split.features}


def _kind(feature: FeatureSummary) -> str:
    return "bytes" if feature.type == "picture" else feature.type


def _page_feature(
    name: str,
    found: Sequence[tuple[SplitStats, FeatureSummary]],
    records: int,
    buckets: Mapping[str, Mapping[str, Sequence[Bucket]]],
    *,
    several: bool,
) -> PageFeature:
    features = [feature for _, feature in found]
    present = sum(each.present for each in features)
    fewest = min((each.min_values for each in features if each.present), default=0)
    many = max(each.max_values for each in features)
    numbers = [each.detail for each in features if isinstance(each.detail, Numbers)]
    return PageFeature(
        name=safe(name),
        kind=_kind(features[0]),
        present=present,
        missing=records - present,
        per_record=f"{many:,}" if fewest == many else f"{fewest:,} to {many:,}",
        range=_range(features),
        nan=sum(each.nan for each in numbers),
        splits=tuple(
            _values(
                split.statistics.split if several else "",
                feature,
                buckets[split.statistics.split].get(name, ()),
                estimated=name in split.statistics.sketched,
            )
            for split, feature in found
            if split.statistics.split in buckets
        ),
    )


def _range(features: Sequence[FeatureSummary]) -> str:
    details = [each.detail for each in features]
    numbers = [each for each in details if isinstance(each, Numbers) and not math.isnan(each.min)]
    if numbers:
        low, high = min(each.min for each in numbers), max(each.max for each in numbers)
        return f"values {_span(_number(low), _number(high))}"
    images = [each for each in details if isinstance(each, Image)]
    if images:
        low, high = min(each.min for each in images), max(each.max for each in images)
        return f"sizes {_span(si_bytes(round(low)), si_bytes(round(high)))}"
    texts = [(each.values, each.detail) for each in features if isinstance(each.detail, Texts)]
    values = sum(number for number, _ in texts)
    if not values or features[0].type != "bytes":
        return ""
    mean = sum(number * each.mean_length for number, each in texts) / values
    return f"mean size {si_bytes(mean)}"


def _values(
    name: str, feature: FeatureSummary, buckets: Sequence[Bucket], *, estimated: bool
) -> FeatureValues:
    detail = feature.detail
    top: list[tuple[str, int]] = []
    different = ""
    if isinstance(detail, Texts):
        about = "about " if estimated else ""
        different = f"{about}{detail.unique:,} different" if detail.unique > 1 else "all equal"
        if detail.top and detail.top[0][1] > 1:
            named = [(text, count) for text, count in detail.top if text != NOT_UTF8]
            top = [(safe(text, limit=_TEXT), int(count)) for text, count in named[:_TOP]]
    within = f" in {safe(name)}" if name else ""
    heading = f"Distribution of {safe(feature.name)}{within}"
    return FeatureValues(
        split=safe(name),
        chart=_histogram(heading, buckets, feature.type == "int64"),
        different=different,
        top=tuple(top),
    )


def _histogram(heading: str, buckets: Sequence[Bucket], whole: bool) -> Histogram | None:
    """The chart of buckets of equal width; of those that are infinite, the numbers are columns."""
    if not buckets or buckets[0].low == buckets[-1].high:
        return None
    return Histogram(
        heading=heading,
        columns=tuple(_columns(buckets, whole)),
        ends=(_number(buckets[0].low), _number(buckets[-1].high)),
    )


def _columns(buckets: Sequence[Bucket], whole: bool) -> Iterator[tuple[str, int]]:
    last = buckets[-1]
    for each in buckets:
        low, high = each.low, each.high
        if whole:  # a bucket has its lower bound, and only the last one the upper
            low = math.ceil(low)
            high = max(low, math.floor(high) if each is last else math.ceil(high) - 1)
        yield _span(_number(low), _number(high)), round(each.values)


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _number(value: float) -> str:
    if math.isfinite(value) and (
        (value == int(value) and abs(value) < 1e15) or 1e4 < abs(value) < 1e9
    ):
        return f"{value:,.0f}"
    return f"{value:.4g}"

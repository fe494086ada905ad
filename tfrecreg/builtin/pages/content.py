"""The content of a page, as data: figures, features and charts.

Strings from data are escaped for terminals, not for HTML.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from tfrecreg.builtin.pages.records import PageRecord
from tfrecreg.builtin.pages.survey import Survey
from tfrecreg.builtin.releases.diff.result import DiffResult, RecordDiff
from tfrecreg.builtin.statistics.make import SplitStats, Stats
from tfrecreg.builtin.statistics.summary import (
    NOT_UTF8,
    FeatureSummary,
    Image,
    Numbers,
    Texts,
    number_buckets,
)
from tfrecreg.core.check.reports import Report
from tfrecreg.core.images.drawing import class_color, name_of_class
from tfrecreg.core.images.svg import Bars, Histogram, Scatter
from tfrecreg.core.registry.listing import LogEntry
from tfrecreg.core.registry.manifest import Manifest
from tfrecreg.core.schema.labels import IMAGE_LABEL, OBJECT_LABEL
from tfrecreg.core.values.config import Waiver
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes

_COLUMNS = ("split", "shard", "record", "offset", "feature", "key", "detail")
"""Fields of the locations of a finding, in the order of a table's columns."""
Figure = tuple[str, str, str]
"""The name of a number at the top of a page, its value, and more about it, which may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Records side by side."""

    heading: str
    records: tuple[PageRecord, ...]
    note: str = ""
    tags: tuple[str, ...] = ()
    """For each record, words that say why it is shown; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFinding:
    """A finding with its explanation and its records."""

    finding: Finding
    waiver: Waiver | None
    """The waiver that accepts the finding; None if it is not accepted."""
    explanation: str
    """The page that explains the finding's code; empty if this version does not know the code."""
    records: tuple[PageRecord, ...] = ()
    """The records at its first locations."""
    command: str = ""
    """The command that prints a record; empty if no location names a record."""

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The fields and rows of the locations' table, without columns that are always empty."""
        places = self.finding.locations
        rows = [[_cell(getattr(each, name)) for name in _COLUMNS] for each in places]
        used = [any(cells) for cells in zip(*rows, strict=True)]
        return [*compress(_COLUMNS, used)], [[*compress(row, used)] for row in rows]


def _cell(value: str | int | None) -> str:
    return f"{value:,}" if isinstance(value, int) else safe(value or "", limit=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChange:
    """An example that differs between two versions, with its record in each version."""

    change: RecordDiff
    before: PageRecord | None
    after: PageRecord | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDifference:
    """The difference from another version."""

    result: DiffResult
    changes: tuple[PageChange, ...]
    classes: tuple[Bars, ...]
    """Class balance before and after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageProvenance:
    """Origin and history of a build or a release."""

    manifest: Manifest
    about: Mapping[str, str]
    """Description, owner, license and citation, if the configuration has them."""
    history: tuple[LogEntry, ...]
    """Releases of the dataset, the newest first."""
    schema: str
    """Text of the schema; empty without one."""
    code: Mapping[str, str]
    """Python code that loads the target, by framework."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPage:
    """All sections about one target."""

    report: Report
    findings: tuple[PageFinding, ...]
    """The worst findings come first, and accepted findings last."""
    figures: tuple[Figure, ...] = ()
    """At most six."""
    charts: tuple[Bars | Scatter, ...] = ()
    """The charts below the numbers: classes, sizes of images, growth."""
    galleries: tuple[Gallery, ...] = ()
    """A sample of each split, and the extremes."""
    features: tuple[PageFeature, ...] = ()
    no_features: str = ""
    """Why `features` is empty. No reason is given if there are no Examples."""
    more_features: int = 0
    """Number of features that are not shown."""
    more_charts: tuple[Bars | Scatter, ...] = ()
    """Charts about objects, and charts about bytes."""
    statistics: Stats | None = None
    """Statistics; None unless requested."""
    difference: PageDifference | None = None
    provenance: PageProvenance | None = None
    """Origin and history; None for bare files."""

    @property
    def more_findings(self) -> int:
        """Number of findings beyond those that the page shows."""
        return len(self.report.findings) + len(self.report.waived) - len(self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page about one or more targets."""

    targets: tuple[TargetPage, ...]
    notice: str = ""
    """Why no images are shown; empty if they are."""


_SPLITS = 4
"""Maximum number of splits whose names are shown."""


def figures_of(
    report: Report, labels: Mapping[str, Sequence[str]], whole: Survey
) -> Iterator[Figure]:
    """The most important numbers of a target, at most six."""
    names = sorted((name for name in report.splits if name), key=in_reading_order)
    notes = [f"{safe(name, limit=40)} {report.splits[name]:,}" for name in names[:_SPLITS]]
    if len(names) > _SPLITS:
        notes.append(count(len(names) - _SPLITS, "more split"))
    yield "Records", f"{report.records:,}", ", ".join(notes)
    yield "Size", si_bytes(report.bytes), count(report.shards, "shard")
    fails = len(report.failing)
    judged = [f"{fails} {'fails' if fails == 1 else 'fail'}"] if fails else []
    judged += [f"{len(report.waived)} more accepted"] if report.waived else []
    yield "Findings", f"{len(report.findings):,}", ", ".join(judged)
    yield from _classes(labels, whole.classes)
    yield from _images(whole.sizes)
    if whole.objects:
        total = sum(number * images for number, images in whole.objects.items())
        mean = total / sum(whole.objects.values())
        yield "Objects", f"{total:,}", f"{mean:.1f} for each image"


def _classes(
    labels: Mapping[str, Sequence[str]], classes: Mapping[str, Counter[int]]
) -> Iterator[Figure]:
    wanted = (IMAGE_LABEL, OBJECT_LABEL, *sorted(classes))
    feature = next((each for each in wanted if each in classes), None)
    if feature is None:
        return
    total = classes[feature]
    number, most = min(total.items(), key=lambda each: (-each[1], each[0]))
    share = 100 * most / sum(total.values())
    name = name_of_class(feature, number, labels)
    note = f"most frequent: {name}, {share:.0f}\N{NO-BREAK SPACE}%"
    yield "Classes", f"{len(total):,}", note


def _images(sizes: Mapping[tuple[int, int], int]) -> Iterator[Figure]:
    if not sizes:
        return
    width, height = (_median(sizes, side) for side in (0, 1))
    note = "median" if len(sizes) > 1 else "all images"
    more = f", {len(sizes):,} sizes" if len(sizes) > 1 else ""
    yield "Image size", f"{width:,} × {height:,}", f"{note}{more}"


def _median(sizes: Mapping[tuple[int, int], int], side: int) -> int:
    """The median width (side 0) or height (side 1)."""
    left = sum(sizes.values()) / 2
    for size, number in sorted(sizes.items(), key=lambda each: each[0][side]):
        left -= number
        if left <= 0:
            return size[side]
    raise AssertionError("no sizes")


_CHARTED_SPLITS = 3
"""Maximum number of splits per feature that get a chart."""
_TOP = 5
"""Maximum number of frequent texts shown per split."""
_TEXT = 40
"""Maximum number of characters of a frequent text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureValues:
    """The values of a feature in one split. Strings are escaped for terminals, not for HTML."""

    split: str
    chart: Histogram | None
    """The histogram; None if all values are equal, or if there are no numbers."""
    different: str
    """A phrase with the number of different texts; empty for numbers."""
    top: tuple[tuple[str, int], ...]
    """The most frequent texts, with their counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFeature:
    """A feature as a page shows it. Strings are escaped for terminals, not for HTML."""

    name: str
    kind: str
    present: int
    missing: int
    """Number of records without the feature. `present` is the number of records with it."""
    per_record: str
    """How many values a record has, in words."""
    range: str
    """The range of the values, or their sizes, in words; empty without values."""
    nan: int
    """Numbers that are NaN."""
    splits: tuple[FeatureValues, ...]
    """The first splits. If the target has only one split, the name of this split is empty."""


def page_features(stats: Stats, most: int) -> tuple[tuple[PageFeature, ...], int]:
    """The features of all splits, sorted by name, and the number of features left out."""
    splits = sorted(stats.splits, key=lambda each: in_reading_order(each.statistics.split))
    records = sum(split.statistics.examples for split in splits)
    found: dict[str, list[tuple[SplitStats, FeatureSummary]]] = {}
    for split in splits:
        for feature in split.features:
            found.setdefault(feature.name, []).append((split, feature))
    names = sorted(found)[:most]
    buckets = {
        split.statistics.split: number_buckets(split.statistics.proto, names)
        for split in splits[:_CHARTED_SPLITS]
    }
    shown = tuple(
        _page_feature(name, found[name], records, buckets, several=len(splits) > 1)
        for name in names
    )
    return shown, len(found) - len(names)


def _page_feature(
    name: str,
    found: Sequence[tuple[SplitStats, FeatureSummary]],
    records: int,
    buckets: Mapping[str, Mapping[str, Sequence[Any]]],
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
        kind="bytes" if features[0].type == "picture" else features[0].type,
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
    name: str, feature: FeatureSummary, buckets: Sequence[Any], *, estimated: bool
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


def _histogram(heading: str, buckets: Sequence[Any], whole: bool) -> Histogram | None:
    """A chart with a column per bucket. All buckets have the same width."""
    if not buckets or buckets[0].low_value == buckets[-1].high_value:
        return None
    columns = []
    for each in buckets:
        low, high = each.low_value, each.high_value
        if whole:  # a bucket includes its lower bound, and only the last one its upper bound
            low = math.ceil(low)
            high = max(low, math.floor(high) if each is buckets[-1] else math.ceil(high) - 1)
        columns.append((_span(_number(low), _number(high)), round(each.sample_count)))
    ends = _number(buckets[0].low_value), _number(buckets[-1].high_value)
    return Histogram(heading=heading, columns=tuple(columns), ends=ends)


def _span(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _number(value: float) -> str:
    if math.isfinite(value) and (
        (value == int(value) and abs(value) < 1e15) or 1e4 < abs(value) < 1e9
    ):
        return f"{value:,.0f}"
    return f"{value:.4g}"


_BARS = 20
"""Maximum number of bars of a chart. A chart of classes shows the most frequent ones."""
_POINTS = 600
"""Maximum number of points of a scatter chart."""
_OBJECTS = 20
"""Every number of objects below this limit has its own bar."""


def class_charts(
    splits: Mapping[str, Survey], labels: Mapping[str, Sequence[str]]
) -> Iterator[Bars]:
    """For each feature with class numbers, a chart that counts values by class and split."""
    for feature in sorted({name for survey in splits.values() for name in survey.classes}):
        counts = {split: survey.classes.get(feature, Counter()) for split, survey in splits.items()}
        total: Counter[int] = Counter()
        for each in counts.values():
            total.update(each)
        shown = sorted(total)
        note = ""
        if len(shown) > _BARS:
            shown.sort(key=lambda number: (-total[number], number))
            rest = [total[number] for number in shown[_BARS:]]
            few, many = min(rest), max(rest)
            note = f"the {_BARS} most frequent of {len(total):,} classes; the others have "
            note += f"{few:,} each" if few == many else f"{few:,} to {many:,} each"
            shown = shown[:_BARS]
        yield Bars(
            heading=f"Classes: {safe(feature)}",
            unit="values",
            labels=tuple(name_of_class(feature, number, labels) for number in shown),
            series=tuple(
                (safe(split), tuple(each[number] for number in shown))
                for split, each in counts.items()
            ),
            note=note,
            colors=tuple(map(class_color, shown)),
        )


def byte_charts(report: Report, manifest: Manifest | None) -> Iterator[Bars]:
    """Charts of the bytes per feature, and of the sizes of the raw data and of the dataset."""
    if manifest is None:
        return
    largest = sorted(manifest.features.items(), key=lambda each: (-each[1], each[0]))
    shown = largest[:_BARS]
    if shown:
        yield Bars(
            heading="Bytes by feature",
            unit="B",
            labels=tuple(safe(name) for name, _ in shown),
            series=(("values", tuple(size for _, size in shown)),),
            note=f"the {_BARS} largest of {len(largest)}" if len(largest) > _BARS else "",
        )
    if manifest.raw.files:
        sizes = {"raw files": manifest.raw.stored, "unpacked data": manifest.raw.decoded}
        if manifest.raw.decoded == manifest.raw.stored:
            del sizes["unpacked data"]
        sizes |= {"records": report.payload_bytes, "shards": report.bytes}
        yield Bars(
            heading="Size against raw data",
            unit="B",
            labels=tuple(sizes),
            series=(("bytes", tuple(sizes.values())),),
        )


def size_charts(sizes: Mapping[tuple[int, int], int]) -> Iterator[Scatter]:
    """A chart of the sizes of images."""
    if len(sizes) < 2:
        return
    shown = sorted(sizes.items(), key=lambda each: (-each[1], each[0]))[:_POINTS]
    yield Scatter(
        heading="Sizes of images",
        points=tuple((width, height, count) for (width, height), count in shown),
        note=f"the {_POINTS:,} most frequent of {len(sizes):,} sizes"
        if len(sizes) > _POINTS
        else "",
    )


def growth_charts(manifest: Manifest | None, history: Sequence[LogEntry]) -> Iterator[Bars]:
    """A chart of the number of records per release, oldest first. An unreleased build is last."""
    counts = [(entry.version, entry.records) for entry in reversed(history)]
    if manifest is not None and manifest.release is None and counts:
        counts.append(("build", sum(split.records for split in manifest.splits)))
    if len(counts) < 2:
        return
    shown = counts[-_BARS:]
    yield Bars(
        heading="Growth over versions",
        unit="records",
        labels=tuple(version for version, _ in shown),
        series=(("records", tuple(records for _, records in shown)),),
        note=f"the newest {_BARS} of {len(counts)}" if len(counts) > _BARS else "",
    )


def object_charts(splits: Mapping[str, Survey]) -> Iterator[Bars]:
    """Charts of the objects per image, and of the areas of boxes."""
    if not any(survey.objects for survey in splits.values()):
        return
    most = max(max(survey.objects, default=0) for survey in splits.values())
    last = min(most, _OBJECTS)
    yield Bars(
        heading="Objects by image",
        unit="images",
        labels=(*map(str, range(last)), f"{last} or more" if most > last else str(last)),
        series=tuple(
            (
                safe(split),
                (
                    *(survey.objects[number] for number in range(last)),
                    sum(count for number, count in survey.objects.items() if number >= last),
                ),
            )
            for split, survey in splits.items()
        ),
    )
    areas = [survey.areas for survey in splits.values()]
    bins = len(areas[0])
    used = [each for each in range(bins) if any(counts[each] for counts in areas)]
    if not used:
        return
    shown = range(used[0], used[-1] + 1)
    yield Bars(
        heading="Boxes by their share of the image",
        unit="boxes",
        labels=tuple(f"from {100 * 10 ** ((each - bins) / 3):.2g} %" for each in shown),
        series=tuple(
            (safe(split), tuple(survey.areas[each] for each in shown))
            for split, survey in splits.items()
        ),
    )

"""The content of a page, as data, within its size: the renderer makes HTML of it.

Strings that come from data are escaped for terminals by :func:`tfrecreg.core.values.text.safe`,
not for HTML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from tfrecreg.builtin.pages.features import PageFeature
from tfrecreg.builtin.pages.records import PageRecord
from tfrecreg.builtin.pages.survey import Survey
from tfrecreg.builtin.releases.diff.result import DiffResult, RecordDiff
from tfrecreg.builtin.statistics.make import Stats
from tfrecreg.core.check.reports import Report
from tfrecreg.core.images.drawing import name_of_class, overlay
from tfrecreg.core.images.pixels import decode_pixels
from tfrecreg.core.images.svg import Bars, Scatter
from tfrecreg.core.registry.listing import LogEntry
from tfrecreg.core.registry.manifest import Manifest
from tfrecreg.core.schema.labels import IMAGE_LABEL, OBJECT_LABEL
from tfrecreg.core.values.config import Waiver
from tfrecreg.core.values.findings import Finding, Location
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes

_COLUMNS = ("split", "shard", "record", "offset", "feature", "key", "expected and found")
"""Headings of the locations of a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One of the numbers at the top."""

    name: str
    value: str
    note: str
    """More about it, or an empty text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Records side by side."""

    heading: str
    records: tuple[PageRecord, ...]
    note: str = ""
    tags: tuple[str, ...] = ()
    """What each record is an example of, in words; empty where nothing is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLocation:
    """One location of a finding, with its record."""

    location: Location
    record: PageRecord | None
    """None if the location names no record, or the page is full."""
    neighbours: tuple[PageRecord, ...] = ()
    """For a damaged record: the records before and behind it that can be read."""
    command: str = ""
    """Prints the record; empty if the location names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFinding:
    """A finding with its explanation and its records."""

    finding: Finding
    waiver: Waiver | None
    """The waiver that accepts it; None if it is not accepted."""
    explanation: str
    """The page of its code; empty if the code is unknown here."""
    locations: tuple[PageLocation, ...]

    def table(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """Headings and rows of its locations, without columns that no location fills."""
        rows = [
            (
                each.split or "",
                each.shard or "",
                "" if each.record is None else f"{each.record:,}",
                "" if each.offset is None else f"{each.offset:,}",
                each.feature or "",
                each.key or "",
                each.detail or "",
            )
            for each in (place.location for place in self.locations)
        ]
        used = [at for at in range(len(_COLUMNS)) if any(row[at] for row in rows)]
        return (
            tuple(_COLUMNS[at] for at in used),
            tuple(tuple(safe(row[at], limit=400) for at in used) for row in rows),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChange:
    """An example that differs from the other version, with its record on each side."""

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
    """Description, owner, license and citation, as far as the configuration has them."""
    history: tuple[LogEntry, ...]
    """Releases of the dataset, the newest first."""
    schema: str
    """Text of the schema; empty without one."""
    code: Mapping[str, str]
    """Python code that loads it, by framework."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPage:
    """All sections about one target."""

    report: Report
    findings: tuple[PageFinding, ...]
    """The worst first; accepted ones last."""
    figures: tuple[Figure, ...] = ()
    """Six numbers, at most."""
    charts: tuple[Bars | Scatter, ...] = ()
    """The charts below them: classes, sizes of images, growth."""
    galleries: tuple[Gallery, ...] = ()
    """A sample of each split, and the extremes."""
    features: tuple[PageFeature, ...] = ()
    no_features: str = ""
    """Why there are no numbers of features; empty if there are, or no Examples."""
    more_features: int = 0
    """Features that are not shown."""
    more_charts: tuple[Bars | Scatter, ...] = ()
    """Charts about features: objects, and bytes."""
    statistics: Stats | None = None
    """Statistics; None if they were not asked for."""
    difference: PageDifference | None = None
    provenance: PageProvenance | None = None
    """None for bare files."""

    @property
    def more_findings(self) -> int:
        """Findings beyond those that the page shows."""
        return len(self.report.findings) + len(self.report.waived) - len(self.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page about one or more targets."""

    targets: tuple[TargetPage, ...]
    left_out: tuple[str, ...]
    """What the budget left out, one line each."""
    notice: str = ""
    """The reason why no image is shown, or an empty text."""


_FIGURES = 6
_SPLITS = 4
"""Splits that are named."""


def figures_of(
    report: Report,
    labels: Mapping[str, Sequence[str]],
    splits: Mapping[str, Survey],
    history: Sequence[LogEntry],
    kinds: Mapping[str, str],
) -> tuple[Figure, ...]:
    """The most important numbers of a target."""
    return tuple(islice(_figures(report, labels, splits, history, kinds), _FIGURES))


def _figures(
    report: Report,
    labels: Mapping[str, Sequence[str]],
    splits: Mapping[str, Survey],
    history: Sequence[LogEntry],
    kinds: Mapping[str, str],
) -> Iterator[Figure]:
    yield Figure(name="Records", value=f"{report.records:,}", note=_by_split(report.splits))
    yield Figure(name="Size", value=si_bytes(report.bytes), note=count(report.shards, "shard"))
    yield _findings(report)
    yield from _classes(labels, splits)
    yield from _images(splits)
    objects: Counter[int] = Counter()
    for survey in splits.values():
        objects.update(survey.objects)
    if objects:
        total = sum(number * images for number, images in objects.items())
        mean = total / max(sum(objects.values()), 1)
        yield Figure(name="Objects", value=f"{total:,}", note=f"{mean:.1f} for each image")
    if kinds:
        by_kind = Counter(kinds.values())
        note = ", ".join(f"{number} {kind}" for kind, number in sorted(by_kind.items()))
        yield Figure(name="Features", value=f"{len(kinds):,}", note=note)
    if history:
        yield Figure(name="Releases", value=f"{len(history)}", note=f"newest {history[0].version}")
    yield Figure(name="Validators", value=f"{len(report.validators)}", note="ran")


def _by_split(splits: Mapping[str, int]) -> str:
    names = sorted((name for name in splits if name), key=in_reading_order)
    shown = [f"{safe(name, limit=40)} {splits[name]:,}" for name in names[:_SPLITS]]
    more = [f"{count(len(names) - _SPLITS, 'more split')}"] if len(names) > _SPLITS else []
    return ", ".join(shown + more)


def _findings(report: Report) -> Figure:
    notes = []
    if report.failing:
        notes.append(f"{len(report.failing)} {'fails' if len(report.failing) == 1 else 'fail'}")
    if report.waived:
        notes.append(f"{len(report.waived)} more accepted")
    return Figure(name="Findings", value=f"{len(report.findings):,}", note=", ".join(notes))


def _classes(labels: Mapping[str, Sequence[str]], splits: Mapping[str, Survey]) -> Iterator[Figure]:
    features = {name for survey in splits.values() for name in survey.classes}
    wanted = (IMAGE_LABEL, OBJECT_LABEL, *sorted(features))
    feature = next((each for each in wanted if each in features), None)
    if feature is None:
        return
    total: Counter[int] = Counter()
    for survey in splits.values():
        total.update(survey.classes.get(feature, {}))
    number, most = min(total.items(), key=lambda each: (-each[1], each[0]))
    share = 100 * most / sum(total.values())
    name = name_of_class(feature, number, labels)
    note = f"most frequent: {name}, {share:.0f}\N{NO-BREAK SPACE}%"
    yield Figure(name="Classes", value=f"{len(total):,}", note=note)


def _images(splits: Mapping[str, Survey]) -> Iterator[Figure]:
    sizes: Counter[tuple[int, int]] = Counter()
    for survey in splits.values():
        sizes.update(survey.sizes)
    if not sizes:
        return
    width, height = (_median(sizes, side) for side in (0, 1))
    note = "median" if len(sizes) > 1 else "all images"
    more = f", {len(sizes):,} sizes" if len(sizes) > 1 else ""
    yield Figure(name="Image size", value=f"{width:,} × {height:,}", note=f"{note}{more}")


def _median(sizes: Mapping[tuple[int, int], int], side: int) -> int:
    """The median width (side 0) or height (side 1)."""
    left = sum(sizes.values()) / 2
    for size, number in sorted(sizes.items(), key=lambda each: each[0][side]):
        left -= number
        if left <= 0:
            return size[side]
    raise AssertionError("no sizes")


_SHOWN = 3
"""Images of each kind."""
_ENOUGH = 6 * _SHOWN
"""Images of a sample from which on the extremes of it say something."""


def striking_looks(sample: Sequence[PageRecord]) -> Iterator[tuple[str, list[PageRecord]]]:
    """The extremes of a sample, in words, with their records; none if it is small.

    Sharpness is the variance of the Laplacian, the usual measure of focus (Pech-Pacheco et al.,
    "Diatom autofocusing in brightfield microscopy", ICPR 2000), of the thumbnail's grey values.
    """
    judged = []
    for record in sample:
        if record.image is not None:
            grey = decode_pixels(record.image.data)[:, :, :3].mean(axis=2)
            judged.append((record, float(grey.mean()), _sharpness(grey)))
    if len(judged) < _ENOUGH:
        return
    by_light = sorted(judged, key=lambda each: each[1])
    by_focus = sorted(judged, key=lambda each: each[2])
    for words, chosen in (
        ("darkest of the sample", by_light[:_SHOWN]),
        ("lightest of the sample", by_light[: -_SHOWN - 1 : -1]),
        ("least sharp of the sample", by_focus[:_SHOWN]),
    ):
        yield words, [each[0] for each in chosen]


def _sharpness(grey: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    if min(grey.shape) < 3:
        return 0.0
    middle = grey[1:-1, 1:-1]
    around = grey[:-2, 1:-1] + grey[2:, 1:-1] + grey[1:-1, :-2] + grey[1:-1, 2:]
    return float((around - 4 * middle).var())


_RECORD = 1500
"""Bytes of the HTML around a record, about."""


@dataclass(slots=True)
class Budget:
    """Bytes that are left for records. They are spent in order of importance."""

    left: int
    images: int = 0
    """Images that were left out."""
    records: int = 0
    """Records that were left out."""

    def spend(self, record: PageRecord) -> PageRecord | None:
        """The record as the page can have it: whole, without its image, or not at all."""
        size = _RECORD + sum(len(each.name) + len(each.shown) + 60 for each in record.features)
        if size > self.left:
            self.records += 1
            return None
        self.left -= size
        image = record.image
        if image is None:
            return record
        image_size = len(image.data) * 4 // 3 + len(overlay(image.drawing))
        if image_size > self.left:
            self.images += 1
            return replace(record, image=None, problem="the image is left out: the page is full")
        self.left -= image_size
        return record

    def left_out(self) -> tuple[str, ...]:
        """What was left out, one line each."""
        lines = []
        if self.images:
            lines.append(f"{self.images} images")
        if self.records:
            lines.append(f"{self.records} records")
        return tuple(lines)

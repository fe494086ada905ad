"""The content of a page, as data. Strings from data are escaped for terminals, not for HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfrecreg.builtin.pages.features import PageFeature
from tfrecreg.builtin.pages.records import PageRecord
from tfrecreg.builtin.pages.survey import Survey
from tfrecreg.builtin.releases.diff.result import DiffResult, RecordDiff
from tfrecreg.builtin.statistics.make import Stats
from tfrecreg.core.check.reports import Report
from tfrecreg.core.images.drawing import name_of_class
from tfrecreg.core.images.svg import Bars, Scatter
from tfrecreg.core.registry.listing import LogEntry
from tfrecreg.core.registry.manifest import Manifest
from tfrecreg.core.schema.labels import IMAGE_LABEL, OBJECT_LABEL
from tfrecreg.core.values.config import Waiver
from tfrecreg.core.values.findings import Finding
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes

_COLUMNS = ("split", "shard", "record", "offset", "feature", "key", "expected and found")
"""Column headings for the locations of a finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One of the numbers at the top of a page."""

    name: str
    value: str
    note: str
    """More about the value; may be empty."""


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

    def table(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        """The headings and rows of the locations' table, without columns that are always empty."""
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
            for each in self.finding.locations
        ]
        used = [at for at in range(len(_COLUMNS)) if any(row[at] for row in rows)]
        return (
            tuple(_COLUMNS[at] for at in used),
            tuple(tuple(safe(row[at], limit=400) for at in used) for row in rows),
        )


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
    """At most six numbers."""
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
    yield Figure(name="Records", value=f"{report.records:,}", note=", ".join(notes))
    yield Figure(name="Size", value=si_bytes(report.bytes), note=count(report.shards, "shard"))
    yield _findings(report)
    yield from _classes(labels, whole.classes)
    yield from _images(whole.sizes)
    if whole.objects:
        total = sum(number * images for number, images in whole.objects.items())
        mean = total / max(sum(whole.objects.values()), 1)
        yield Figure(name="Objects", value=f"{total:,}", note=f"{mean:.1f} for each image")


def _findings(report: Report) -> Figure:
    notes = []
    if report.failing:
        notes.append(f"{len(report.failing)} {'fails' if len(report.failing) == 1 else 'fail'}")
    if report.waived:
        notes.append(f"{len(report.waived)} more accepted")
    return Figure(name="Findings", value=f"{len(report.findings):,}", note=", ".join(notes))


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
    yield Figure(name="Classes", value=f"{len(total):,}", note=note)


def _images(sizes: Mapping[tuple[int, int], int]) -> Iterator[Figure]:
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

"""The content of a page, as data: `tfrecreg.builtin.pages` renders it as HTML.

Strings that come from data are escaped for terminals by :func:`tfrecreg.core.values.text.safe`, not for HTML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tfrecreg.builtin.pages.features import PageFeature
from tfrecreg.builtin.pages.records import PageRecord
from tfrecreg.builtin.releases.diff.result import DiffResult, RecordDiff
from tfrecreg.builtin.statistics.make import Stats
from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.images.drawing.charts import Bars, Scatter
from tfrecreg.core.registry.listing import LogEntry
from tfrecreg.core.registry.manifest.model import Manifest
from tfrecreg.core.values.findings import Finding, Location
from tfrecreg.core.values.gating import Waiver
from tfrecreg.core.values.text import safe

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

"""The content of a page, as data: `tfrecreg.pages` renders it as HTML.

Strings that come from data are escaped for terminals by :func:`tfrecreg.text.safe`, not for HTML.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tfrecreg.findings import Finding, Location
from tfrecreg.gating import Waiver
from tfrecreg.manifest.model import Manifest
from tfrecreg.operations.catalog import LogEntry
from tfrecreg.operations.diff.result import DiffResult, RecordDiff
from tfrecreg.pages.records import PageRecord
from tfrecreg.reports.model import Report
from tfrecreg.statistics.make import Stats


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Numbers of one split, or of the data before and after."""

    name: str
    values: tuple[int, ...]
    """One per bar of its chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A bar chart."""

    heading: str
    unit: str
    """What is counted: ``records``, or ``B`` for bytes."""
    labels: tuple[str, ...]
    """One per bar."""
    series: tuple[Series, ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Images by width and height."""

    heading: str
    points: tuple[tuple[int, int, int], ...]
    """Width and height in pixels, and the number of images."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gallery:
    """Records side by side."""

    heading: str
    records: tuple[PageRecord, ...]
    note: str = ""


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
    galleries: tuple[Gallery, ...] = ()
    """The contact sheet: a sample, and the extremes."""
    charts: tuple[Bars | Scatter, ...] = ()
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

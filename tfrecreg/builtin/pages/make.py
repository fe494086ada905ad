"""The operations: a page about targets, as a report format as well, and pages of a registry."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

from tfrecreg.builtin.pages.collect import BUDGET, Surveys, make_page, provenance_of
from tfrecreg.builtin.pages.content import Budget, Page
from tfrecreg.builtin.pages.records import PageImage, PagePlace, read_records
from tfrecreg.builtin.pages.render import (
    SiteEntry,
    difference_of,
    render_difference,
    render_index,
    render_page,
    render_records,
)
from tfrecreg.builtin.releases.diff.result import DiffResult
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.report_format import ReportContext, ReportFormat
from tfrecreg.core.check.reports import Report, error_report
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.registry.lock import free_folder, new_folder
from tfrecreg.core.registry.lookup import Build, Release, Resolved, open_release, resolve
from tfrecreg.core.registry.registry import Dataset, RegistryLike, not_yanked, open_registry
from tfrecreg.core.registry.shardset.find import TargetsLike
from tfrecreg.core.registry.shardset.side import find_side
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import ShortRepr, safe
from tfrecreg.core.workers.interface import Engine

_SMALLEST = 500_000


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PageResult(ShortRepr):
    """A page that was made."""

    html: str = field(repr=False)
    """The whole file."""
    reports: tuple[Report, ...]
    """Results of the check, one per target."""
    left_out: tuple[str, ...]
    """What did not fit into the budget, one line each."""

    def _repr_html_(self) -> str:
        """The page in a frame, for a notebook. It can run its script and nothing else."""
        # In such a frame `#place` alone is a place of the notebook.
        inside = escape(self.html.replace('href="#', 'href="about:srcdoc#'))
        names = escape(", ".join(each.target for each in self.reports))
        return (
            f'<iframe title="Page of {names}" sandbox="allow-scripts" srcdoc="{inside}" '
            'width="100%" height="700"></iframe>'
        )


def report(
    targets: TargetsLike = (),
    output: str | os.PathLike[str] | None = None,
    *,
    registry: RegistryLike | None = None,
    options: CheckOptions | None = None,
    against: str | None = None,
    statistics: bool = False,
    budget: int = BUDGET,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> PageResult:
    """Check targets, and make a page that shows the verdict, the findings and the data.

    The page is one HTML file without any request to a network. Making it reads the records once,
    as a check does.
    """
    if budget < _SMALLEST:
        raise UsageError(
            f"a page of {budget:,} bytes has no room for records",
            hint="--budget 8MB is the default; 500kB is the smallest",
        )
    page = make_page(
        targets,
        registry=registry,
        options=options,
        against=against,
        statistics=statistics,
        budget=budget,
        engine=engine,
        progress=progress,
    )
    if page.notice:
        progress.note(page.notice)
    html = render_page(page)
    if output is not None:
        _write(Path(output), html)
    return PageResult(
        html=html, reports=tuple(each.report for each in page.targets), left_out=page.left_out
    )


def show_records(target: Target, places: Sequence[tuple[str, int]]) -> str:
    """A page of records alone, as HTML: by the shard's name, escaped, and the number in it."""
    names = {safe(shard.name): shard.name for shard in target.shards}
    wanted = [PagePlace(names[shard], record) for shard, record in places]
    records = read_records(target, wanted)
    return render_records(target.name, [records[place] for place in wanted])


def diff_page(
    before: str | Resolved,
    after: str | Resolved,
    *,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> tuple[str, DiffResult]:
    """A page of the difference of two versions, as HTML, and the difference itself."""
    first, second = (find_side(each, registry) for each in (before, after))
    found = difference_of(first, second, Budget(BUDGET), progress, engine=engine)
    return render_difference(found), found.result


def _write(path: Path, html: str) -> None:
    """Replace the file at once, so that a page is never half-written."""
    folder = path.parent
    if path.is_dir() or not folder.is_dir():
        raise UsageError(
            f"`{safe(str(path), limit=1000)}` cannot be written: "
            + ("it is a folder" if path.is_dir() else "there is no such folder"),
            hint="name a file in a folder that exists",
        )
    with LocalStorage(folder).create(path.name) as writer:
        writer.write(html.encode("utf-8"))


PAGE_BUDGET = 3_000_000
"""Default size of each page of a site in bytes."""
_SAMPLE = 8
"""Images of a dataset on the first page."""
_BUILD = "build.html"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SiteResult(ShortRepr):
    """A site that was made."""

    folder: str
    pages: int
    """Number of files."""
    bytes: int
    reports: tuple[Report, ...]
    """Results of the checks, one per build and release."""


def site(
    folder: str | os.PathLike[str],
    *,
    registry: RegistryLike | None = None,
    budget: int = PAGE_BUDGET,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> SiteResult:
    """Write a static site of a registry: an index, and a page for each build and release.

    Every build and release whose bytes are on this machine is checked. The pages of others show
    their manifests and say how to fetch them.
    """
    opened = open_registry(registry)
    path = free_folder(folder, opened, "a site")
    reports: list[Report] = []
    entries: list[SiteEntry] = []
    notices: dict[str, None] = {}
    with new_folder(path, "site") as stage:
        for dataset in opened.datasets():
            pages: dict[str, Page] = {}
            problem = ""
            try:
                for version in _states(dataset):
                    pages[version.name] = _page(version, budget, engine, progress)
            except TfrecregError as error:
                problem = f"{error.message}: {error.hint}" if error.hint else error.message
            links = {
                name.partition("@")[2]: _file(name).partition("/")[2]
                for name in pages
                if "@" in name
            }
            for name, page in pages.items():
                _write_in(stage, _file(name), render_page(page, links))
                reports += (each.report for each in page.targets)
                notices.setdefault(page.notice)
            entries.append(_site_entry(dataset, pages, problem))
        _write_in(stage, "index.html", render_index(entries))
        sizes = [entry.size for entry in stage.list() if entry.kind == "file"]
    for notice in filter(None, notices):
        progress.note(notice)
    return SiteResult(folder=str(path), pages=len(sizes), bytes=sum(sizes), reports=tuple(reports))


def _states(dataset: Dataset) -> Iterator[Build | Release]:
    """The releases of a dataset, the newest first, and before them its build."""
    if dataset.is_built():
        yield resolve(dataset.registry, dataset.name)
    for version in reversed(dataset.versions):
        yield open_release(dataset, version)


def _page(
    resolved: Build | Release, budget: int, engine: Engine | None, progress: Progress
) -> Page:
    try:
        return make_page(
            resolved, registry=resolved.registry, budget=budget, engine=engine, progress=progress
        )
    except TfrecregError as error:
        hint = f"; hint: {error.hint}" if error.hint else ""
        page = Surveys().page([error_report(resolved.name, f"{error.message}{hint}")])
        (target,) = page.targets
        return replace(page, targets=(replace(target, provenance=provenance_of(resolved)),))


def _file(name: str) -> str:
    dataset, _, version = name.partition("@")
    return f"{dataset}/{version}.html" if version else f"{dataset}/{_BUILD}"


def _site_entry(dataset: Dataset, pages: Mapping[str, Page], problem: str) -> SiteEntry:
    releases = {name.partition("@")[2]: _file(name) for name in pages if name.partition("@")[2]}
    latest = _latest(dataset)
    newest = f"{dataset.name}@{latest}" if latest else dataset.name
    page = pages.get(newest) or next(iter(pages.values()), None)
    if page is None:
        return SiteEntry(
            name=dataset.name,
            page="",
            status="",
            releases={},
            records=0,
            bytes=0,
            splits={},
            sample=(),
            problem=problem or "never built",
        )
    (target,) = page.targets
    manifest = target.provenance.manifest if target.provenance is not None else None
    counts = {each.name: each.records for each in manifest.splits} if manifest else {}
    return SiteEntry(
        name=dataset.name,
        page=_file(target.report.target),
        status=target.report.status,
        releases=releases,
        records=sum(counts.values()),
        bytes=sum(each.bytes for each in manifest.shards) if manifest else 0,
        splits=dict(sorted(counts.items(), key=lambda each: in_reading_order(each[0]))),
        sample=tuple(_sample_images(page)),
        problem=problem,
    )


def _latest(dataset: Dataset) -> str:
    try:
        versions = not_yanked(dataset)
    except TfrecregError:
        return ""
    return str(versions[-1]) if versions else ""


def _sample_images(page: Page) -> Iterator[PageImage]:
    (target,) = page.targets
    records = [record for gallery in target.galleries[:1] for record in gallery.records]
    for record in [each for each in records if each.image is not None][:_SAMPLE]:
        assert record.image is not None
        yield record.image


def _write_in(stage: Storage, name: str, html: str) -> None:
    with stage.create(name) as writer:
        writer.write(html.encode("utf-8"))


class HtmlFormat(ReportFormat):
    """A page: with records if a check just read them, otherwise without."""

    def __init__(self) -> None:
        self._surveys = Surveys()

    def look(self, target: Target) -> Sequence[Validator]:
        """The survey of the records."""
        return self._surveys.look(target)

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        """The page. It shows no paths that lead anywhere."""
        page = self._surveys.page(reports)
        if page.notice:
            context.note(page.notice)
        return render_page(page)

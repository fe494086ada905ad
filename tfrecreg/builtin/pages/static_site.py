"""The operation: a folder of pages about a whole registry, for a web server of files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tfrecreg.builtin.pages.collect import Surveys, make_page, provenance_of
from tfrecreg.builtin.pages.content import Page
from tfrecreg.builtin.pages.records import PageImage
from tfrecreg.builtin.pages.render import SiteEntry, render_index, render_page
from tfrecreg.core.check.reports.model import Report, error_report
from tfrecreg.core.registry.lock import free_folder, new_folder
from tfrecreg.core.registry.lookup import Build, Release, open_release, resolve
from tfrecreg.core.registry.registry import Dataset, RegistryLike, open_registry
from tfrecreg.core.registry.yanks import not_yanked
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import ShortRepr
from tfrecreg.core.workers.interface import Engine

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
                _write(stage, _file(name), render_page(page, links))
                reports += (each.report for each in page.targets)
                notices.setdefault(page.notice)
            entries.append(_site_entry(dataset, pages, problem))
        _write(stage, "index.html", render_index(entries))
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


def _write(stage: Storage, name: str, html: str) -> None:
    with stage.create(name) as writer:
        writer.write(html.encode("utf-8"))

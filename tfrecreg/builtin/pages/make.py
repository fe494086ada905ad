"""Renders the content of a page as one HTML file, and writes pages and sites.

The file's Content-Security-Policy forbids all requests and allows only its inline styles and
script, which it identifies by their hashes. The page works without the script.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tfrecreg._version import __version__
from tfrecreg.builtin.pages.collect import Surveys, difference_of, make_page, provenance_of
from tfrecreg.builtin.pages.content import Page, TargetPage
from tfrecreg.builtin.pages.records import read_records
from tfrecreg.builtin.releases.diff.result import SPLIT_COUNTS, DiffResult
from tfrecreg.builtin.statistics.summary import STATS_COLUMNS, stats_row
from tfrecreg.core.check.report_format import ReportContext, ReportFormat
from tfrecreg.core.check.reports import Report, error_report
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.images.drawing import overlay
from tfrecreg.core.images.svg import Bars, tokens
from tfrecreg.core.registry.data import Build, Release, Resolved, open_release, resolve
from tfrecreg.core.registry.find import expect_built
from tfrecreg.core.registry.lock import free_folder, new_folder
from tfrecreg.core.registry.registry import Dataset, RegistryLike, not_yanked, open_registry
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.terminal.output import write_text
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import ShortRepr, count, safe, si_bytes
from tfrecreg.core.workers.interface import Engine

_TEMPLATES = Path(__file__).with_name("templates")
_TICKS = re.compile(r"`([^`\n]+)`")


def render_page(page: Page, links: Mapping[str, str] | None = None) -> str:
    """The page as HTML. The same content gives the same bytes."""
    return render("page", page=page, links=defaultdict(str, links or {}))


def render(template: str, **content: Any) -> str:
    """The content as HTML, by the template with this name."""
    style, script = tokens() + _text("page.css"), _text("page.js")
    policy = "; ".join(
        (
            "default-src 'none'",
            "img-src data:",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    html = (
        _environment()
        .get_template(f"{template}.html.j2")
        .render(
            **content,
            policy=policy,
            style=Markup(style),
            script=Markup(script),
            version=__version__,
            ids=itertools.count(1),
        )
    )
    # Names may contain bytes that were not UTF-8: here they are lone surrogates.
    return html.encode("utf-8", "backslashreplace").decode("utf-8")


@functools.cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        size=si_bytes,
        base64=base64.b64encode,
        shown=lambda text: safe(text, limit=400),
        lines=_lines,
        in_order=_in_order,
        next=next,
        overlay=lambda image: overlay(image.drawing),
        ticks=_ticks,
        count=lambda number: f"{number:,}",
        plural=count,
        stats_row=stats_row,
    )
    environment.tests["bars"] = lambda chart: isinstance(chart, Bars)
    environment.tests["small"] = lambda image: image is not None and image.is_small
    environment.globals["stats_columns"] = STATS_COLUMNS
    environment.globals["split_counts"] = SPLIT_COUNTS
    return environment


def _in_order(splits: Iterable[Any], name: str) -> list[Any]:
    """Sort values by their split, in the order in which splits are read."""
    get = itemgetter(int(name)) if name.isdigit() else attrgetter(name)
    return sorted(splits, key=lambda each: in_reading_order(get(each)))


def _ticks(text: str) -> Markup:
    """The text as HTML, with names in backticks as code."""
    return Markup(_TICKS.sub(r"<code>\1</code>", str(escape(text))))


def _lines(text: str) -> str:
    """A text of several lines, with unprintable characters escaped."""
    return "".join(
        each
        if each == "\n" or each.isprintable()
        else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def _hash(text: str) -> str:
    """The source expression (CSP 3, section 2.3.1) that allows `text` inline."""
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


def _text(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PageResult(ShortRepr):
    """A page that was made."""

    html: str = field(repr=False)
    """The whole file."""
    reports: tuple[Report, ...]
    """Results of the check, one per target."""

    def _repr_html_(self) -> str:
        """The page in a frame, for a notebook. The frame can run only its own script."""
        # In such a frame, a bare `#place` would lead to a place of the notebook.
        inside = escape(self.html.replace('href="#', 'href="about:srcdoc#'))
        names = escape(", ".join(each.target for each in self.reports))
        return (
            f'<iframe title="Page of {names}" sandbox="allow-scripts" srcdoc="{inside}" '
            'width="100%" height="700"></iframe>'
        )


def write_page(
    page: Page, output: str | os.PathLike[str] | None = None, progress: Progress = SILENT
) -> PageResult:
    """Render a page as HTML. If `output` is given, write it there completely or not at all."""
    if page.notice:
        progress.note(page.notice)
    html = render_page(page)
    if output is not None:
        write_text(os.fspath(output), html)
    return PageResult(html=html, reports=tuple(each.report for each in page.targets))


def show_records(target: Target, places: Sequence[tuple[str, int]]) -> str:
    """An HTML page with only records. A place is a shard's escaped name and a record number."""
    names = {safe(shard.name): shard.name for shard in target.shards}
    wanted = [(names[shard], record) for shard, record in places]
    records = read_records(target, wanted)
    shown = [records[place] for place in wanted]
    return render("records", target=target.name, records=shown)


def diff_page(
    before: str | Resolved,
    after: str | Resolved,
    *,
    registry: RegistryLike | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> tuple[str, DiffResult]:
    """An HTML page about the difference between two versions, and the difference itself."""
    first, second = (expect_built(each, registry) for each in (before, after))
    found = difference_of(first, second, progress, engine=engine)
    return render("difference", found=found), found.result


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
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> SiteResult:
    """Write a static site of a registry: an index, and a page for each build and release.

    Every build and release whose bytes are on this machine is checked. The page of any other
    version shows its manifest and how to fetch its bytes.
    """
    opened = open_registry(registry)
    path = free_folder(folder, opened)
    reports: list[Report] = []
    entries: list[dict[str, Any]] = []
    notices: dict[str, None] = {}
    with new_folder(path, "site") as stage:
        for dataset in opened.datasets():
            pages: dict[str, Page] = {}
            problem = ""
            try:
                states: list[Build | Release] = []
                if dataset.is_built():
                    states.append(resolve(dataset.registry, dataset.name))
                # Releases follow, the newest first.
                states += (open_release(dataset, each) for each in reversed(dataset.versions))
                for version in states:
                    pages[version.name] = _page(version, engine, progress)
            except TfrecregError as error:
                problem = f"{error.message}: {error.hint}" if error.hint else error.message
                reports.append(error_report(dataset.name, error))
            releases = {name.partition("@")[2]: _file(name) for name in pages if "@" in name}
            links = {version: place.partition("/")[2] for version, place in releases.items()}
            for name, page in pages.items():
                _write_in(stage, _file(name), render_page(page, links))
                reports += (each.report for each in page.targets)
                notices.setdefault(page.notice)
            newest = _newest(dataset, pages)
            entries.append(
                {
                    "name": dataset.name,
                    "target": newest,
                    "page": _file(newest.report.target) if newest is not None else "",
                    "releases": releases,
                    "problem": problem or ("" if newest is not None else "never built"),
                }
            )
        _write_in(stage, "index.html", render("index", entries=entries))
        sizes = [entry.size for entry in stage.list() if entry.kind == "file"]
    for notice in filter(None, notices):
        progress.note(notice)
    return SiteResult(folder=str(path), pages=len(sizes), bytes=sum(sizes), reports=tuple(reports))


def _page(resolved: Build | Release, engine: Engine | None, progress: Progress) -> Page:
    try:
        return make_page(resolved, registry=resolved.registry, engine=engine, progress=progress)
    except TfrecregError as error:
        page = Surveys().page([error_report(resolved.name, error)])
        (target,) = page.targets
        return replace(page, targets=(replace(target, provenance=provenance_of(resolved)),))


def _file(name: str) -> str:
    dataset, _, version = name.partition("@")
    return f"{dataset}/{version}.html" if version else f"{dataset}/{_BUILD}"


def _newest(dataset: Dataset, pages: Mapping[str, Page]) -> TargetPage | None:
    """The newest release that was not yanked, or else the build; None if there is no page."""
    try:
        latest = str(next(reversed(not_yanked(dataset)), ""))
    except TfrecregError:
        latest = ""
    page = pages.get(f"{dataset.name}@{latest}") or next(iter(pages.values()), None)
    return page.targets[0] if page is not None else None


def _write_in(stage: Storage, name: str, html: str) -> None:
    with stage.create(name) as writer:
        writer.write(html.encode("utf-8"))


class HtmlFormat(Surveys, ReportFormat):
    """Renders reports as an HTML page. It shows records only if a check has just read them."""

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        """The page. It shows no local paths."""
        page = self.page(reports)
        if page.notice:
            context.note(page.notice)
        return render_page(page)

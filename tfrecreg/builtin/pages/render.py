"""Renders the content of a page, or the difference between versions, as one HTML file.

The file's Content-Security-Policy forbids all requests and allows only its inline styles and
script, which it identifies by their hashes. The page works without the script.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tfrecreg._version import __version__
from tfrecreg.builtin.pages.content import Page, PageChange, PageDifference, TargetPage
from tfrecreg.builtin.pages.features import class_charts
from tfrecreg.builtin.pages.records import PagePlace, PageRecord, read_records
from tfrecreg.builtin.pages.survey import Survey, SurveyValidator, merged
from tfrecreg.builtin.releases.diff.result import SPLIT_COUNTS, RecordDiff, diff
from tfrecreg.builtin.statistics.summary import STATS_COLUMNS, stats_row
from tfrecreg.core.check.scan.indexes import index_of
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.check.scan.run import run_scan
from tfrecreg.core.images.drawing import overlay
from tfrecreg.core.images.svg import (
    Bars,
    Histogram,
    Scatter,
    bar_chart,
    column_chart,
    scatter_chart,
    tokens,
)
from tfrecreg.core.registry.data import Built
from tfrecreg.core.registry.find import target_of
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

_TEMPLATES = Path(__file__).with_name("templates")
_CHARTS: Mapping[type, Callable[[Any], Markup]] = {
    Bars: bar_chart,
    Histogram: column_chart,
    Scatter: scatter_chart,
}
_TICKS = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteEntry:
    """One dataset on the first page of a site."""

    name: str
    target: TargetPage | None = None
    """Its newest version; None if it was never built."""
    page: str = ""
    """Path of the page about `target`."""
    releases: Mapping[str, str] = field(default_factory=dict)
    """The page of each version, the newest first."""
    problem: str = ""
    """Why there is no page, or why pages are missing; may be empty."""


def render_page(page: Page, links: Mapping[str, str] | None = None) -> str:
    """The page as HTML. The same content gives the same bytes."""
    return _render("page.html.j2", page=page, links=defaultdict(str, links or {}))


def render_index(entries: Sequence[SiteEntry]) -> str:
    """The first page of a site."""
    return _render("index.html.j2", entries=entries)


def render_records(target: str, records: Sequence[PageRecord]) -> str:
    """A page that shows only records."""
    return _render("records.html.j2", target=target, records=records)


def render_difference(found: PageDifference) -> str:
    """A page that shows only the difference between two versions."""
    return _render("difference.html.j2", found=found)


def _render(template: str, **content: Any) -> str:
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
        .get_template(template)
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
        chart=lambda chart: _CHARTS[type(chart)](chart),
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


_CHANGES = 12
"""Maximum number of examples per kind of difference."""


def difference_of(
    before: Built,
    after: Built,
    progress: Progress,
    *,
    surveyed: Mapping[str, Survey] | None = None,
    engine: Engine | None = None,
) -> PageDifference:
    """Compare two versions, and read some of the records that differ.

    Reads only records whose bytes are on this machine.
    """
    engine = engine or LocalEngine(1)
    result = diff(before, after, engine=engine, progress=progress)
    first, second = _target(before), _target(after)
    chosen = [each for kind in result.examples.values() for each in kind[:_CHANGES]]
    gone = {_key_before(each) for each in chosen if each.kind != "added"}
    old = _read(first, _places_of(first, gone))
    here = [each for each in chosen if each.kind != "removed"]
    new = _read(second, {_place(second, each): (each.split, each.key) for each in here})
    changes = tuple(
        PageChange(
            change=each,
            before=old.get(_key_before(each)) if each.kind != "added" else None,
            after=new.get((each.split, each.key)) if each.kind != "removed" else None,
        )
        for each in chosen
    )
    if surveyed is None:
        surveyed = _survey(second, engine) if second is not None else {}
    classes = _balance(_survey(first, engine), surveyed, first.labels) if first is not None else ()
    return PageDifference(result=result, changes=changes, classes=classes)


_Key = tuple[str, str]
"""Split and key of an example."""


def _key_before(change: RecordDiff) -> _Key:
    return change.from_split or change.split, change.from_key or change.key


def _target(found: Built) -> Target | None:
    try:
        return target_of(found)
    except TfrecregError:
        return None  # the bytes are not here: only indexes are compared


def _place(target: Target | None, change: RecordDiff) -> PagePlace:
    shards = target.shards if target is not None else ()
    names = {shard.name.rpartition("/")[2]: shard.name for shard in shards}
    return PagePlace(names.get(change.shard, change.shard), change.record)


def _places_of(target: Target | None, wanted: Collection[_Key]) -> dict[PagePlace, _Key]:
    """The places of the wanted examples, according to the indexes."""
    found: dict[PagePlace, _Key] = {}
    for shard in target.shards if target is not None and wanted else ():
        index = index_of(shard)
        for number in range(len(index) if index is not None else 0):
            assert index is not None
            if (shard.split, index.key(number)) in wanted:
                found[PagePlace(shard.name, number)] = (shard.split, index.key(number))
    return found


def _read(target: Target | None, places: Mapping[PagePlace, _Key]) -> dict[_Key, PageRecord]:
    found = read_records(target, places) if target is not None else {}
    return {places[place]: record for place, record in found.items()}


def _survey(target: Target, engine: Engine) -> dict[str, Survey]:
    validator = SurveyValidator()
    run_scan(target, [validator], engine)
    return validator.splits


def _balance(
    first: Mapping[str, Survey], second: Mapping[str, Survey], labels: Mapping[str, Sequence[str]]
) -> tuple[Bars, ...]:
    """Charts of the classes before and after."""
    sides = {"before": merged(first.values()), "after": merged(second.values())}
    return tuple(class_charts(sides, labels))

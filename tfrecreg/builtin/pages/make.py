"""The operation: check targets and write a page about them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from tfrecreg.builtin.pages.collect import BUDGET, make_page
from tfrecreg.builtin.pages.records import PagePlace, read_records
from tfrecreg.builtin.pages.render import (
    difference_of,
    render_difference,
    render_page,
    render_records,
)
from tfrecreg.builtin.pages.selection import Budget
from tfrecreg.builtin.releases.diff.result import DiffResult
from tfrecreg.core.check.options import CheckOptions
from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.registry.lookup import Resolved
from tfrecreg.core.registry.registry import RegistryLike
from tfrecreg.core.registry.shardset.find import TargetsLike
from tfrecreg.core.registry.shardset.side import find_side
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.progress import SILENT, Progress
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

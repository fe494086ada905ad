"""`tfrecreg stats`.

Statistics for people: a table per split, with a line and a sparkline per feature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console

from tfrecreg.builtin.statistics.summary import STATS_COLUMNS, stats_row
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.output import write_text
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import count, safe

if TYPE_CHECKING:
    from tfrecreg.builtin.statistics.make import SplitStats, Stats
    from tfrecreg.core.workers.interface import Engine


@session_command("stats")
@click.argument("target", shell_complete=complete.targets)
@click.option("--split", metavar="S", help="Show only this split.")
@click.option(
    "--feature",
    "features",
    metavar="GLOB",
    multiple=True,
    help="Show only features that match. Repeatable.",
)
@click.option(
    "--schema",
    metavar="FILE",
    shell_complete=complete.files,
    help="Use this schema instead of the target's own.",
)
@click.option(
    "--pbtxt",
    is_flag=True,
    help="Print the message of TFDV, for tfdv.load_stats_text.",
)
@click.option(
    "--output",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write to FILE instead of stdout.",
)
@jobs_option
def command(
    session: Session,
    target: str,
    split: str | None,
    features: tuple[str, ...],
    schema: str | None,
    pbtxt: bool,
    output: str | None,
    engine: Engine,
) -> None:
    """Show the statistics of the features.

    TARGET is a reference (mnist, mnist@1.0.0, mnist@latest), or a path, URL, folder or glob of
    TFRecord files, which need no registry. Statistics are computed per split. Those of a build or a
    release are cached.
    """
    from tfrecreg.builtin.statistics.make import stats

    if pbtxt and session.as_json:
        raise UsageError("`--pbtxt` and `--json` exclude each other", hint="give one of them")
    found = stats(
        target,
        registry=session.registry,
        split=split,
        features=features,
        schema=schema,
        engine=engine,
        progress=session.progress(),
    )
    if session.as_json:
        session.print_json(found, output)
    elif output is not None:
        write_text(output, found.pbtxt() if pbtxt else _text(session, found))
    elif pbtxt:
        click.echo(found.pbtxt(), nl=False)
    else:
        print_stats(session.out, found)


def _text(session: Session, found: Stats) -> str:

    console = session.out
    with console.capture() as capture:
        print_stats(console, found)
    return capture.get()


def print_stats(console: Console, stats: Stats) -> None:
    """Each split with its features."""
    for number, each in enumerate(stats.splits):
        if number:
            console.print()
        _print_split(console, stats.target, each)


def _print_split(console: Console, target: str, split: SplitStats) -> None:
    told = split.statistics
    name = safe(told.split) or target
    remembered = ", from the cache" if split.cached else ""
    console.print(line((name, "bold"), f": {count(told.examples, 'example')}{remembered}"))
    if told.left_out:
        console.print(line(("  left out: ", "yellow"), str(told.left_out)))
    if told.sketched:
        names = ", ".join(safe(feature) for feature in told.sketched)
        console.print(line("  too many values to count, so estimated: ", names))
    if not split.features:
        return
    table = PlainTable(*STATS_COLUMNS, right=STATS_COLUMNS[2:-1], indent=2)
    for feature in split.features:
        table.add_row(*stats_row(feature))
    console.print(table)

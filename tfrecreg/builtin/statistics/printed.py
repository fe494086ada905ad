"""Statistics for people: a table per split, with a line and a sparkline per feature."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.builtin.statistics.rows import STATS_COLUMNS, stats_row
from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.values.text import count, safe

if TYPE_CHECKING:
    from tfrecreg.builtin.statistics.make import SplitStats, Stats


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

"""The records that `head` shows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.terminal.console import line
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.builtin.look.head import ShownRecord

_STYLES = {"place": "bold", "other": "yellow", "row": "cyan"}


def print_records(console: Console, records: Iterable[ShownRecord]) -> None:
    """Each record with its location and one line per feature."""
    for each in records:
        for kind, label, rest in each.lines():
            hang = len(label) + 2 if kind == "row" else None
            console.print(line((label, _STYLES[kind]), rest, hang=hang))
        for path in each.saved:
            console.print(line(("  saved: ", "green"), safe(path, limit=1 << 16)))

"""The two consoles, the progress bar, and the layout of lines, tables and facts.

Results go to stdout, everything else to stderr. On a terminal, long lines wrap between words with
an indent, and wide tables fold. In a pipe, nothing wraps or folds, so nothing is cut and grep finds
every line. But if `COLUMNS` is set, wide tables fold even in a pipe.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

if TYPE_CHECKING:
    from tfrecreg.core.terminal.progress_bar import ProgressBar

_GAP = 2
"""Width of the gap between two columns of a table."""
_LEAST = 2
"""Minimum width of a column: one wide letter. In a narrower column, rich omits text."""
_ENDLESS = 100_000
"""The width that is used for a pipe if `COLUMNS` is not set."""
_WORD = re.compile(r"\s*\S+(?: (?:[kMGT]?B|%)(?![^\s,;:.)]))*\S*\s*")
"""A word with the spaces around it. A number and its unit count as one word."""


class Line:
    """One line of text, which wraps on terminals only."""

    def __init__(self, text: Text, hang: int) -> None:
        self.text = text
        self.hang = hang

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del options
        if not console.is_terminal:
            yield self.text
            return
        breaks = _breaks(self.text.plain, console.width, self.hang)
        for number, piece in enumerate(self.text.divide(breaks)):
            piece.rstrip()
            yield Text(" " * self.hang) + piece if number else piece


def line(*parts: str | tuple[str, str], hang: int | None = None) -> Line:
    text = Text()
    for part in parts:
        if isinstance(part, str):
            text.append(part)
        else:
            text.append(part[0], style=part[1])
    indent = len(text.plain) - len(text.plain.lstrip(" "))
    return Line(text, indent + 2 if hang is None else hang)


def _breaks(text: str, width: int, hang: int) -> list[int]:
    """The offsets of line breaks. A break comes before a word that would exceed the width. No word
    is split.
    """
    breaks: list[int] = []
    column = 0
    for word in _WORD.finditer(text):
        if column > hang and column + cell_len(word[0].rstrip()) > width:
            breaks.append(word.start())
            column = hang
        column += cell_len(word[0])
    return breaks


class PlainTable:
    """A table without borders and without trailing spaces."""

    def __init__(self, *columns: str, right: Sequence[str] = (), indent: int = 0) -> None:
        self._rows = [columns]
        self._right = [column in right for column in columns]
        self._indent = indent

    def add_row(self, *cells: str) -> None:
        """Add a row. Cells are plain text, never markup."""
        self._rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = not console.is_terminal and _number("COLUMNS") is None
        least = len(self._rows[0]) * (_LEAST + _GAP) - _GAP
        width = _ENDLESS if wide else max(console.width - self._indent, least)
        widths = [max(map(cell_len, cells)) for cells in zip(*self._rows, strict=True)]
        plain = not any("\n" in cell for row in self._rows for cell in row)
        if plain and sum(widths) + _GAP * (len(widths) - 1) <= width:
            bold = console.get_style("bold")
            for number, row in enumerate(self._rows):
                yield Segment(self._laid_out(row, widths), None if number else bold)
                yield Segment.line()
        else:
            yield from self._folded(console, options, width)

    def _laid_out(self, row: Sequence[str], widths: Sequence[int]) -> str:
        """Lay out a row that fits on a line. Rich would do the same, but fifty times as slowly."""
        cells = []
        for cell, width, right in zip(row, widths, self._right, strict=True):
            shown = cell.rstrip() if right else cell
            space = " " * (width - cell_len(shown))
            cells.append(space + shown if right else shown + space)
        return (" " * self._indent + (" " * _GAP).join(cells)).rstrip()

    def _folded(self, console: Console, options: ConsoleOptions, width: int) -> RenderResult:
        from rich.table import Table  # few tables are too wide

        padding = (0, _GAP, 0, 0)
        table = Table(box=None, pad_edge=False, header_style="bold", padding=padding)
        for column, right in zip(self._rows[0], self._right, strict=True):
            justify: Any = "right" if right else "left"
            table.add_column(column, justify=justify, overflow="fold")
        for cells in self._rows[1:]:
            table.add_row(*(Text(cell) for cell in cells))
        # Lines of the caller never wrap, but cells fold.
        inside = options.update(width=width, max_width=width, no_wrap=False, overflow="fold")
        for segments in console.render_lines(table, inside, pad=False):
            row = Text(" " * self._indent)
            for segment in Segment.simplify(segments):
                row.append(segment.text, segment.style)
            row.rstrip()
            yield row


def print_facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    """Labels and values in two columns; continuation lines stay in their column."""
    rows = list(facts)
    width = max((len(label) for label, _ in rows), default=0)
    for label, value in rows:
        head = f"  {label:<{width}}  "
        console.print(line((head, "cyan"), value, hang=len(head)))


def stdout(output: str | None = None) -> Console:
    """The console for results. It prints markup as plain text, and highlights nothing. If the
    caller captures them for the file `output`, it adds no colors and wraps no lines.
    """
    return _console(sys.stdout if output is None else StringIO())


def stderr() -> Console:
    """The console for messages and progress."""
    return _console(sys.stderr)


def _console(file: TextIO) -> Console:
    # Rich prints nothing at width 0, and fails on digits that Python does not parse.
    unusable = [name for name in ("COLUMNS", "LINES") if _number(name) is None]
    return Console(
        file=file,
        # With NO_COLOR, rich would keep bold and dim.
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
        _environ={name: text for name, text in os.environ.items() if name not in unusable},
    )


def _number(name: str) -> int | None:
    """The size in an environment variable; None if it has no usable number."""
    value = os.environ.get(name, "")
    return (int(value) or None) if re.fullmatch("[0-9]{1,5}", value) else None


def print_json_list(document: dict[str, Any], items: Iterable[object]) -> None:
    """Print one JSON document. The items of its last field, `records`, are made during printing."""
    # A task that makes items in a thread of this process redirects `sys.stdout` while it runs.
    out = sys.stdout
    head = json.dumps(document, indent=2, ensure_ascii=True).removesuffix("\n}")
    out.write(f'{head},\n  "records": [')
    separator = "\n    "
    for item in items:
        out.write(f"{separator}{json.dumps(item, ensure_ascii=True)}")
        separator = ",\n    "
    out.write("\n  ]\n}\n")


class ConsoleProgress:
    """A progress bar on stderr if that is a terminal. Notes are always shown."""

    def __init__(self) -> None:
        self._console = stderr()
        self._bar: ProgressBar | None = None

    def start(self, what: str, total: int, unit: str = "records") -> None:
        if not self._console.is_terminal:
            return
        from tfrecreg.core.terminal.progress_bar import ProgressBar  # a pipe needs none

        self._bar = ProgressBar(self._console, what, total, unit)

    def advance(self, records: int, size: int) -> None:
        if self._bar is not None:
            self._bar.advance(records, size)

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def note(self, message: str) -> None:
        self._console.print(Text(message, style="dim"))

"""The two consoles, and the progress bar. Results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tfrecreg.report.layout import line, new_table
from tfrecreg.text import safe, si_bytes

__all__ = [
    "ConsoleProgress",
    "line",
    "new_table",
    "print_json",
    "print_json_list",
    "stderr",
    "stdout",
]


def stdout() -> Console:
    """For results. Nothing in a string is ever taken for markup, an emoji or a number to colour."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False, soft_wrap=True)


def stderr() -> Console:
    """For messages and progress."""
    return Console(file=sys.stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_json(document: object) -> None:
    """One JSON document on stdout, ASCII only, so that no name in it can mislead a terminal."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=True) + "\n")


def print_json_list(document: dict[str, Any], name: str, items: Iterable[object]) -> None:
    """One JSON document on stdout whose last field is a list that is made while it is printed.

    Args:
        document: the other fields.
        name: of the list.
        items: what is in it, each a line.
    """
    head = json.dumps(document, indent=2, ensure_ascii=True).removesuffix("\n}")
    sys.stdout.write(f"{head},\n  {json.dumps(name)}: [")
    separator = "\n    "
    for item in items:
        sys.stdout.write(f"{separator}{json.dumps(item, ensure_ascii=True)}")
        separator = ",\n    "
    sys.stdout.write("\n  ]\n}\n")


class ConsoleProgress:
    """A bar on stderr where that is a terminal, and nothing in a pipe. Notes are always shown."""

    def __init__(self) -> None:
        self._console = stderr()
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def start(self, what: str, total: int, unit: str = "records") -> None:
        if not self._console.is_terminal:
            return
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn(unit, markup=False),
            _Bytes(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._progress.start()
        self._task = self._progress.add_task(safe(what), total=total or None, size=0)

    def advance(self, records: int, size: int) -> None:
        if self._progress is not None and self._task is not None:
            before = self._progress.tasks[0].fields["size"]
            self._progress.update(self._task, advance=records, size=before + size)

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def note(self, message: str) -> None:
        self._console.print(Text(message, style="dim"))


class _Bytes(TextColumn):
    """Bytes so far, and bytes a second."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Any) -> Text:
        size = task.fields.get("size", 0)
        rate = f", {si_bytes(size / task.elapsed)}/s" if task.elapsed else ""
        return Text(f"{si_bytes(size)}{rate}", style="cyan")

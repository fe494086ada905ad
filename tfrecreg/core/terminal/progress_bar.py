"""The progress bar of a terminal and of a notebook."""

from __future__ import annotations

from typing import Any

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from tfrecreg.core.values.text import safe, si_bytes


class ProgressBar:
    """A bar with counts, bytes and the remaining time, shown from the start."""

    def __init__(self, console: Console | None, what: str, total: int, unit: str) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn(unit, markup=False),
            _Bytes(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=console is None,
        )
        self._progress.start()
        self._task = self._progress.add_task(safe(what), total=total or None, size=0)

    def advance(self, records: int, size: int) -> None:
        before = self._progress.tasks[0].fields["size"]
        self._progress.update(self._task, advance=records, size=before + size)

    @property
    def picture(self) -> RenderableType:
        return self._progress.get_renderable()

    def stop(self) -> None:
        self._progress.stop()


class _Bytes(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Any) -> Text:
        size = task.fields.get("size", 0)
        rate = f", {si_bytes(size / task.elapsed)}/s" if task.elapsed else ""
        return Text(f"{si_bytes(size)}{rate}", style="cyan")

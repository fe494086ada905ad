"""Displays handles in notebooks and at Python prompts, and chooses the default progress display."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tfrecreg.builtin.look.head import ShownRecord
from tfrecreg.core.values.progress import SILENT, Progress

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.core.terminal.progress_bar import ProgressBar

_WIDTH = 100
_PRE = '<pre style="line-height:normal">{code}</pre>'


class Head(list[ShownRecord]):
    """A list of records that displays itself."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self))

    def _repr_html_(self) -> str:
        return "".join(record._repr_html_() for record in self)


def both_forms(draw: Callable[[Console], None]) -> dict[str, str]:
    """Return the drawing as HTML and as text. A notebook shows one of them."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        record=True,
        width=_WIDTH,
        force_terminal=True,
        force_jupyter=False,  # Jupyter would show the drawing twice
        highlight=False,
        markup=False,
        emoji=False,
    )
    draw(console)
    html = console.export_html(inline_styles=True, code_format=_PRE, clear=False)
    return {"text/html": html, "text/plain": console.export_text().rstrip()}


_PAUSE = 0.1
"""Seconds between updates of a bar in a notebook. Each update is a message to the browser."""


def shown(progress: Progress | bool) -> Progress:
    """Return the progress that a caller passed. If it is True, choose the kind for this program.

    In a notebook, this is a bar below the cell; in a terminal, it is a bar on stderr. A script
    whose stderr is a file or a pipe shows nothing.
    """
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return SILENT
    # A notebook has imported IPython, and its shell has a kernel.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is not None and getattr(shell, "kernel", None) is not None:
        return NotebookProgress(shell.display_pub)
    if sys.stderr is not None and sys.stderr.isatty():
        from tfrecreg.core.terminal.console import ConsoleProgress

        return ConsoleProgress()
    return SILENT


class NotebookProgress:
    """A bar below the cell. IPython's `DisplayPublisher` shows it, because rich's bars need
    `ipywidgets`.
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self._place: dict[str, str] = {}
        """The identifier of the bar; empty until the bar is shown."""
        self._bar: ProgressBar | None = None
        self._drawn = 0.0

    def start(self, what: str, total: int, unit: str = "records") -> None:
        from tfrecreg.core.terminal.progress_bar import ProgressBar

        self._bar = ProgressBar(None, what, total, unit)
        self._draw(self._bar)

    def advance(self, records: int, size: int) -> None:
        if self._bar is not None:
            self._bar.advance(records, size)
            if monotonic() - self._drawn >= _PAUSE:
                self._draw(self._bar)

    def stop(self) -> None:
        """Draw the bar's last state, then remove the bar. A bar in a terminal ends the same way."""
        if self._bar is not None:
            self._draw(self._bar)
            self._bar = None
            self._show({"text/plain": ""})

    def note(self, message: str) -> None:
        self._publisher.publish({"text/plain": message})

    def _draw(self, bar: ProgressBar) -> None:
        self._show(both_forms(lambda console: console.print(bar.picture)))
        self._drawn = monotonic()

    def _show(self, forms: dict[str, str]) -> None:
        """Show a drawing in place of the previous drawing."""
        there = bool(self._place)
        self._place = self._place or {"display_id": uuid4().hex}
        self._publisher.publish(forms, transient=self._place, update=there)

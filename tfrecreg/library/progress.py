"""The progress that verbs show by default: a bar in a notebook or a terminal, else nothing."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING, Any

from tfrecreg.progress import SILENT, Progress

if TYPE_CHECKING:
    from tfrecreg.commands.progress_bar import ProgressBar

_PAUSE = 0.1
"""Seconds between two pictures of a bar in a notebook: each is a message to the browser."""


def shown(progress: Progress | bool) -> Progress:
    """The progress that a caller gave; for True the one that fits to where this program runs.

    In a notebook that is a bar below the cell, in a terminal one on stderr; a script whose stderr
    is a file or a pipe shows nothing.
    """
    if not isinstance(progress, bool):
        return progress
    if not progress:
        return SILENT
    if _in_notebook():
        return NotebookProgress()
    if sys.stderr is not None and sys.stderr.isatty():
        from tfrecreg.commands.console import ConsoleProgress

        return ConsoleProgress()
    return SILENT


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook. Only a program that is one has imported IPython."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class NotebookProgress:
    """A bar below the cell, drawn by IPython alone: the bars of rich need `ipywidgets`."""

    def __init__(self) -> None:
        self._display: Any = None
        self._bar: ProgressBar | None = None
        self._drawn = 0.0

    def start(self, what: str, total: int, unit: str = "records") -> None:
        from tfrecreg.commands.progress_bar import ProgressBar

        self._bar = ProgressBar(None, what, total, unit)
        self._draw()

    def advance(self, records: int, size: int) -> None:
        if self._bar is not None:
            self._bar.advance(records, size)
            if monotonic() - self._drawn >= _PAUSE:
                self._draw()

    def stop(self) -> None:
        """Draw its end, then nothing, as in a terminal: what is done is what the cell returns."""
        if self._bar is not None:
            self._draw()
            self._bar = None
            self._display.update({"text/plain": ""}, raw=True)

    def note(self, message: str) -> None:
        from IPython.display import display

        display({"text/plain": message}, raw=True)

    def _draw(self) -> None:
        from IPython.display import display

        from tfrecreg.library.notebook import both_forms

        assert self._bar is not None
        bar = self._bar.picture
        forms = both_forms(lambda console: console.print(bar))
        if self._display is None:
            self._display = display(forms, raw=True, display_id=True)
        else:
            self._display.update(forms, raw=True)
        self._drawn = monotonic()

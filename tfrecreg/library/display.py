"""Handles in a notebook or at a Python prompt, and the progress that verbs show by default."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tfrecreg.builtin.look.head import ShownRecord
from tfrecreg.core.values.progress import SILENT, Progress

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.core.registry.lookup import Resolved
    from tfrecreg.core.terminal.progress_bar import ProgressBar

_WIDTH = 100
_PRE = '<pre style="line-height:normal">{code}</pre>'


class Head(list[ShownRecord]):
    """Records, as a list that shows itself."""

    def __repr__(self) -> str:
        return head_text(self)

    def _repr_html_(self) -> str:
        return "".join(record._repr_html_() for record in self)


def version_html(version: Resolved) -> str:
    """A build or a release, as ``tfrecreg show`` prints it, with its table of splits."""
    from tfrecreg.core.terminal.catalog import print_manifest

    title, folder, manifest = version.name, version.folder, version.manifest
    return _html(lambda out: print_manifest(out, title, folder, manifest, brief=True))


def head_text(records: Iterable[ShownRecord]) -> str:
    """Records, as ``tfrecreg head`` prints them."""
    return "\n".join(map(str, records))


def both_forms(draw: Callable[[Console], None]) -> dict[str, str]:
    """What is drawn, for notebooks that show HTML and for those that show text."""
    console = _console(color=True)
    draw(console)
    html = console.export_html(inline_styles=True, code_format=_PRE, clear=False)
    return {"text/html": html, "text/plain": console.export_text().rstrip()}


def _html(draw: Callable[[Console], None]) -> str:
    return both_forms(draw)["text/html"]


def _console(*, color: bool) -> Console:
    from rich.console import Console

    return Console(
        file=io.StringIO(),
        record=True,
        width=_WIDTH,
        force_terminal=color,
        force_jupyter=False,  # it would show the drawing beside the result
        highlight=False,
        markup=False,
        emoji=False,
    )


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
    shell = _kernel()
    if shell is not None:
        return NotebookProgress(shell.display_pub)
    if sys.stderr is not None and sys.stderr.isatty():
        from tfrecreg.core.terminal.console import ConsoleProgress

        return ConsoleProgress()
    return SILENT


def _kernel() -> Any:
    """The shell of IPython if this is the kernel of a notebook; such a program has imported it."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell if getattr(shell, "kernel", None) is not None else None


class NotebookProgress:
    """A bar below the cell, which the kernel itself shows: the bars of rich need `ipywidgets`.

    Args:
        publisher: IPython's `DisplayPublisher`.
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self._place: dict[str, str] = {}
        """Where the bar is, once it was shown."""
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
        """Draw its end, then nothing, as in a terminal: what is done is what the cell returns."""
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
        """Show it where the last one is."""
        there = bool(self._place)
        self._place = self._place or {"display_id": uuid4().hex}
        self._publisher.publish(forms, transient=self._place, update=there)

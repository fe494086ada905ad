"""Handles in a notebook or at a Python prompt: the output of the commands."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tfrecreg.builtin.look.head import ShownRecord

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.core.registry.lookup import Resolved

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
    from tfrecreg.core.terminal.render.catalog import print_manifest

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

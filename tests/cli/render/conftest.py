"""Whole outputs, as a pipe gets them and as a terminal of a given width shows them."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from tfrecreg.cli.render.console import stdout

Render = Callable[[Console], None]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """``pipe(render)``: what a pipe that nobody gave a width receives."""
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def run(render: Render) -> str:
        render(stdout())
        return capsys.readouterr().out

    return run


@pytest.fixture
def terminal():
    """``terminal(render, width)``: what a terminal shows, without its colours."""

    def run(render: Render, width: int, *, colour: bool = False) -> str:
        file = io.StringIO()
        console = Console(
            file=file,
            width=width,
            force_terminal=True,
            color_system="standard" if colour else None,
            highlight=False,
            markup=False,
            emoji=False,
            soft_wrap=True,
        )
        render(console)
        return file.getvalue()

    return run

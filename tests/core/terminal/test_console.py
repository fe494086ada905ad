"""Lines, tables and facts: whole in a pipe, folded on a terminal."""

from __future__ import annotations

import os
import pty
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.terminal.console import PlainTable, _breaks, line, stdout


def test_a_path_is_never_cut(terminal) -> None:
    path = "a/" * 40 + "shard"
    shown = terminal(lambda console: console.print(line(f"see {path} now")), 20)
    assert shown == f"see\n  {path}\n  now\n"
    assert (_breaks("ab cd", 5, 0), _breaks("ab cd", 4, 0)) == ([], [3])


@given(st.text(alphabet="ab \t漢%kB1", max_size=60), st.integers(1, 20), st.integers(0, 6))
def test_wrapping_loses_no_word(text: str, width: int, hang: int) -> None:
    breaks = _breaks(text, width, hang)
    assert breaks == sorted(set(breaks))
    pieces = [text[a:b] for a, b in zip([0, *breaks], [*breaks, len(text)], strict=True)]
    assert "".join(pieces) == text
    assert [word for piece in pieces for word in piece.split()] == text.split()


@pytest.fixture
def table():
    made = PlainTable("name", "records", "about", right=("records",), indent=2)
    made.add_row("mnist", "70,000", "handwritten digits, ten classes, and no more than that")
    made.add_row("[bold]", "7", "")
    return made


def test_a_table_is_whole_in_a_pipe(pipe, table) -> None:
    assert pipe(lambda console: console.print(table)) == (
        "  name    records  about\n"
        "  mnist    70,000  handwritten digits, ten classes, and no more than that\n"
        "  [bold]        7\n"
    )


def test_a_table_folds_on_a_terminal(terminal, table) -> None:
    assert terminal(lambda console: console.print(table), 44) == (
        "  name    records  about\n"
        "  mnist    70,000  handwritten digits, ten\n"
        "                   classes, and no more than\n"
        "                   that\n"
        "  [bold]        7\n"
    )


def test_a_table_keeps_to_columns_in_a_pipe(pipe, table, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    lines = pipe(lambda console: console.print(table)).splitlines()
    assert len(lines) == 5
    assert max(map(len, lines)) <= 44


@pytest.mark.parametrize(("value", "styled"), [("1", False), ("", True), (None, True)])
def test_no_color_leaves_no_style(
    monkeypatch: pytest.MonkeyPatch, value: str | None, styled: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal, os.fdopen(leader, "rb"):
        monkeypatch.setattr(sys, "stdout", terminal)
        stdout().print(line(("bold", "bold red")))
        terminal.flush()
        shown = os.read(leader, 100)
    assert (b"\x1b" in shown) == styled
    assert b"bold" in shown

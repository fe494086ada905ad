"""`TFRECREG_DEBUG=1` adds the traceback of an error: of a command, of a plugin."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_plugin_support import VALIDATOR, InProcess, plant
from hostile_plugin_support import here as here  # the fixture

TRACEBACK = "Traceback (most recent call last):"


@pytest.fixture
def _debug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFRECREG_DEBUG", "1")


@pytest.mark.parametrize("value", [None, "", "0"])
def test_an_error_is_a_line_and_a_hint(cli, tmp_path, monkeypatch, value: str | None) -> None:
    if value is not None:
        monkeypatch.setenv("TFRECREG_DEBUG", value)
    done = cli("-C", tmp_path, "list")
    assert done.code == 2
    assert [line.partition(":")[0] for line in done.err.splitlines()] == ["error", "hint"]


@pytest.mark.usefixtures("_debug")
def test_the_traceback_follows_the_line_and_its_hint(cli, tmp_path: Path) -> None:
    done = cli("-C", tmp_path, "list", "--json")
    assert done.code == 2
    assert done.json["status"] == "error"
    lines = done.err.splitlines()
    assert lines[0].startswith("error: ")
    assert lines[1].startswith("hint: ")
    assert lines[2] == TRACEBACK
    assert any("in open_registry" in line for line in lines)


@pytest.mark.medium
@pytest.mark.usefixtures("_debug")
def test_a_plugin_whose_failure_is_in_the_report(here: InProcess) -> None:
    plant(here.site, VALIDATOR, "def finish(self, target, parts): 1 // 0")
    done = here.check("--json")
    assert done.code == 3
    assert done.json["status"] == "error"
    assert TRACEBACK in done.err
    assert "ZeroDivisionError: " in done.err


@pytest.mark.usefixtures("_debug")
def test_names_in_a_traceback_cannot_steer_a_terminal(here: InProcess) -> None:
    plant(
        here.site, VALIDATOR, "def finish(self, target, parts): raise ValueError(chr(27) + '[2J')"
    )
    done = here.check("--json")
    assert "ValueError: \\x1b[2J" in done.err
    assert "\x1b" not in done.err

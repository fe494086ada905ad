"""`TFRECREG_DEBUG=1` adds the traceback of an error: of a command, of a plugin."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile_plugin_support import InProcess, plant_source, plant_validator
from hostile_plugin_support import here as here  # the fixtures
from hostile_plugin_support import place as place

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


@pytest.mark.usefixtures("_debug")
def test_the_traceback_has_what_the_message_leaves_out(cli, tmp_path: Path) -> None:
    path = tmp_path / "out" / "report.json"
    (tmp_path / "a.tfrecord").touch()
    done = cli("check", tmp_path / "a.tfrecord", "--format", "json", "--output", path)
    assert done.code == 2
    assert done.err.count(TRACEBACK) > 1
    assert "FileNotFoundError: [Errno 2]" in done.err


@pytest.mark.usefixtures("_debug")
def test_a_wrong_option_has_one_too(cli) -> None:
    done = cli("check", "--onyl", "crc")
    assert done.code == 2
    assert done.err.splitlines()[0].startswith("error: No such option")
    assert "click.exceptions.NoSuchOption: " in done.err


@pytest.mark.usefixtures("_debug")
def test_the_traceback_of_a_plugin_is_that_of_its_code(here: InProcess) -> None:
    plant_source(here.site, "def example(self, item): return 1 // 0  # at home")
    code, _, err = here.build()
    assert code == 3
    assert err.splitlines()[0].startswith("error: the source `evil` of `hostile` 6.6 failed on ")
    assert "return 1 // 0  # at home" in err


@pytest.mark.medium
@pytest.mark.usefixtures("_debug")
def test_a_plugin_whose_failure_is_in_the_report(here: InProcess) -> None:
    plant_validator(here.site, "def finish(self, target, parts): 1 // 0")
    done = here.check()
    assert done.code == 3
    assert done.json["status"] == "error"
    assert TRACEBACK in done.err
    assert "ZeroDivisionError: " in done.err


@pytest.mark.usefixtures("_debug")
def test_a_plugin_that_cannot_be_imported(here: InProcess) -> None:
    plant_validator(here.site, "", more="print(chr(27) + 'x')\nimport nowhere_at_all\n")
    done = here.run("plugins", "list")
    assert TRACEBACK in done.err
    assert "No module named 'nowhere_at_all'" in done.err


@pytest.mark.usefixtures("_debug")
def test_names_in_a_traceback_cannot_steer_a_terminal(here: InProcess) -> None:
    plant_validator(here.site, "def finish(self, target, parts): raise ValueError(chr(27) + '[2J')")
    done = here.check()
    assert "ValueError: \\x1b[2J" in done.err
    assert "\x1b" not in done.err

"""`~` at the beginning of a path is the home folder, also where no shell has expanded it."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrecreg


@pytest.fixture
def home(tmp_path: Path, raw: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder, which has the raw data."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert raw == tmp_path / "raw"
    return tmp_path


def test_raw_data(cli, home: Path, registry: Path) -> None:
    done = cli("build", "digits", "--source", "mnist", "--raw=~/raw")
    assert done.code == 0, done.err
    assert f'raw = "{home}/raw"' in (registry / "datasets/digits.toml").read_text()
    assert cli("check", "digits", "--raw=~/raw").code == 0
    assert cli("repair", "digits", "--raw=~/raw").code == 0
    done = cli("check", "digits", "--raw=~/nowhere")
    assert done.code == 2
    assert f"error: the raw data `{home}/nowhere` does not exist" in done.err


def test_the_library(home: Path) -> None:
    digits = tfrecreg.init("~/mine")["digits"]
    build = digits.build(source="mnist", raw="~/raw")
    assert build.check(raw="~/raw").status == "pass"
    assert tfrecreg.open("~/mine").root == str(home / "mine")
    assert len(tfrecreg.data_source("digits", "train", registry="~/mine")) == 60

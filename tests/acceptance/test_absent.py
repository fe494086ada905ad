"""A clone lacks the bytes of data. Each hint about missing bytes is a command that brings them."""

from __future__ import annotations

import json
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from registry_support import write
from shell_support import Shell, open_shell

from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("dvc") is None, reason="the extra `dvc` is missing"),
]

CONFIG = 'source = "mnist"\nraw = "raw"\n'


@pytest.fixture(scope="module")
def cloned(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A clone with `made`, whose stage ran, `later`, whose stage did not run, and the release
    `kept@1.0.0`.
    """
    folder = tmp_path_factory.mktemp("absent")
    shell = open_shell(folder, "origin")
    write_digits(LocalStorage(shell.root / "raw"), train=20, test=10, seed=1)
    (shell.root / ".gitignore").write_text("/raw/\n")
    shell("git init --quiet --initial-branch=main")
    shell("tfrecreg init")
    shell(f"dvc remote add --default store {folder / 'remote'}")
    write(shell.root / "datasets/made.toml", CONFIG)
    shell("tfrecreg pipeline")
    shell("dvc repro --quiet")
    shell("tfrecreg build kept --source mnist --raw raw --release 1.0.0")
    write(shell.root / "datasets/later.toml", CONFIG)
    shell("tfrecreg pipeline made later")
    shell("git add .")
    shell("git commit --quiet --message All")
    shell("dvc push --quiet")
    shell.at(folder)("git clone --quiet origin clone")
    shutil.copytree(shell.root / "raw", folder / "clone/raw")
    return shell.at(folder / "clone")


@pytest.fixture
def clone(cloned: Shell, tmp_path: Path) -> Shell:
    return cloned.at(Path(shutil.copytree(cloned.root, tmp_path / "clone", symlinks=True)))


def hint(said: str, about: str) -> str:
    """The hint of the line that begins so."""
    (found,) = re.findall(rf"^incomplete: `{about}` .*; hint: (.*)$", said, re.MULTILINE)
    return str(found)


def test_each_hint_of_a_check_is_a_command_that_brings_what_is_missing(clone: Shell) -> None:
    said = clone("tfrecreg check", expect=3)
    commands = {name: hint(said, name) for name in ("kept", "later", "made")}
    assert commands == {
        "kept": "dvc pull data/kept.dvc",
        "later": "dvc repro build-later",
        "made": "dvc pull data/made",
    }
    refused = clone("tfrecreg pull made", expect=2)
    assert "hint: dvc pull data/made\n" in refused
    for command in commands.values():
        clone(command)
    assert "incomplete" not in clone("tfrecreg check")


def test_the_bytes_of_the_newest_release_are_enough(clone: Shell) -> None:
    clone("tfrecreg pull kept@1.0.0")
    clone("dvc pull --quiet data/made")
    said = clone("tfrecreg check --ignore-missing --format json --output report.json")
    assert said == "not checked: `later` is not built\n"
    reports = json.loads((clone.root / "report.json").read_text("utf-8"))["reports"]
    assert [(each["target"], each["status"]) for each in reports] == [
        ("kept@1.0.0", "pass"),
        ("made", "pass"),
    ]


def test_the_hint_of_a_release_that_is_not_here_brings_it(clone: Shell) -> None:
    said = clone("tfrecreg check kept@1.0.0", expect=2)
    assert "there is no build in `data/kept`" in said
    assert "hint: tfrecreg pull kept@1.0.0\n" in said
    clone("tfrecreg pull kept@1.0.0")
    clone("tfrecreg check kept@1.0.0")


def test_the_manifest_of_a_build_is_all_that_gate_needs(clone: Shell) -> None:
    clone("dvc pull --quiet data/made/manifest.json")
    assert [each.name for each in (clone.root / "data/made").iterdir()] == ["manifest.json"]
    assert "pass: 0 errors" in clone("tfrecreg gate made --report reports/made/check.json")
    clone("tfrecreg check made", expect=1)

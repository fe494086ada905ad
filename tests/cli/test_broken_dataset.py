"""A file of one dataset that cannot be read: that dataset fails, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SAYS = "`datasets/typo.toml`: `sorce` is not known; did you mean `source`?"


@pytest.fixture
def root(digits_registry: Path) -> Path:
    (digits_registry / "datasets/typo.toml").write_text('sorce = "coco"\n')
    return digits_registry


def test_others_are_listed_and_shown(cli: Any, root: Path) -> None:
    done = cli("-C", root, "list")
    assert done.code == 0
    assert "digits" in done.out
    assert SAYS in " ".join(done.out.split())
    found = {
        each["name"]: each for each in json.loads(cli("-C", root, "list", "--json").out)["datasets"]
    }
    assert {name: each["state"] for name, each in found.items()} == {
        "digits": "released",
        "typo": "broken",
    }
    assert found["typo"]["problem"] == SAYS


@pytest.mark.parametrize(
    "arguments",
    [("check", "digits"), ("check", "digits@1.0.0"), ("show", "digits"), ("log", "digits")],
    ids=" ".join,
)
def test_commands_for_others_work(cli: Any, root: Path, arguments: tuple[str, ...]) -> None:
    assert cli("-C", root, *arguments).code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("build", "typo"),
        ("build", "typo", "--source", "mnist", "--raw", "raw"),
        ("check", "typo"),
        ("show", "typo"),
        ("pipeline", "typo"),
        ("pipeline",),
    ],
    ids=" ".join,
)
def test_a_command_for_it_names_the_key(cli: Any, root: Path, arguments: tuple[str, ...]) -> None:
    done = cli("-C", root, *arguments)
    assert (done.code, done.err.splitlines()[0]) == (2, f"error: {SAYS}")


@pytest.mark.parametrize("targets", [(), ("digits", "typo")])
def test_a_check_of_all_is_incomplete_and_judges_the_others(
    cli: Any, root: Path, targets: tuple[str, ...]
) -> None:
    done = cli("-C", root, "check", *targets, "--json")
    digits, typo = json.loads(done.out)["reports"]
    assert done.code == 3
    assert (digits["target"], digits["status"]) == ("digits", "pass")
    assert (typo["target"], typo["status"]) == ("typo", "error")
    assert typo["errors"][0].startswith(SAYS)


def test_a_check_of_releases_is_incomplete(cli: Any, root: Path) -> None:
    done = cli("-C", root, "audit", "--json")
    assert done.code == 3
    assert json.loads(done.out)["errors"][0].startswith(SAYS)
    assert cli("-C", root, "audit", "digits").code == 0

"""`tfrecreg repair` as a user calls it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests_support import flip, tree

from tfrecreg.cli.digits import write_digits
from tfrecreg.core.storage.local import LocalStorage

FIRST = "digits-train.tfrecord-00000-of-00002"


def test_what_was_made_again_is_told(cli: Any, digits_registry: Path) -> None:
    before = tree(digits_registry / "data")
    shutil.rmtree(digits_registry / "versions")  # an intact copy would be taken from there
    flip(digits_registry / "data/digits" / FIRST, 5100)
    assert cli("-C", digits_registry, "check", "digits").code == 1
    (digits_registry / "data/digits/labels.json").unlink()
    done = cli("-C", digits_registry, "repair", "digits@1.0.0")
    assert (done.code, done.err) == (0, "")
    *lines, last = done.out.splitlines()
    assert lines == [
        "repaired digits@1.0.0, in data/digits",
        f"  {FIRST}: 1 record rebuilt, 99 intact",
        "  labels.json",
    ]
    assert last.startswith("proven: every file agrees with the manifest, digest ")
    assert tree(digits_registry / "data") == before
    assert cli("-C", digits_registry, "check", "digits@1.0.0").code == 0


def test_json(cli: Any, digits_registry: Path) -> None:
    (digits_registry / "data/digits" / FIRST).unlink()
    done = cli("-C", digits_registry, "repair", "digits", "--json")
    found = done.json
    assert found["format_version"] == 1
    assert (found["reference"], found["folder"], found["files"]) == ("digits", "data/digits", [])
    (shard,) = found["shards"]
    assert sorted(shard) == ["blake3", "bytes", "made", "path", "taken"]
    assert (shard["path"], shard["taken"], shard["made"]) == (FIRST, 0, 100)


def test_nothing_to_do(cli: Any, digits_registry: Path) -> None:
    done = cli("-C", digits_registry, "repair", "digits")
    assert (done.code, done.out) == (0, "nothing to repair: every file of digits is unchanged\n")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("digits@9.0.0", "no release `digits@9.0.0`"),
        ("letters", "no dataset `letters`"),
        ("Digits!", "`Digits!` is no"),
    ],
)
def test_reference_that_is_none(
    cli: Any, digits_registry: Path, reference: str, message: str
) -> None:
    done = cli("-C", digits_registry, "repair", reference)
    assert done.code == 2
    assert message in done.err


def test_refusal_is_exit_1(cli: Any, digits_registry: Path) -> None:
    (digits_registry / "data/digits" / FIRST).unlink()
    shutil.rmtree(digits_registry / "raw")
    write_digits(LocalStorage(digits_registry / "raw"), train=200, test=60, seed=2)
    done = cli("-C", digits_registry, "repair", "digits")
    assert done.code == 1
    assert "`digits` cannot be repaired, and nothing was changed" in done.err
    assert "hint: it was made from 4 raw files with tfrecreg " in done.err

"""Sweeps of kills, refusals and power losses restore the start of a deed, and judge each folder
that differs from all earlier folders.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from deeds_support import Deed
from deeds_support import deed as deed  # the fixture
from tests_support import entries, flip

from tfrecreg.core.registry.manifest import MANIFEST_NAME

BUILD = "data/digits"


def damaged(root: Path) -> None:
    flip(root / BUILD / MANIFEST_NAME, 100)


def forbidden(root: Path) -> None:
    (root / BUILD / MANIFEST_NAME).chmod(0o600)


def removed(root: Path) -> None:
    (root / BUILD / MANIFEST_NAME).unlink()


def linked(root: Path) -> None:
    (root / BUILD).rename(root / "moved")
    (root / BUILD).symlink_to("../moved")


def older(root: Path) -> None:
    os.utime(root / BUILD / MANIFEST_NAME, (1, 1))


CHANGES = (damaged, forbidden, removed, linked, older)


def left_behind(root: Path, token: str) -> None:
    (root / f".x.{token}.tmp").write_bytes(b"half of it")


@pytest.mark.medium
@pytest.mark.parametrize("deed", ["build"], indirect=True)
def test_each_folder_is_judged_once_and_put_back(deed: Deed) -> None:
    judged = []

    def judges(change: Callable[[Path], None]) -> bool:
        """Whether the folder is judged after a change."""
        before = len(judged)
        deed.reset()
        assert entries(deed.root) == entries(deed.start)
        change(deed.root)
        deed.judge_once(lambda: judged.append(change), "a question")
        return len(judged) > before

    assert judges(lambda root: None)
    assert not judges(lambda root: None)
    assert [judges(change) for change in CHANGES] == [True] * len(CHANGES)
    assert [judges(change) for change in CHANGES] == [False] * len(CHANGES)
    assert judges(lambda root: left_behind(root, "0123456789abcdef"))
    assert not judges(lambda root: left_behind(root, "fedcba9876543210"))
    deed.judge_once(lambda: judged.append(damaged), "another question")
    assert judged[-1] is damaged


@pytest.mark.parametrize("deed", ["build"], indirect=True)
def test_a_folder_that_was_found_wrong_is_judged_again(deed: Deed) -> None:
    def wrong() -> None:
        raise ValueError("wrong")

    for _ in range(2):
        with pytest.raises(ValueError, match="wrong"):
            deed.judge_once(wrong, "whether it is right")

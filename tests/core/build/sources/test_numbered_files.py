"""Numbered sets of files that lack one, and texts that are not UTF-8."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrecreg.core.build.sources.listing import missing_files, read_text
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RawDataError


def lacking(*paths: str, taken: tuple[str, ...] | None = None) -> list[tuple[str, str]]:
    """The names and details of what is missing."""
    splits = dict.fromkeys(paths if taken is None else taken, "train")
    found = list(missing_files(paths, splits))
    assert all(each.split == "train" and each.code == "SRC112" for each in found)
    return [(each.key, each.detail) for each in found]


def test_a_file_in_the_middle_and_one_at_the_end_are_named() -> None:
    assert lacking("a-00000-of-00003.tar", "a-00002-of-00003.tar") == [
        ("a-00001-of-00003.tar", "`a-00001-of-00003.tar` is missing: 2 of 3 such files exist")
    ]
    assert lacking("d/a-0-of-2048.tar", "d/a-1-of-2048.tar") == [
        ("d/a-2-of-2048.tar", "`d/a-2-of-2048.tar` is missing: 2 of 2,048 such files exist")
    ]


@pytest.mark.parametrize(
    "paths",
    [
        ("a-00000-of-00001.csv",),
        ("a-00000-of-00002.csv", "a-00001-of-00002.csv"),
        ("a-1-of-2.csv", "a-2-of-2.csv"),
        ("a_0_of_2", "a_1_of_2"),
        ("a-00000-of-00002-9fe1.parquet", "a-00001-of-00002-77ab.parquet"),
        ("a.csv", "of-2.csv", "0-of-.csv", ""),
        (),
    ],
)
def test_a_complete_set_and_other_names_lack_nothing(paths: tuple[str, ...]) -> None:
    assert lacking(*paths) == []


def test_each_set_is_looked_at_alone() -> None:
    paths = ("a-0-of-2.csv", "b-1-of-2.csv", "a-0-of-2.json", "x/a-1-of-2.csv", "a-1-of-3.csv")
    assert [name for name, _ in lacking(*paths)] == [
        "a-1-of-2.csv",
        "b-0-of-2.csv",
        "a-1-of-2.json",
        "x/a-0-of-2.csv",
        "a-0-of-3.csv",
    ]


def test_fingerprints_are_not_invented() -> None:
    ((name, detail),) = lacking("a-00000-of-00003-9fe1.parquet", "a-00001-of-00003-77ab.parquet")
    assert name == "a-00002-of-00003*.parquet"
    assert detail == "`a-00002-of-00003*.parquet` is missing: 2 of 3 such files exist"


def test_the_line_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes("\ufeffa\né\n".encode() + b"b\n\xff\n")
    with pytest.raises(RawDataError, match=r"`x\.csv` is not UTF-8: line 4 has the byte 0xff"):
        read_text(LocalStorage(tmp_path), "x.csv")

"""The preview of raw data that a source gets before it is chosen, and its globs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrecreg.core.plugins import recognition
from tfrecreg.core.plugins.recognition import RawPreview
from tfrecreg.core.storage.local import LocalStorage


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b/2.txt", "a/1.txt", ".hidden/3.txt", "top.TXT"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "linked").symlink_to(tmp_path / "a")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    return tmp_path


def test_names_are_in_order_and_links_are_followed(folder: Path) -> None:
    look = RawPreview(LocalStorage(folder))
    assert look.folders() == ["a", "b", "linked"]
    assert look.files() == ["top.TXT"]
    assert look.files("linked") == ["linked/1.txt"]
    assert [each.kind for each in look.entries() if each.path == "broken"] == ["link"]


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("*/*.txt", ["a/1.txt", "b/2.txt", "linked/1.txt"]),
        ("a/*.txt", ["a/1.txt"]),
        ("a/1.txt", ["a/1.txt"]),
        ("a", []),  # a folder
        ("*.txt", []),  # case counts
        ("../*", []),
        ("/a/*", []),
    ],
)
def test_globs_match_files_below_the_folder_only(folder: Path, glob: str, found: list[str]) -> None:
    assert list(RawPreview(LocalStorage(folder)).matches(glob)) == found


def test_the_start_of_a_file_is_bounded(folder: Path) -> None:
    (folder / "long").write_bytes(b"x" * 70_000)
    look = RawPreview(LocalStorage(folder))
    assert len(look.start("long")) == 65_536
    assert look.start("a") == look.start("none") == b""
    for _ in range(19):
        assert look.start("top.TXT") == b"top.TXT"
    assert look.start("top.TXT") == b""  # the 21st


def test_files_beyond_the_bound_are_not_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = RawPreview(LocalStorage(folder))
    assert look.below() == ["top.TXT", "a/1.txt", "b/2.txt", "linked/1.txt"]
    assert look.counted(4, "file") == "4 files"
    monkeypatch.setattr(recognition, "_WALKED", 2)
    assert look.below() == ["top.TXT", "a/1.txt"]
    assert [look.counted(n, "file") for n in (1, 2)] == ["at least 1 file", "at least 2 files"]


def test_folders_beyond_the_bound_look_empty(tmp_path: Path) -> None:
    for number in range(101):
        (tmp_path / f"{number:03}").mkdir()
        (tmp_path / f"{number:03}/x.txt").touch()
    look = RawPreview(LocalStorage(tmp_path))
    seen = [path for path in look.folders() if look.files(path)]
    assert seen == [f"{number:03}" for number in range(99)]  # the folder itself is the first
    assert look.files("000") == ["000/x.txt"]

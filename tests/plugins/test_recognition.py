"""What a source may look at before it is chosen, and what its globs say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrecreg.core.build.planning.detection import glob_strength
from tfrecreg.core.plugins import recognition
from tfrecreg.core.plugins.recognition import RawPreview
from tfrecreg.core.storage.raw import RawFolder


@pytest.mark.parametrize(
    ("glob", "strength"),
    [
        ("data.yaml", "exact"),
        ("labels/*.txt", "exact"),
        ("*/labels/*.txt", "exact"),
        ("Annotations/*.xml", "exact"),
        ("VOC*/Annotations/*.xml", "exact"),
        ("data/*.parquet", "exact"),
        ("*images?idx?-ubyte*", "exact"),
        ("*/_annotations.coco.json", "exact"),
        ("*.csv", "general"),
        ("*/*/*.wav", "general"),
        ("[tT]rain*/*.tar", "general"),
        ("*/train*.parquet", "general"),
        ("*/*.[jJ][pP]*[gG]", "general"),
        ("[tT][eE][sS][tT]/*.x", "general"),
        ("[lL]abels/*.txt", "exact"),
        ("*", "general"),
    ],
)
def test_a_name_in_a_glob_says_more_than_a_suffix(glob: str, strength: str) -> None:
    assert glob_strength(glob) == strength


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b/2.txt", "a/1.txt", ".hidden/3.txt", "top.TXT"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "linked").symlink_to(tmp_path / "a")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    return tmp_path


def test_names_are_in_order_and_links_are_followed(folder: Path) -> None:
    look = RawPreview(RawFolder(folder))
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
    assert list(RawPreview(RawFolder(folder)).matches(glob)) == found


def test_the_start_of_a_file_is_bounded(folder: Path) -> None:
    (folder / "long").write_bytes(b"x" * 70_000)
    look = RawPreview(RawFolder(folder))
    assert len(look.start("long")) == 65_536
    assert look.start("a") == look.start("none") == b""
    for _ in range(19):
        assert look.start("top.TXT") == b"top.TXT"
    assert look.start("top.TXT") == b""  # the 21st


def test_folders_beyond_the_bound_look_empty(tmp_path: Path) -> None:
    for number in range(101):
        (tmp_path / f"{number:03}").mkdir()
        (tmp_path / f"{number:03}/x.txt").touch()
    look = RawPreview(RawFolder(tmp_path))
    seen = [path for path in look.folders() if look.files(path)]
    assert seen == [f"{number:03}" for number in range(99)]  # the folder itself is the first
    assert look.files("000") == ["000/x.txt"]


def test_all_files_of_some_levels(folder: Path) -> None:
    (folder / "a/b/c").mkdir(parents=True)
    (folder / "a/b/2.txt").touch()
    (folder / "a/b/c/3.txt").touch()
    look = RawPreview(RawFolder(folder))
    assert look.below(1) == ["top.TXT", "a/1.txt", "b/2.txt", "linked/1.txt"]
    assert look.below(2)[-2:] == ["a/b/2.txt", "linked/b/2.txt"]
    assert [look.counted(n, "file") for n in (0, 1, 2000)] == ["0 files", "1 file", "2,000 files"]
    assert look.aside(["top.TXT", "a/1.txt"]) == ["b", "broken", "linked"]


@pytest.mark.parametrize("cut", ["names", "folders", "files"])
def test_what_is_beyond_a_bound_is_counted_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    for name in ("1.x", "a/2.x", "b/3.x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    bound, value = {"names": ("MAX_NAMES", 2), "folders": ("_FOLDERS", 2), "files": ("_WALKED", 2)}[
        cut
    ]
    monkeypatch.setattr(recognition, bound, value)
    look = RawPreview(RawFolder(tmp_path))
    found = look.below()
    assert len(found) == 2
    assert look.counted(len(found), "file") == "at least 2 files"


def test_the_end_of_a_file_is_bounded(folder: Path) -> None:
    (folder / "long").write_bytes(b"x" * 70_000 + b"end")
    look = RawPreview(RawFolder(folder))
    assert (len(look.end("long")), look.end("long")[-4:]) == (65_536, b"xend")
    assert look.end("top.TXT") == b"top.TXT"
    assert look.end("none") == b""

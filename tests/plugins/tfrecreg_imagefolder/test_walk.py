from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from tfrecreg.errors import RawDataError
from tfrecreg.storage import LocalStorage
from tfrecreg_imagefolder import walk
from tfrecreg_imagefolder.walk import Walker


def paths(raw, **options) -> list[tuple[str, str]]:
    walker = Walker(LocalStorage(raw.path), **options)
    return [(node.path, node.code) for node in walker.files("")]


def test_files_are_found_however_deep_in_the_order_of_their_bytes(raw) -> None:
    raw.puts("b.png", "a/c/d.png", "a/b.png", "a-b/x.png", "é.png", "Z.png")
    assert [path for path, _ in paths(raw)] == [
        "Z.png",
        "a/b.png",
        "a/c/d.png",
        "a-b/x.png",
        "b.png",
        "é.png",
    ]


def test_hidden_names_are_counted_and_not_looked_into(raw) -> None:
    raw.puts("a.png", ".hidden.png", ".git/b.png", ".git/c.png", "Thumbs.db", "desktop.ini")
    raw.puts("__MACOSX/a/d.png", "Icon\r", "sub/._a.png")
    walker = Walker(LocalStorage(raw.path), split="train")
    assert [node.path for node in walker.files("")] == ["a.png"]
    (left,) = walker.left_out
    assert left == ("train", "hidden", ".git", 7)


def test_extensions_choose_in_any_case_and_with_or_without_dot(raw) -> None:
    raw.puts("a.jpg", "b.JPG", "c.png", "d", "e.jpg.part", "f.jpeg")
    for wanted in (["jpg", "jpeg"], [".JPG", ".Jpeg"]):
        walker = Walker(LocalStorage(raw.path), wanted)
        assert [node.path for node in walker.files("")] == ["a.jpg", "b.JPG", "f.jpeg"]
        assert walker.left_out[0][1:] == ("stray", "c.png", 3)


def test_what_is_no_file_is_bad_and_never_opened(raw) -> None:
    raw.puts("a.png")
    os.mkfifo(raw.path / "fifo.png")
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(raw.path)  # a socket's whole path may have 107 bytes
        try:
            listening.bind("socket.png")
        finally:
            os.chdir(here)
        raw.link("link.png", "fifo.png")
        assert paths(raw) == [
            ("a.png", ""),
            ("fifo.png", "SRC010"),
            ("link.png", "SRC010"),
            ("socket.png", "SRC010"),
        ]


def test_links_are_followed_as_far_as_the_option_says(raw, tmp_path) -> None:
    raw.puts("a.png", "folder/b.png")
    (tmp_path / "outside.png").write_bytes(b"secret")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/c.png").write_bytes(b"secret")
    for name, target in {
        "file": "a.png",
        "dir": "folder",
        "out": "../outside.png",
        "out-absolute": str(tmp_path / "outside.png"),
        "out-dir": "../outside",
        "nowhere": "gone.png",
        "self": "self",
        "in-again": "../raw/a.png",
    }.items():
        raw.link(name, target)
    inside = {"a.png": "", "dir/b.png": "", "file": "", "folder/b.png": "", "in-again": ""}
    bad = {"nowhere": "SRC011", "self": "SRC011"}
    assert dict(paths(raw)) == {
        **inside,
        **bad,
        "out": "",
        "out-absolute": "",
        "out-dir/c.png": "",
    }
    assert dict(paths(raw, symlinks="inside")) == {
        **inside,
        **bad,
        "out": "SRC011",
        "out-absolute": "SRC011",
        "out-dir": "SRC011",
    }
    found = dict(paths(raw, symlinks="none"))
    assert {path for path, code in found.items() if not code} == {"a.png", "folder/b.png"}
    assert set(found.values()) == {"", "SRC011"}


def test_the_raw_folder_itself_may_be_a_link(raw, tmp_path) -> None:
    raw.puts("a/b.png")
    (tmp_path / "link").symlink_to("raw")
    walker = Walker(LocalStorage(tmp_path / "link"))
    assert [node.path for node in walker.files("")] == ["a/b.png"]


def test_a_circle_of_folders_is_found(raw) -> None:
    raw.puts("a/b/c.png")
    raw.link("a/b/up", "..")
    raw.link("a/b/here", ".")
    root = raw.path.stat()
    walker = Walker(LocalStorage(raw.path))
    found = {node.path: node.code for node in walker.files("", above=((root.st_dev, root.st_ino),))}
    assert found == {"a/b/c.png": "", "a/b/here": "SRC011", "a/b/up": "SRC011"}


def test_a_circle_through_a_folder_outside_is_found(raw, tmp_path) -> None:
    raw.puts("a/c.png")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/back").symlink_to("../raw/a")
    raw.link("a/out", "../../outside")
    assert dict(paths(raw)) == {"a/c.png": "", "a/out/back": "SRC011"}


def test_the_same_inode_on_another_device_is_no_circle(raw) -> None:
    """Every file system numbers its folders from the same start."""
    raw.puts("a/b.png")
    status = (raw.path / "a").stat()
    walker = Walker(LocalStorage(raw.path))
    for device, code in ((status.st_dev, "SRC011"), (status.st_dev + 1, "")):
        found = list(walker.files("", above=((device, status.st_ino),)))
        assert [node.code for node in found] == [code]


def test_links_that_multiply_are_refused(raw, monkeypatch) -> None:
    # Each folder has two links to the next one: 2 to the power of 12 ways to the last.
    monkeypatch.setattr(walk, "_MOST_LINKED", 500)
    for number in range(12):
        for name in "xy":
            raw.link(f"d{number}/{name}", f"../d{number + 1}")
    raw.put("d12/a.png")
    with pytest.raises(RawDataError, match="more than 500 symbolic links to folders"):
        paths(raw)
    with pytest.raises(RawDataError, match="more than 500"):
        raw.made()


def test_very_deep_folders_are_refused(raw) -> None:
    raw.put("/".join(["d"] * 70) + "/a.png")
    with pytest.raises(RawDataError, match="lies below 64 folders"):
        paths(raw)


def test_names_that_are_not_utf8_are_bad(raw) -> None:
    raw.put(b"caf\xe9.png")
    raw.put(b"sub\xff/a.png")
    raw.put("café.png")
    assert paths(raw) == [
        ("caf\udce9.png", "SRC012"),
        ("café.png", ""),
        ("sub\udcff/a.png", "SRC012"),
    ] or sorted(code for _, code in paths(raw)) == ["", "SRC012", "SRC012"]


def test_the_longest_names_are_taken(raw) -> None:
    name = "x" * 251 + ".png"
    raw.put(f"{'d' * 255}/{name}")
    assert paths(raw) == [(f"{'d' * 255}/{name}", "")]


def test_a_look_ahead_counts_nothing(raw) -> None:
    raw.puts(".hidden", "a.png")
    walker = Walker(LocalStorage(raw.path))
    assert [node.path for node in walker.spy().look("")] == ["a.png"]
    assert walker.left_out == []

"""Which folders are splits and which are classes; what can be read in two ways is refused."""

from __future__ import annotations

import os
import socket
import unicodedata
from pathlib import Path

import pytest

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RawDataError
from tfrecreg_imagefolder import folder_walker
from tfrecreg_imagefolder.folder_walker import Walker, format_names


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
    (left,) = walker.left_out()
    detail = "7 hidden names, the first of them `.git`"
    assert left == ("train", ".git", "SRC015", detail, 7)


def test_extensions_choose_in_any_case_and_with_or_without_dot(raw) -> None:
    raw.puts("a.jpg", "b.JPG", "c.png", "d", "e.jpg.part", "f.jpeg")
    for wanted in (["jpg", "jpeg"], [".JPG", ".Jpeg"]):
        walker = Walker(LocalStorage(raw.path), wanted)
        assert [node.path for node in walker.files("")] == ["a.jpg", "b.JPG", "f.jpeg"]
        (left,) = walker.left_out()
        assert left.detail == "3 stray names, the first of them `c.png`"


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
    monkeypatch.setattr(folder_walker, "_MAX_LINKED", 500)
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
    with pytest.raises(RawDataError, match="is below 64 folders"):
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
    assert [node.path for node in walker.peek().look("")] == ["a.png"]
    assert list(walker.left_out()) == []


NFC = unicodedata.normalize("NFC", "café")
NFD = unicodedata.normalize("NFD", "café")


def layout(raw, *options: str) -> str:
    return raw.source(*options).describe()["layout"]


def test_folders_of_images_are_classes(raw) -> None:
    raw.puts("cat/1.png", "dog/1.png")
    assert layout(raw) == "class/file"
    assert raw.made().splits() == {"train": 2}


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (("train", "val", "test"), ["test", "train", "validation"]),
        (("TRAIN", "VALIDATION", "TEST"), ["test", "train", "validation"]),
        (("Training", "valid"), ["train", "validation"]),
        (("training", "testing", "dev"), ["test", "train", "validation"]),
        (("val", "dev"), ["dev", "val"]),  # two splits are never made one
        (("train",), ["train"]),
    ],
)
def test_folders_called_like_splits_are_splits(raw, names, splits) -> None:
    for name in names:
        raw.puts(f"{name}/cat/1.png", f"{name}/dog/1.png")
    assert layout(raw) == "split/class/file"
    assert raw.made().splits() == dict.fromkeys(splits, 2)
    assert all(key in ("cat/1.png", "dog/1.png") for _, key in raw.made().written)


def test_a_class_called_like_a_split_is_a_class_where_it_holds_no_folders(raw) -> None:
    raw.puts("test/1.png", "exam/1.png")
    assert layout(raw) == "class/file"
    assert sorted(raw.made().labels().values()) == [(0, "exam"), (1, "test")]


def test_folders_of_splits_beside_others_are_ambiguous(raw) -> None:
    raw.puts("train/cat/1.png", "val/cat/1.png", "annotations/1.png")
    error = raw.error()
    assert error.message == (
        f"`{raw.path}` holds folders of splits (`train`, `val`) and others (`annotations`)"
    )
    assert error.hint == (
        "set `--option layout=split` or `--option layout=class`, or remove the others"
    )
    assert raw.made("layout=split").splits() == {"train": 1, "validation": 1}
    (remark,) = raw.made("layout=split").remarks
    assert remark[:3] == ("train", "annotations", "SRC034")
    assert remark.detail == "1 file in the folder `annotations`, which is not a split"
    assert sorted(raw.source("layout=class").labels()["image/class/label"]) == [
        "annotations",
        "train",
        "val",
    ]


def test_a_folder_that_no_split_reads_is_remarked_with_the_number_of_its_files(raw) -> None:
    raw.puts("train/cat/1.png", "extra/1.png", "extra/2.png", "notes.txt")
    (raw.path / "void").mkdir()
    found = {remark.code: remark for remark in raw.made("layout=split").remarks}
    assert found["SRC034"][1:] == (
        "extra",
        "SRC034",
        "2 files in the folder `extra`, which is not a split",
        2,
    )
    assert (found["SRC015"].key, found["SRC015"].times) == ("notes.txt", 2)


@pytest.mark.parametrize("options", [(), ("split=train=1,test=1",)])
def test_an_empty_class_folder_is_remarked(raw, options: tuple[str, ...]) -> None:
    raw.puts(*(f"cat/{number}.png" for number in range(20)))
    (raw.path / "dog/deep").mkdir(parents=True)
    (remark,) = raw.made(*options).remarks
    assert remark == (
        "train",
        "dog",
        "SRC033",
        "no file in the class folder `dog` is taken",
        1,
    )
    assert raw.source().labels()["image/class/label"] == ["cat", "dog"]


def test_a_class_that_only_one_split_lacks_is_remarked_there(raw) -> None:
    raw.puts("train/cat/1.png", "train/dog/1.png", "test/cat/1.png", "test/dog/x.txt")
    (remark,) = (each for each in raw.made("extensions=png").remarks if each.code == "SRC033")
    assert remark[:2] == ("test", "test/dog")


def test_a_split_without_class_folders_is_refused(raw) -> None:
    raw.puts("train/cat/1.png", "test/1.png")
    error = raw.error()
    assert error.message == "the split folder `test` holds no class folders"
    assert "--option label_file=" in error.hint
    assert raw.error("layout=split").message == error.message


def test_splits_may_have_any_name_where_the_layout_is_said(raw) -> None:
    raw.puts("fold1/cat/1.png", "fold2/cat/1.png", "LICENSE", ".DS_Store")
    assert raw.error().message.startswith(
        "no file is directly in the class folders (`fold1`, `fold2`)"
    )
    made = raw.made("layout=split")
    assert made.splits() == {"fold1": 1, "fold2": 1}
    assert [(each.detail, each.times) for each in made.remarks] == [
        ("1 hidden name, `.DS_Store`", 1),
        ("1 stray name, `LICENSE`", 1),
    ]


def test_a_split_that_no_file_could_be_named_after_is_refused(raw) -> None:
    raw.puts("test-dev/cat/1.png")
    assert raw.error("layout=split").message == (
        "the name of the folder `test-dev` cannot be the name of a split: expected letters, digits "
        "and `_`"
    )


def test_folders_that_are_no_splits_are_refused_as_such(raw) -> None:
    raw.puts("cat/1.png", "dog/1.png")
    error = raw.error("layout=split")
    assert error.message == (f"no folder of `{raw.path}` holds class folders: found `cat`, `dog`")
    assert error.hint == "--option layout=class, if these are the classes"


def test_a_folder_a_level_too_high_is_refused(raw) -> None:
    raw.puts("images/cat/1.png", "images/dog/1.png")
    error = raw.error()
    assert error.message == (
        "no file is directly in the class folders (`images`): they contain only folders"
    )
    assert "name the folder directly above the classes" in error.hint
    assert raw.made("layout=class").labels() == {
        "images/cat/1.png": (0, "images"),
        "images/dog/1.png": (0, "images"),
    }


def test_classes_that_hold_splits_are_refused(raw) -> None:
    raw.puts("bottle/train/good/1.png", "bottle/test/bad/1.png", "bottle/1.png")
    error = raw.error()
    assert error.message == (
        "`bottle` holds folders of splits (`test`, `train`), where a class folder is expected"
    )
    assert "--option layout=class" in error.hint
    assert raw.made("layout=class").splits() == {"train": 3}


def test_nothing_and_no_folder_are_refused(raw, tmp_path) -> None:
    assert raw.error().message == f"`{raw.path}` is empty: expected folders of classes"
    raw.puts("1.png", "2.png", "3.png")
    error = raw.error()
    assert error.message == (
        f"`{raw.path}` holds no folders: expected one for each class or split, found `1.png`, "
        "`2.png` and 1 more"
    )
    assert "label_file" in error.hint
    gone = type(raw)(tmp_path / "gone")
    gone.path.rmdir()
    assert gone.error().message == f"no such folder: `{gone.path}`"


def test_classes_without_any_file_are_refused(raw) -> None:
    (raw.path / "cat").mkdir()
    (raw.path / "dog").mkdir()
    error = raw.error()
    assert error.message == f"`{raw.path}` has no image in its class folders: `cat`, `dog`"


def test_a_split_folder_that_is_a_link_out_is_refused_where_those_are_not_followed(
    raw, tmp_path
) -> None:
    (tmp_path / "elsewhere/cat").mkdir(parents=True)
    (tmp_path / "elsewhere/cat/2.png").write_bytes(raw.put("train/cat/1.png").read_bytes())
    raw.link("test", "../elsewhere")
    error = raw.error("symlinks=inside")
    assert error.message.startswith("the split folder `test` cannot be looked into: a symbolic")
    assert raw.made().splits() == {"train": 1, "test": 1}


def test_a_split_folder_that_is_a_link_to_nothing_is_refused(raw) -> None:
    raw.puts("train/cat/1.png")
    raw.link("test", "../elsewhere")
    assert raw.error().message == (
        "the split folder `test` cannot be looked into: a symbolic link that leads nowhere or in "
        "a circle"
    )


def test_a_split_folder_may_be_a_link_inside(raw) -> None:
    raw.puts("train/cat/1.png", "train/dog/1.png")
    raw.link("val", "train")
    assert raw.made().splits() == {"train": 2, "validation": 2}


def test_split_folders_that_differ_by_case_are_refused(raw) -> None:
    raw.puts("train/cat/1.png", "Train/cat/1.png")
    assert raw.error().message == ("two split folders differ only by case: `Train` and `train`")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("Cat", "cat"), "two class folders differ only by case: `Cat` and `cat`"),
        (
            (NFC, NFD),
            "two class folders differ only by Unicode normal form: `cafe\\u0301` and `caf\\xe9`",
        ),
        (
            ("STRASSE", "straße"),
            "two class folders differ only by case: `STRASSE` and `stra\\xdfe`",
        ),
    ],
)
def test_twins_are_refused_or_kept_apart(raw, names, message) -> None:
    for name in names:
        raw.put(f"{name}/1.png")
    error = raw.error()
    assert error.message == message
    assert error.hint.endswith("--option twins=apart")
    assert sorted(raw.made("twins=apart").labels()) == sorted(f"{name}/1.png" for name in names)
    assert raw.source("twins=apart").labels()["image/class/label"] == sorted(
        names, key=lambda name: name.encode()
    )


def test_twins_in_different_splits_are_refused_too(raw) -> None:
    raw.puts("train/Cat/1.png", "test/cat/1.png")
    assert raw.error().message == "two class folders differ only by case: `Cat` and `cat`"


def test_a_class_whose_name_is_not_utf8_is_refused(raw) -> None:
    raw.put("cat/1.png")
    raw.put(b"caf\xe9/1.png")
    assert raw.error().message == (
        "the name of the class folder `caf\\xe9` is not UTF-8, and labels are"
    )


def test_names_from_the_data_are_escaped_and_few(raw) -> None:
    assert format_names(["a\x1b[2J", "b", "c", "d", "e"]) == "`a\\x1b[2J`, `b`, `c` and 2 more"
    raw.put("a\n\x1b[2Jb/train/x/1.png")
    message = raw.error().message
    assert "`a\\x0a\\x1b[2Jb` holds folders of splits" in message

"""Items of folders of classes: labels, splits, groups, and what is counted beside them.

Which folders are splits and which are classes; what can be read in two ways is refused.
"""

from __future__ import annotations

import os
import unicodedata

import pytest
from image_support import jpeg

from tfrecreg.core.build.sources.interface import RawFile


def test_labels_are_positions_among_the_classes_in_the_order_of_their_bytes(raw) -> None:
    raw.puts("b/1.png", "a/1.png", "B/1.png", "10/1.png", "9/1.png", "é/1.png", "z/1.png")
    names = ["10", "9", "B", "a", "b", "z", "é"]
    assert raw.source("twins=apart").labels() == {"image/class/label": names}
    assert raw.made("twins=apart").labels() == {
        f"{name}/1.png": (number, name) for number, name in enumerate(names)
    }


def test_labels_may_count_from_1_and_0_is_then_no_class(raw) -> None:
    raw.puts("cat/1.png", "dog/1.png")
    assert raw.source("labels_from=1").labels() == {"image/class/label": ["", "cat", "dog"]}
    assert raw.made("labels_from=1").labels() == {"cat/1.png": (1, "cat"), "dog/1.png": (2, "dog")}


def test_classes_of_all_splits_are_numbered_together(raw) -> None:
    raw.puts("train/cat/1.png", "train/dog/1.png", "test/bird/1.png", "test/dog/1.png")
    assert raw.source().labels() == {"image/class/label": ["bird", "cat", "dog"]}
    labels = {
        (split, key): found["image/class/label"]
        for (split, key), found in raw.made().written.items()
    }
    assert labels == {
        ("test", "bird/1.png"): 0,
        ("test", "dog/1.png"): 2,
        ("train", "cat/1.png"): 1,
        ("train", "dog/1.png"): 2,
    }


def test_what_lies_beside_class_folders_is_counted(raw) -> None:
    raw.puts("cat/1.png", "README", "list.txt", ".DS_Store", "cat/.DS_Store", "cat/Thumbs.db")
    os.mkfifo(raw.path / "fifo")
    made = raw.made()
    assert made.splits() == {"train": 1}
    assert made.skipped == {}
    assert made.remarks == [
        (
            "train",
            ".DS_Store",
            "SRC015",
            "hidden files: `.DS_Store`, `cat/.DS_Store`, `cat/Thumbs.db`",
            3,
        ),
        ("train", "README", "SRC015", "stray files: `README`, `fifo`, `list.txt`", 3),
    ]


def test_other_extensions_are_stray_only_where_some_were_asked_for(raw) -> None:
    raw.puts("cat/1.png", "cat/2.PNG")
    raw.put("cat/notes.txt", "notes")
    assert raw.made().codes() == {"cat/notes.txt": "SRC110 format"}
    made = raw.made("extensions=png")
    assert made.skipped == {}
    assert made.splits() == {"train": 2}
    assert [remark.key for remark in made.remarks] == ["cat/notes.txt"]


def test_a_class_behind_a_link_out_of_the_folder_is_a_class(raw, tmp_path) -> None:
    raw.puts("cat/1.png")
    (tmp_path / "dogs").mkdir()
    (tmp_path / "dogs/2.png").write_bytes(raw.put("cat/1.png").read_bytes())
    raw.link("dog", "../dogs")
    size = (tmp_path / "dogs/2.png").stat().st_size
    assert raw.made().labels() == {"cat/1.png": (0, "cat"), "dog/2.png": (1, "dog")}
    assert RawFile("dog/2.png", size, size) in list(raw.source().raw_files())


def test_raw_files_are_the_files_of_the_items(raw) -> None:
    first = raw.put("train/cat/1.png").stat().st_size
    second = raw.put("test/dog/2.png", b"twelve bytes").stat().st_size
    raw.puts("train/.hidden", "LICENSE")
    assert list(raw.source().raw_files()) == [
        RawFile("train/cat/1.png", first, first),
        RawFile("test/dog/2.png", second, second),
    ]
    raw.link("train/cat/2.png", "1.png")
    assert RawFile("train/cat/2.png", first, first) in list(raw.source().raw_files())


def test_an_estimate_is_close_to_the_record(raw) -> None:
    from tfrecreg.core.example.model import encode

    raw.puts("cat/1.png", "a class with a long name/an image with a long name.png")
    raw.put("cat/large.jpg", jpeg(5_000, 4_000, scan=bytes(1_000_000)))
    source = raw.source()
    for item in source.items():
        size = len(encode(source.example(item)))
        assert size <= item.size <= size + 40


NFC = unicodedata.normalize("NFC", "café")
NFD = unicodedata.normalize("NFD", "café")


@pytest.mark.parametrize("names", [("Cat", "cat"), (NFC, NFD), ("STRASSE", "straße")])
def test_twins_are_refused_or_kept_apart(raw, names) -> None:
    for name in names:
        raw.put(f"{name}/1.png")
    raw.error()
    assert sorted(raw.made("twins=apart").labels()) == sorted(f"{name}/1.png" for name in names)
    assert raw.source("twins=apart").labels()["image/class/label"] == sorted(
        names, key=lambda name: name.encode()
    )


def layout(raw, *options: str) -> str:
    return raw.source(*options).describe()["layout"]


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
    raw.error()
    assert raw.made("layout=split").splits() == {"train": 1, "validation": 1}
    (remark,) = raw.made("layout=split").remarks
    assert remark[:3] == ("train", "annotations/1.png", "SRC015")
    assert sorted(raw.source("layout=class").labels()["image/class/label"]) == [
        "annotations",
        "train",
        "val",
    ]


def test_folders_of_splits_within_a_class_are_refused(raw) -> None:
    raw.puts("cat/train/1.png", "cat/test/2.png", "dog/1.png")
    assert raw.error().message == "the class folder `cat` holds the split folder `test`"
    assert raw.made("layout=class").splits() == {"train": 3}


def test_the_files_of_a_folder_that_no_split_reads_are_counted(raw) -> None:
    raw.puts("train/cat/1.png", "extra/1.png", "extra/2.png", "notes.txt")
    (raw.path / "void").mkdir()
    (remark,) = raw.made("layout=split").remarks
    assert remark[:3] == ("train", "extra/1.png", "SRC015")
    assert remark.times == 4


def test_an_empty_class_folder_is_remarked(raw) -> None:
    raw.puts(*(f"cat/{number}.png" for number in range(20)))
    (raw.path / "dog/deep").mkdir(parents=True)
    (remark,) = raw.made().remarks
    assert (remark.split, remark.key, remark.code, remark.times) == (
        "train",
        "dog",
        "SRC118",
        1,
    )
    assert raw.source().labels()["image/class/label"] == ["cat", "dog"]


def test_a_class_that_only_one_split_lacks_is_remarked_there(raw) -> None:
    raw.puts("train/cat/1.png", "train/dog/1.png", "test/cat/1.png", "test/dog/x.txt")
    (remark,) = (each for each in raw.made("extensions=png").remarks if each.code == "SRC118")
    assert remark[:2] == ("test", "test/dog")


def test_splits_may_have_any_name_where_the_layout_is_said(raw) -> None:
    raw.puts("fold1/cat/1.png", "fold2/cat/1.png", "LICENSE", ".DS_Store")
    raw.error()
    made = raw.made("layout=split")
    assert made.splits() == {"fold1": 1, "fold2": 1}
    assert [(each.key, each.times) for each in made.remarks] == [(".DS_Store", 1), ("LICENSE", 1)]

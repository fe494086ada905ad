"""Which folders are splits and which are classes; what can be read in two ways is refused."""

from __future__ import annotations

import unicodedata

import pytest

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
    raw.error()
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


def test_splits_may_have_any_name_where_the_layout_is_said(raw) -> None:
    raw.puts("fold1/cat/1.png", "fold2/cat/1.png", "LICENSE", ".DS_Store")
    raw.error()
    made = raw.made("layout=split")
    assert made.splits() == {"fold1": 1, "fold2": 1}
    assert [(each.detail, each.times) for each in made.remarks] == [
        ("1 hidden name, `.DS_Store`", 1),
        ("1 stray name, `LICENSE`", 1),
    ]

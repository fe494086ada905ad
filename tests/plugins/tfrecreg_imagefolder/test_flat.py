"""Flat folders: the label file says what the pictures are."""

from __future__ import annotations

import os

import pytest


def test_a_table_labels_the_pictures_it_names(raw) -> None:
    raw.puts("a.png", "b.png", "deep/c.png", "unnamed.png", "LICENSE")
    raw.put("labels.csv", "file,label\na.png,dog\nb.png,cat\n./deep/c.png,dog\n")
    made = raw.made("label_file=labels.csv")
    assert made.labels() == {"a.png": (1, "dog"), "b.png": (0, "cat"), "deep/c.png": (1, "dog")}
    assert made.skipped == {}
    assert [(each.detail, each.times) for each in made.remarks] == [
        ("2 stray names, the first of them `LICENSE`", 2)
    ]
    assert raw.source("label_file=labels.csv").labels() == {"image/class/label": ["cat", "dog"]}
    assert raw.source("label_file=labels.csv").describe()["layout"] == "files, labelled by a file"
    assert raw.made("label_file=labels.csv", "layout=flat").labels() == made.labels()


def test_a_name_without_its_extension_is_enough_where_it_is_one_file(raw) -> None:
    raw.puts("a.jpg", "b.png", "b.jpg")
    raw.put("labels.csv", "id,breed\na,dog\nb,cat\n")
    made = raw.made("label_file=labels.csv")
    assert made.labels() == {"a.jpg": (0, "dog")}
    assert made.skipped == {
        ("train", "b"): ("SRC013", "line 3 of the label file may mean any of `b.jpg`, `b.png`")
    }


def test_synsets_label_files_in_the_order_of_their_names(raw) -> None:
    raw.puts(*(f"ILSVRC2012_val_{number:08}.JPEG" for number in (3, 1, 2)))
    raw.put("synsets.txt", "n02\nn01\nn02\n")
    made = raw.made("label_file=synsets.txt")
    assert made.labels() == {
        "ILSVRC2012_val_00000001.JPEG": (1, "n02"),
        "ILSVRC2012_val_00000002.JPEG": (0, "n01"),
        "ILSVRC2012_val_00000003.JPEG": (1, "n02"),
    }
    assert made.remarks == []


def test_labels_that_do_not_match_the_files_in_number_are_refused(raw) -> None:
    raw.puts("1.png", "2.png", "3.png")
    raw.put("synsets.txt", "n02\nn01\n")
    error = raw.error("label_file=synsets.txt")
    assert error.message == (
        "the label file `synsets.txt` has 2 labels, and there are 3 files to label"
    )
    assert "extensions" in error.hint


def test_every_line_is_accounted_for(raw, tmp_path) -> None:
    (tmp_path / "outside.png").write_bytes(b"secret")
    raw.puts("a.png", ".hidden.png")
    os.mkfifo(raw.path / "fifo.png")
    raw.link("out.png", "../outside.png")
    lines = [
        "a.png,cat",
        "gone.png,cat",
        "../outside.png,cat",
        "/etc/passwd,cat",
        "out.png,dog",
        "fifo.png,dog",
        ".hidden.png,cat",
        "nolabel.png,",
        ",cat",
    ]
    raw.put("labels.csv", "\n".join(lines))
    made = raw.made("label_file=labels.csv", "symlinks=inside")
    assert made.labels() == {"a.png": (0, "cat")}
    assert made.codes() == {
        "../outside.png": "SRC013",
        ".hidden.png": "SRC013",
        "/etc/passwd": "SRC013",
        "fifo.png": "SRC010",
        "gone.png": "SRC013",
        "line 9": "SRC013",
        "nolabel.png": "SRC013",
        "out.png": "SRC011",
    }
    details = {key: detail for (_, key), (_, detail) in made.skipped.items()}
    assert details["gone.png"] == "line 2 of the label file names it, and it is not there"
    assert details["nolabel.png"] == "line 8 of the label file has no label"
    assert details["line 9"] == "line 9 of the label file has no file"


def test_a_picture_that_two_lines_name_is_refused(raw) -> None:
    raw.puts("a.png", "b.png")
    raw.put("labels.csv", "a.png,cat\nb.png,cat\na.png,dog\n")
    error = raw.error("label_file=labels.csv")
    assert error.message == "lines 1 and 3 of the label file both name `a.png`"


def test_a_label_file_that_fits_nothing_is_refused(raw) -> None:
    raw.puts("a.png")
    raw.put("labels.csv", "x.png,cat\n")
    error = raw.error("label_file=labels.csv")
    assert error.message == f"the label file `labels.csv` labels no picture of `{raw.path}`"


def test_a_column_of_splits_is_taken_in_its_normal_spelling(raw) -> None:
    raw.puts("a.png", "b.png", "c.png")
    raw.put("labels.csv", "split,file,label\nTRAIN,a.png,cat\nVAL,b.png,cat\nTEST,c.png,dog\n")
    assert raw.made("label_file=labels.csv").splits() == {"train": 1, "validation": 1, "test": 1}
    error = raw.error("label_file=labels.csv", "split=train=1,test=1")
    assert error.message == (
        "`split` deals pictures to splits, and the label file `labels.csv` names theirs: `TEST`, "
        "`TRAIN`, `VAL`"
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("train,a.png,cat\n,b.png,cat\n", "names the split of some pictures and not of all"),
        (
            "train,a.png,cat\nTrain,b.png,cat\n",
            "two splits differ only by case: `Train` and `train`",
        ),
        ("my split,a.png,cat\nx,b.png,cat\n", "has `my split` for a split: expected letters"),
    ],
)
def test_splits_that_cannot_be_told_are_refused(raw, rows, message) -> None:
    raw.puts("a.png", "b.png")
    raw.put("labels.csv", "split,file,label\n" + rows)
    assert message in raw.error("label_file=labels.csv").message


def test_labels_that_are_twins_are_refused_or_kept_apart(raw) -> None:
    raw.puts("a.png", "b.png")
    raw.put("labels.csv", "a.png,Cat\nb.png,cat\n")
    error = raw.error("label_file=labels.csv")
    assert error.message == "two labels differ only by case: `Cat` and `cat`"
    assert raw.made("label_file=labels.csv", "twins=apart").labels() == {
        "a.png": (0, "Cat"),
        "b.png": (1, "cat"),
    }


def test_fractions_and_groups_work_on_paths(raw) -> None:
    raw.puts(*(f"p{number}_{view}.png" for number in range(30) for view in range(2)))
    lines = [f"p{number}_{view}.png,cat" for number in range(30) for view in range(2)]
    raw.put("labels.csv", "\n".join(lines))
    options = ("label_file=labels.csv", "split=train=0.5,test=0.5", "group=^(p[0-9]+)_")
    splits: dict[str, set[str]] = {}
    for split, key in raw.made(*options).written:
        splits.setdefault(key.split("_")[0], set()).add(split)
    assert {len(each) for each in splits.values()} == {1}
    assert len(splits) == 30
    assert {split for each in splits.values() for split in each} == {"train", "test"}


@pytest.mark.parametrize("name", ["labels.csv", ".labels.csv", "meta/labels"])
def test_the_label_file_is_not_left_out(raw, name) -> None:
    raw.puts("a.png")
    raw.put(name, "a.png,cat\n")
    made = raw.made(f"label_file={name}", "extensions=png")
    assert made.splits() == {"train": 1}
    assert made.remarks == []


def test_the_label_file_is_a_raw_file_and_no_item(raw) -> None:
    raw.puts("a.png")
    size = raw.put("labels.csv", "a.png,cat\n").stat().st_size
    files = {file.path: file.stored for file in raw.source("label_file=labels.csv").raw_files()}
    assert files["labels.csv"] == size
    assert sorted(files) == ["a.png", "labels.csv"]

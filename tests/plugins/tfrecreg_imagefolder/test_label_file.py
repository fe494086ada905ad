"""Flat folders: the label file says what the images are."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RawDataError, TfrecregError
from tfrecreg_imagefolder.label_file import read_label_file


def test_a_table_labels_the_images_it_names(raw) -> None:
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


@pytest.mark.parametrize("where", ["labels.csv", "../labels.csv", "{raw}/../labels.csv"])
def test_a_label_file_may_be_outside_of_the_folder(raw, tmp_path, where) -> None:
    raw.puts("a.png", "b.png")
    data = "file,label\na.png,dog\nb.png,cat\n"
    if where == "labels.csv":
        raw.put(where, data)
        where = f"{raw.path}/{where}"  # and so no item
    else:
        (tmp_path / "labels.csv").write_text(data)
    made = raw.made(f"label_file={where.format(raw=raw.path)}")
    assert made.labels() == {"a.png": (1, "dog"), "b.png": (0, "cat")}
    assert made.skipped == {}
    assert made.remarks == []


def test_the_names_of_files_have_the_classes(raw) -> None:
    raw.puts("n01_tench.png", "deep/n02_7.png", "n01_8.png", "other.png", "n03_")
    raw.put("README.md", "")
    made = raw.made("class_pattern=^(n[0-9]+)_", "extensions=png,md")
    assert made.labels() == {
        "n01_tench.png": (0, "n01"),
        "deep/n02_7.png": (1, "n02"),
        "n01_8.png": (0, "n01"),
    }
    assert made.codes() == {"other.png": "SRC013"}
    assert [each.times for each in made.remarks] == [2]  # `n03_` and README.md
    source = raw.source("class_pattern=^(n[0-9]+)_")
    assert source.raw_path("train", "deep/n02_7.png") == "deep/n02_7.png"
    shares = raw.made("class_pattern=^(n[0-9]+)_", "split=train=1,test=1", "group=^(.*)$")
    assert {*shares.splits()} == {"train", "test"}


def test_folders_of_splits_keep_images_with_classes_in_their_names_apart(raw) -> None:
    raw.puts("train/cat.1.jpg", "train/dog.1.jpg", "test/cat.1.jpg")
    made = raw.made(r"class_pattern=^(.+)\.[0-9]+\.jpg$")
    assert {*made.written} == {
        ("train", "train/cat.1.jpg"),
        ("train", "train/dog.1.jpg"),
        ("test", "test/cat.1.jpg"),
    }


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


def test_an_image_that_two_lines_name_is_refused(raw) -> None:
    raw.puts("a.png", "b.png")
    raw.put("labels.csv", "a.png,cat\nb.png,cat\na.png,dog\n")
    error = raw.error("label_file=labels.csv")
    assert error.message == "lines 1 and 3 of the label file both name `a.png`"


def test_a_label_file_that_fits_nothing_is_refused(raw) -> None:
    raw.puts("a.png")
    raw.put("labels.csv", "x.png,cat\n")
    error = raw.error("label_file=labels.csv")
    assert error.message == f"the label file `labels.csv` labels no image of `{raw.path}`"


def test_a_column_of_splits_is_taken_in_its_normal_spelling(raw) -> None:
    raw.puts("a.png", "b.png", "c.png")
    raw.put("labels.csv", "split,file,label\nTRAIN,a.png,cat\nVAL,b.png,cat\nTEST,c.png,dog\n")
    assert raw.made("label_file=labels.csv").splits() == {"train": 1, "validation": 1, "test": 1}
    error = raw.error("label_file=labels.csv", "split=train=1,test=1")
    assert error.message == (
        "`split` assigns images to splits, and the label file `labels.csv` names theirs: `TEST`, "
        "`TRAIN`, `VAL`"
    )


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("train,a.png,cat\n,b.png,cat\n", "names the split of some images and not of all"),
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


def read(raw, text: str | bytes) -> tuple[bool, list[tuple[int, str, str, str]]]:
    raw.put("labels", text)
    named, rows = read_label_file(LocalStorage(raw.path), "labels")
    return named, [tuple(row) for row in rows]


def error(raw, text: str | bytes) -> RawDataError:
    with pytest.raises(RawDataError) as caught:
        read(raw, text)
    return caught.value


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
def test_a_table_needs_no_header(raw, delimiter) -> None:
    text = "a.png,cat\nb.png,dog\n".replace(",", delimiter)
    assert read(raw, text) == (True, [(1, "a.png", "cat", ""), (2, "b.png", "dog", "")])


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("file,label", "a.png,cat"),
        ("FileName,Class", "a.png,cat"),
        ("label,image", "cat,a.png"),
        ("id,breed", "a.png,cat"),
        ("split,image_uri,label", "TEST,a.png,cat"),
        ("image,width,label,set", "a.png,320,cat,TEST"),
    ],
)
def test_a_header_says_which_column_is_what(raw, header, line) -> None:
    split = "TEST" if "TEST" in line else ""
    assert read(raw, f"{header}\n{line}\n") == (True, [(2, "a.png", "cat", split)])


def test_quotes_hold_what_would_end_a_cell(raw) -> None:
    text = '"a,b.png","cat, ""big"""\n'
    assert read(raw, text)[1] == [(1, "a,b.png", 'cat, "big"', "")]


def test_lines_of_file_and_label(raw) -> None:
    text = "ILSVRC2012_val_00000001.JPEG n01751748\nmy file.png  65\n"
    assert read(raw, text) == (
        True,
        [(1, "ILSVRC2012_val_00000001.JPEG", "n01751748", ""), (2, "my file.png", "65", "")],
    )


def test_lines_of_one_word_label_files_in_their_order(raw) -> None:
    assert read(raw, "n01751748\nn09193705\n") == (
        False,
        [(1, "", "n01751748", ""), (2, "", "n09193705", "")],
    )


def test_marks_line_ends_and_empty_lines_do_no_harm(raw) -> None:
    text = b"\xef\xbb\xbfa.png,cat\r\n\r\n  \r\nb.png,dog"
    assert read(raw, text)[1] == [(1, "a.png", "cat", ""), (4, "b.png", "dog", "")]


def test_lines_that_lack_something_come_out_with_nothing_there(raw) -> None:
    assert read(raw, "a.png,cat\nb.png\n,dog\n")[1][1:] == [
        (2, "b.png", "", ""),
        (3, "", "dog", ""),
    ]
    assert read(raw, "a.png cat\nb.png\n")[1][1] == (2, "b.png", "", "")


@pytest.mark.parametrize("text", ["", "\n\n", "  \n", b"\xef\xbb\xbf"])
def test_a_file_without_lines_is_refused(raw, text) -> None:
    assert error(raw, text).message == "the label file `labels` is empty"


def test_what_does_not_parse_is_refused(raw) -> None:
    assert error(raw, b"caf\xe9.png,cat").message == (
        "the label file `labels` is not UTF-8: invalid continuation byte at byte 3"
    )
    assert error(raw, "cat\nbig dog\n").message == (
        "line 2 of the label file `labels` has 2 words, the first line has one"
    )
    assert error(raw, "a.png," + "x" * 200_000).message == (
        "line 1 of the label file `labels` does not parse: field larger than field limit (131072)"
    )


@pytest.mark.parametrize("make", ["nothing", "folder", "link"])
def test_a_label_file_that_is_none_is_refused(raw, tmp_path, make) -> None:
    (tmp_path / "outside").write_text("a.png,cat")
    if make == "folder":
        (raw.path / "labels").mkdir()
    elif make == "link":
        raw.link("labels", "../outside")
    with pytest.raises(RawDataError) as caught:
        read_label_file(LocalStorage(raw.path), "labels", "inside")
    problem = "is not" if make == "nothing" else "is not a regular file"
    assert caught.value.message == f"the label file `labels` {problem} in `{raw.path}`"


def test_a_label_file_may_be_a_link_out_of_the_folder(raw, tmp_path) -> None:
    (tmp_path / "outside").write_text("a.png,cat")
    raw.link("labels", "../outside")
    raw.puts("a.png")
    assert raw.made("label_file=labels").labels() == {"a.png": (0, "cat")}
    error = raw.error("label_file=labels", "symlinks=none")
    assert "the label file `labels` is not a regular file" in error.message


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_text_is_read_or_refused_in_words(tmp_path, text: str) -> None:
    (tmp_path / "labels").write_bytes(text.encode("utf-8", "replace"))
    try:
        _, rows = read_label_file(LocalStorage(tmp_path), "labels")
        found = list(rows)
    except TfrecregError as refusal:
        found = []
        assert_words(refusal)
    assert all(row.line >= 1 for row in found)


def assert_words(refusal: TfrecregError) -> None:
    assert refusal.exit_code == 2
    assert "\n" not in refusal.message
    assert refusal.hint

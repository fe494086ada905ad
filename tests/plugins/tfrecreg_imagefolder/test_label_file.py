"""Flat folders: the label file says what the images are."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg_imagefolder.label_file import read_label_file
from tfrecreg_imagefolder.listing import ImageFolderOptions


def test_a_table_labels_the_images_it_names(raw) -> None:
    raw.puts("a.png", "b.png", "deep/c.png", "unnamed.png", "LICENSE")
    raw.put("labels.csv", "file,label\na.png,dog\nb.png,cat\n./deep/c.png,dog\n")
    made = raw.made("label_file=labels.csv")
    assert made.labels() == {"a.png": (1, "dog"), "b.png": (0, "cat"), "deep/c.png": (1, "dog")}
    assert made.skipped == {}
    assert [(each.code, each.key, each.times) for each in made.remarks] == [
        ("SRC015", "LICENSE", 2)
    ]
    assert raw.source("label_file=labels.csv").labels() == {"image/class/label": ["cat", "dog"]}
    assert raw.source("label_file=labels.csv").describe()["layout"] == "files, labelled by a file"
    assert raw.made("label_file=labels.csv", "layout=flat").labels() == made.labels()


@pytest.mark.parametrize("where", ["", "./", "../", "{raw}/../"])
def test_a_label_file_may_be_outside_of_the_folder(raw, tmp_path, where) -> None:
    raw.puts("a.png", "b.png")
    data = "file,label\na.png,dog\nb.png,cat\n"
    if ".." in where:
        (tmp_path / "labels.csv").write_text(data)
    else:
        raw.put("labels.csv", data)  # and so no item
        where = where or "{raw}/"
    made = raw.made(f"label_file={where.format(raw=raw.path)}labels.csv")
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
    assert made.codes() == {"other.png": "SRC112"}
    assert [each.times for each in made.remarks] == [2]  # `n03_` and README.md
    source = raw.source("class_pattern=^(n[0-9]+)_")
    assert source.raw_path("train", "deep/n02_7.png") == "deep/n02_7.png"
    raw.puts("more.jpe")
    assert raw.made("class_pattern=^(n[0-9]+)_").codes()["more.jpe"] == "SRC112"


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
    assert made.codes() == {"b": "SRC112"}


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


def test_labels_alone_label_folder_by_folder(raw) -> None:
    raw.puts("val/1.png", "val-b/1.png")
    raw.put("labels.txt", "dog\ncat\n")
    labels = raw.made("label_file=labels.txt").labels()
    assert labels == {"val/1.png": (1, "dog"), "val-b/1.png": (0, "cat")}


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
        "../outside.png": "SRC112",
        ".hidden.png": "SRC112",
        "/etc/passwd": "SRC112",
        "fifo.png": "SRC111",
        "gone.png": "SRC112",
        "line 9": "SRC112",
        "nolabel.png": "SRC112",
        "out.png": "SRC111 link",
    }


def test_the_label_file_is_a_raw_file_and_no_item(raw) -> None:
    raw.puts("a.png")
    size = raw.put("labels.csv", "a.png,cat\n").stat().st_size
    files = {file.path: file.stored for file in raw.source("label_file=labels.csv").raw_files()}
    assert files["labels.csv"] == size
    assert sorted(files) == ["a.png", "labels.csv"]


def test_a_label_file_may_be_a_link_out_of_the_folder(raw, tmp_path) -> None:
    (tmp_path / "outside").write_text("a.png,cat")
    raw.link("labels", "../outside")
    raw.puts("a.png")
    assert raw.made("label_file=labels").labels() == {"a.png": (0, "cat")}
    raw.error("label_file=labels", "symlinks=none")


@pytest.mark.parametrize(
    "text",
    [
        "a.png,cat\nb.png,dog\n",
        "a.png\tcat\nb.png\tdog\n",
        "a.png;cat\nb.png;dog\n",
        "a.png cat\nb.png  dog\n",
        "FileName,Class\na.png,cat\nb.png,dog\n",
        "label,image\ncat,a.png\ndog,b.png\n",
        "image,width,label\na.png,320,cat\nb.png,200,dog\n",
        '"a.png","cat"\n"b.png",dog\n',
        b"\xef\xbb\xbfa.png,cat\r\n\r\n  \r\nb.png,dog",
        "cat\ndog\n",
    ],
)
def test_tables_and_lists_give_the_same_labels(raw, text) -> None:
    raw.puts("a.png", "b.png")
    raw.put("labels", text)
    assert raw.made("label_file=labels").labels() == {"a.png": (0, "cat"), "b.png": (1, "dog")}


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_any_text_is_read_or_refused_in_words(tmp_path, text: str) -> None:
    (tmp_path / "labels").write_bytes(text.encode("utf-8", "replace"))
    rows, refusals = [], []
    try:
        _, rows = read_label_file(LocalStorage(tmp_path), "labels", ImageFolderOptions())
    except TfrecregError as refusal:
        refusals.append(refusal)
    assert all(row.line >= 1 for row in rows)
    assert all(each.exit_code == 2 and "\n" not in each.message for each in refusals)

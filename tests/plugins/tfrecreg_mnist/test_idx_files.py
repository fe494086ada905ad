"""Files are told by their names: splits, sets, pairs; and every doubt about them is an error."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.build.sources.interface import Item, Remark
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg_mnist.idx_files import find_idx_files, pair_files


@pytest.mark.parametrize(
    ("images", "labels", "split"),
    [
        ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "train"),
        ("train-images.idx3-ubyte", "train-labels.idx1-ubyte", "train"),
        ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte", "train"),
        ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz", "test"),
        ("t10k-images.idx3-ubyte", "t10k-labels-idx1-ubyte.gz", "test"),
        ("test-images-idx3-ubyte", "test-labels-idx1-ubyte", "test"),
        ("validation-images-idx3-ubyte", "validation-labels-idx1-ubyte", "validation"),
        ("val-images-idx3-ubyte", "val-labels-idx1-ubyte", "validation"),
        (
            "emnist-letters-train-images-idx3-ubyte.gz",
            "emnist-letters-train-labels-idx1-ubyte.gz",
            "train",
        ),
        ("emnist-mnist-test-images-idx3-ubyte", "emnist-mnist-test-labels-idx1-ubyte", "test"),
    ],
)
def test_usual_names_are_known(raw: Any, images: str, labels: str, split: str) -> None:
    raw.put(images, raw.images())
    raw.put(labels, raw.labels())
    found = pair_files(find_idx_files(LocalStorage(raw.path), ""))
    assert [(name, a.path, b.path) for name, (a, b) in found.items()] == [(split, images, labels)]


def test_splits_come_in_their_usual_order(raw: Any) -> None:
    for word in ("t10k", "val", "train"):
        raw.put_pair(word)
    found = pair_files(find_idx_files(LocalStorage(raw.path), ""))
    assert list(found) == ["train", "validation", "test"]


def test_folders_of_the_same_names_are_no_files(raw: Any) -> None:
    raw.put("train-images.idx3-ubyte", raw.images())
    raw.put("train-labels.idx1-ubyte", raw.labels())
    raw.put("train-images-idx3-ubyte/train-images-idx3-ubyte", raw.images())
    found = pair_files(find_idx_files(LocalStorage(raw.path), ""))
    assert [images.path for images, _ in found.values()] == ["train-images.idx3-ubyte"]


def test_link_inside_the_folder_is_followed(raw: Any) -> None:
    raw.put("store/a", raw.images())
    raw.put("train-labels-idx1-ubyte", raw.labels())
    (raw.path / "train-images-idx3-ubyte").symlink_to("store/a")
    assert sum(isinstance(each, Item) for each in raw.source().items()) == 5


def test_link_to_nothing_is_refused(raw: Any) -> None:
    raw.put_pair("t10k")
    (raw.path / "train-images-idx3-ubyte").symlink_to("gone")
    message, hint = raw.refusal()
    assert message == (
        "`train-images-idx3-ubyte` is not a regular file but a link that leads nowhere"
    )
    assert "put the file itself there" in hint


def test_link_out_of_the_folder_is_followed(raw: Any, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(raw.images())
    raw.put("train-labels-idx1-ubyte", raw.labels())
    (raw.path / "train-images-idx3-ubyte").symlink_to(tmp_path / "elsewhere")
    assert sum(isinstance(each, Item) for each in raw.source().items()) == 5
    (raw.path / "train-images-idx3-ubyte").unlink()
    (raw.path / "train-images-idx3-ubyte").symlink_to("/dev/zero")
    message, _ = raw.refusal()
    assert message == (
        "`train-images-idx3-ubyte` is not a regular file but a FIFO, a socket or a device"
    )


def test_fifo_is_refused_without_waiting(raw: Any) -> None:
    os.mkfifo(raw.path / "train-images-idx3-ubyte")
    message, _ = raw.refusal()
    assert message.startswith("`train-images-idx3-ubyte` is not a regular file but a FIFO")


def test_missing_folder_is_named(raw: Any) -> None:
    raw.path = raw.path / "gone"
    message, hint = raw.refusal()
    assert message == f"no such folder: `{raw.path}`"
    assert "--raw" in hint


def test_file_in_place_of_the_folder_is_named(raw: Any) -> None:
    raw.path = raw.put("train-images-idx3-ubyte.gz", raw.images())
    message, hint = raw.refusal()
    assert message == f"no such folder: `{raw.path}`"
    assert hint == "name the folder of the IDX files with `--raw`"


def test_empty_folder_says_what_is_expected(raw: Any) -> None:
    message, _ = raw.refusal()
    assert message == (
        f"`{raw.path}` is empty: expected IDX files such as `train-images-idx3-ubyte.gz`"
    )


def test_folder_without_idx_lists_what_is_there(raw: Any) -> None:
    for name in ("LICENSE", "cat.png", "dog.png", "raw/train-images-idx3-ubyte", "z"):
        raw.put(name, b"x")
    message, hint = raw.refusal()
    assert message == (
        f"`{raw.path}` holds no IDX file: expected names such as `train-images-idx3-ubyte.gz`, "
        "found `LICENSE`, `cat.png`, `dog.png` and 2 more"
    )
    assert "under their usual names" in hint


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_labels_without_images_name_the_file_expected(raw: Any, suffix: str) -> None:
    raw.put_pair("train", suffix=suffix)
    raw.put("t10k-labels-idx1-ubyte" + suffix, raw.labels())
    message, hint = raw.refusal()
    assert message == (
        f"`t10k-labels-idx1-ubyte{suffix}` lacks its images, "
        f"expected `t10k-images-idx3-ubyte{suffix}`"
    )
    assert hint == "add the missing file, or remove the lone one from the folder"


def test_images_without_labels_name_the_file_expected(raw: Any) -> None:
    raw.put("emnist-letters-train-images.idx3-ubyte", raw.images())
    message, _ = raw.refusal()
    assert message == (
        "`emnist-letters-train-images.idx3-ubyte` lacks its labels, "
        "expected `emnist-letters-train-labels.idx1-ubyte`"
    )


def test_every_file_that_is_missing_is_named(raw: Any) -> None:
    raw.put("train-labels-idx1-ubyte", raw.labels())
    raw.put("t10k-images-idx3-ubyte", raw.images())
    message, _ = raw.refusal()
    assert message == (
        "`train-labels-idx1-ubyte` lacks its images, expected `train-images-idx3-ubyte`; "
        "`t10k-images-idx3-ubyte` lacks its labels, expected `t10k-labels-idx1-ubyte`"
    )


def test_a_file_that_is_plain_and_in_gzip_is_read_once(raw: Any) -> None:
    raw.put_pair("train")
    raw.put_pair("train", suffix=".gz")
    source = raw.source()
    remarks = [each for each in source.items() if isinstance(each, Remark)]
    assert [(each.key, each.code, each.detail) for each in remarks] == [
        (f"{name}.gz", "SRC036", f"`{name}` holds the same and is read")
        for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
    ]
    names = [each.path for each in source.raw_files()]
    assert names == ["train-images-idx3-ubyte", "train-labels-idx1-ubyte"]
    assert sum(isinstance(each, Item) for each in source.items()) == 5


@pytest.mark.parametrize(
    "images", [lambda raw: raw.images(4), lambda raw: raw.images(5, 3, 4), lambda raw: raw.images()]
)
def test_a_file_whose_compressed_twin_differs_is_refused(raw: Any, images: Any) -> None:
    raw.put_pair("train")
    data = bytearray(images(raw))
    data[-1] ^= 1
    raw.put("train-images-idx3-ubyte.gz", bytes(data))
    assert raw.refusal() == (
        "`train-images-idx3-ubyte` and `train-images-idx3-ubyte.gz` hold different data",
        "remove the one that is wrong",
    )


def test_names_that_are_no_idx_files_are_remarked(raw: Any) -> None:
    raw.put_pair("train")
    raw.put("notes.txt", b"")
    raw.put("train-images-idx3-ubyte.bz2", b"")
    raw.put("data/mnist/manifest.json", b"")
    (remark,) = (each for each in raw.source().items() if isinstance(each, Remark))
    assert remark[:3] == ("train", "notes.txt", "SRC015")
    assert (remark.times, remark.detail) == (2, "2 stray names, the first of them `notes.txt`")


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            "train-images.idx3-ubyte",
            "two files for the images of `train`: "
            "`train-images-idx3-ubyte` and `train-images.idx3-ubyte`",
        ),
        (
            "train-images.idx3-ubyte.gz",
            "two files for the images of `train`: "
            "`train-images-idx3-ubyte` and `train-images.idx3-ubyte.gz`",
        ),
    ],
)
def test_two_spellings_of_one_file_are_ambiguous(raw: Any, other: str, message: str) -> None:
    raw.put_pair("train")
    raw.put(other, raw.images())
    assert raw.refusal() == (message, "remove one of them")


def test_t10k_and_test_are_the_same_split(raw: Any) -> None:
    raw.put_pair("t10k")
    raw.put_pair("test")
    message, _ = raw.refusal()
    assert message == (
        "two files for the images of `test`: `t10k-images-idx3-ubyte` and `test-images-idx3-ubyte`"
    )


def test_several_sets_want_a_choice(raw: Any) -> None:
    raw.put_pair("emnist-digits-train", count=4)
    raw.put_pair("emnist-letters-train", count=6)
    message, hint = raw.refusal()
    assert message == (
        f"`{raw.path}` holds several sets: "
        "`emnist-digits-train-labels-idx1-ubyte`, `emnist-letters-train-labels-idx1-ubyte`"
    )
    assert hint == ("select one with `--option prefix=emnist-letters-`, or keep one in the folder")


@pytest.mark.parametrize(
    ("prefix", "count"), [("emnist-digits-", 4), ("emnist-letters-", 6), ("emnist-letters", 6)]
)
def test_prefix_chooses_the_set(raw: Any, prefix: str, count: int) -> None:
    raw.put_pair("emnist-digits-train", count=4)
    raw.put_pair("emnist-letters-train", count=6)
    source = raw.source(prefix=prefix)
    assert len(list(source.items())) == count
    assert all(file.path.startswith(prefix) for file in source.raw_files())


def test_prefix_that_nothing_has_is_named(raw: Any) -> None:
    raw.put_pair("train")
    message, _ = raw.refusal(prefix="kmnist-")
    assert message == (
        f"`{raw.path}` holds no IDX file: "
        "expected names such as `kmnist-train-images-idx3-ubyte.gz`, "
        "found `train-images-idx3-ubyte`, `train-labels-idx1-ubyte`"
    )


HOSTILE = (
    "[red]",
    "[",
    "\x1b[31mred",
    "new\nline",
    "\u202egnp.exe",
    os.fsdecode(b"\xff\xfe"),
    ":skull:",
)


def test_hostile_names_beside_the_files_do_no_harm(raw: Any) -> None:
    raw.put_pair("train")
    for name in HOSTILE:
        raw.put(name, b"x")
    source = raw.source()
    assert sum(isinstance(each, Item) for each in source.items()) == 5
    assert {file.path for file in source.raw_files()} == {
        "train-images-idx3-ubyte",
        "train-labels-idx1-ubyte",
    }


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_escaped_in_messages(raw: Any, name: str) -> None:
    raw.put(name, b"x")
    raw.refusal()
    raw.put(f"{name}-train-images-idx3-ubyte", b"x")
    raw.refusal()
    raw.put(f"{name}-train-images-idx3-ubyte", raw.images())
    raw.refusal()
    raw.put(f"{name}.train-images-idx3-ubyte.gz", raw.images())
    message, hint = raw.refusal()
    assert "several sets" in message
    assert "prefix=" in hint


def test_hostile_folder_name_is_escaped_in_messages(raw: Any, tmp_path: Path) -> None:
    raw.path = tmp_path / "a\x1b[31m\nb"
    message, _ = raw.refusal()
    assert message == f"no such folder: `{tmp_path}/a\\x1b[31m\\nb`".replace("\\n", "\\x0a")

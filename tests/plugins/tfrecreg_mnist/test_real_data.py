"""Datasets that people publish: read to the last pixel, or refused in one clear line."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.api import Item

pytestmark = pytest.mark.realdata


def copy(raw: Any, folder: Path, pattern: str = "*") -> Any:
    for path in folder.glob(pattern):
        if path.is_file():
            shutil.copyfile(path, raw.path / path.name)
    return raw


def body(path: Path, start: int) -> bytes:
    return gzip.decompress(path.read_bytes())[start:]


def check_every_pixel(raw: Any, split: str, word: str, count: int) -> None:
    """Check that TensorFlow decodes the bytes of the IDX."""
    tf = pytest.importorskip("tensorflow")
    source = raw.source()
    items = [each for each in source.items() if isinstance(each, Item) and each.split == split]
    assert len(items) == count
    pixels = body(raw.path / f"{word}-images-idx3-ubyte.gz", 16)
    labels = body(raw.path / f"{word}-labels-idx1-ubyte.gz", 8)
    decoded = []
    for item in items:
        example = source.example(item)
        assert example["image/class/label"].values == (labels[int(item.key)],)
        assert example["image/height"].values == example["image/width"].values == (28,)
        image = tf.io.decode_png(example["image/encoded"].values[0]).numpy()
        assert image.shape == (28, 28, 1)
        decoded.append(image.tobytes())
    assert b"".join(decoded) == pixels


@pytest.mark.slow
def test_mnist_is_read_to_the_last_pixel(raw: Any, realdata: Path) -> None:
    copy(raw, realdata / "mnist/mnist-t10k", "t10k-*")
    check_every_pixel(raw, "test", "t10k", 10_000)
    files = {file.path: file for file in raw.source().raw_files()}
    assert files["t10k-images-idx3-ubyte.gz"].stored == 1_648_877
    assert files["t10k-images-idx3-ubyte.gz"].decoded == 7_840_016
    assert files["t10k-labels-idx1-ubyte.gz"].decoded == 10_008
    assert raw.source().labels() == {"image/class/label": list("0123456789")}


def test_two_classes_are_read_from_both_splits(raw: Any, realdata: Path) -> None:
    copy(raw, realdata / "mnist/two-class")
    check_every_pixel(raw, "train", "train", 108)
    check_every_pixel(raw, "test", "t10k", 72)
    assert raw.source().labels() == {"image/class/label": ["0", "1"]}


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("mnist-t10k", "`train-labels-idx1-ubyte.gz`"),
        ("fashion-labels-only", "`train-labels-idx1-ubyte.gz`"),
        ("qmnist-labels", "`qmnist-test-labels-idx2-int.gz`"),
    ],
)
def test_lone_labels_are_refused(raw: Any, realdata: Path, folder: str, name: str) -> None:
    assert name in copy(raw, realdata / "mnist" / folder).refusal()


def test_mnist_in_torchvisions_folder_is_not_found_but_shown(raw: Any, realdata: Path) -> None:
    copy(raw, realdata / "mnist/two-class")
    (raw.path / "raw").mkdir()
    for path in list(raw.path.glob("*.gz")):
        path.rename(raw.path / "raw" / path.name)
    assert "`raw`" in raw.refusal()

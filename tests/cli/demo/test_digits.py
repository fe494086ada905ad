"""The drawn digits are MNIST's format, look of MNIST's kind, and are the same everywhere."""

from __future__ import annotations

import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest

from tfrecreg.cli.demo.digits import SIDE, draw_digits, write_digits
from tfrecreg.cli.demo.strokes import GLYPHS
from tfrecreg.core.storage.local import LocalStorage

NAMES = [
    "t10k-images-idx3-ubyte.gz",
    "t10k-labels-idx1-ubyte.gz",
    "train-images-idx3-ubyte.gz",
    "train-labels-idx1-ubyte.gz",
]


def test_writes_the_four_files_of_mnist(tmp_path: Path) -> None:
    write_digits(LocalStorage(tmp_path), train=20, test=7, seed=3)
    assert sorted(path.name for path in tmp_path.iterdir()) == NAMES
    for word, count, stream in (("train", 20, 0), ("t10k", 7, 1)):
        pixels, labels = draw_digits(count, seed=3, stream=stream)
        images = gzip.decompress((tmp_path / f"{word}-images-idx3-ubyte.gz").read_bytes())
        assert images == struct.pack(">4I", 0x0803, count, 28, 28) + pixels.tobytes()
        classes = gzip.decompress((tmp_path / f"{word}-labels-idx1-ubyte.gz").read_bytes())
        assert classes == struct.pack(">2I", 0x0801, count) + labels.tobytes()


def test_same_arguments_give_the_same_files(tmp_path: Path) -> None:
    contents = []
    for name in ("a", "b"):
        write_digits(LocalStorage(tmp_path / name), train=30, test=10, seed=5)
        contents.append([(tmp_path / name / each).read_bytes() for each in NAMES])
    assert contents[0] == contents[1]


def test_golden_pixels() -> None:
    pixels, labels = draw_digits(50, seed=1, stream=1)
    digest = hashlib.sha256(pixels.tobytes() + labels.tobytes()).hexdigest()
    assert digest == "6baba81bc33f82f97c45a20a0691a97450e8b24c61203b8ac9e17979eec2365f"


def test_seeds_and_splits_give_other_images() -> None:
    drawn = [draw_digits(20, seed=seed, stream=stream)[0] for seed in (1, 2) for stream in (0, 1)]
    assert len({image.tobytes() for pixels in drawn for image in pixels}) == 80


def test_looks_like_mnist_to_statistics() -> None:
    pixels, labels = draw_digits(2000, seed=9)
    assert pixels.shape == (2000, SIDE, SIDE)
    assert pixels.dtype == labels.dtype == np.uint8
    assert set(labels.tolist()) == set(range(10))
    assert np.bincount(labels).min() > 140
    assert len({image.tobytes() for image in pixels}) == 2000
    # MNIST: 19 % of the pixels hold ink, mean 33, gzip 0.21 of the pixels, margins blank.
    assert 0.15 < (pixels > 0).mean() < 0.25
    assert 25 < pixels.mean() < 45
    assert len(gzip.compress(pixels.tobytes(), 6)) < 0.26 * pixels.size
    assert (pixels[:, [0, -1], :] > 0).mean() < 0.01
    assert (pixels[:, :, [0, -1]] > 0).mean() < 0.01
    assert pixels.max() == 254


@pytest.mark.medium
def test_digits_can_be_told_apart() -> None:
    train, train_labels = draw_digits(3000, seed=4, stream=0)
    test, test_labels = draw_digits(300, seed=4, stream=1)
    known = train.reshape(len(train), -1).astype(np.float32)
    asked = test.reshape(len(test), -1).astype(np.float32)
    distances = (known**2).sum(1)[None] - 2 * asked @ known.T
    right = train_labels[distances.argmin(1)] == test_labels
    assert right.mean() > 0.9, "the nearest neighbour gives the label"


@pytest.mark.parametrize("count", [0, -1])
def test_split_without_images_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"a split needs at least 1 image, not {count}"):
        draw_digits(count, seed=1)


def test_glyphs_stay_in_their_box() -> None:
    assert len(GLYPHS) == 10
    for variants in GLYPHS:
        for stroke in (stroke for strokes in variants for stroke in strokes):
            assert len(stroke) >= 3
            assert all(0 <= number <= 1 for point in stroke for number in point)

"""The ways in which decoded images come to one size."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tfrecreg import data_source
from tfrecreg.builtin.training.arrays import ImageSize
from tfrecreg.builtin.training.load import load

SCHEMA = """feature {
  name: "image/encoded" type: BYTES presence { min_fraction: 1 min_count: 1 } shape {}
  image_domain {}
}
"""
SIDES = [(4, 8), (8, 4), (6, 6), (5, 9), (1, 7)]

Pixels = npt.NDArray[np.uint8]


def ramp(height: int, width: int) -> Pixels:
    """An image in which each pixel has a value of its own."""
    return np.arange(height * width, dtype=np.uint8).reshape(height, width, 1)


@pytest.fixture
def ramps(tf: Any, odd: Callable[..., Path]) -> Path:
    return odd(
        SCHEMA, [{"image/encoded": [tf.io.encode_png(ramp(*sides)).numpy()]} for sides in SIDES]
    )


def fitted(root: Path, batch_size: int | None = None, **arguments: Any) -> list[Any]:
    dataset = load(
        "odd", registry=root, decode=True, channels=1, batch_size=batch_size, **arguments
    )
    found = [each["image/encoded"].numpy() for each in dataset]
    return found if batch_size is None else list(np.concatenate(found))


def nearest(image: Pixels, height: int, width: int) -> Pixels:
    """Each pixel of the result is the one of the image at whose middle it lies."""
    rows = ((np.arange(height) + 0.5) * image.shape[0] / height).astype(int)
    columns = ((np.arange(width) + 0.5) * image.shape[1] / width).astype(int)
    return image[rows][:, columns]


def cropped(image: Pixels, height: int, width: int) -> Pixels:
    has_height, has_width, _ = image.shape
    rows = max(1, min(has_height, has_width * height // width))
    columns = max(1, min(has_width, has_height * width // height))
    top, left = (has_height - rows) // 2, (has_width - columns) // 2
    return nearest(image[top : top + rows, left : left + columns], height, width)


@pytest.mark.medium
@pytest.mark.parametrize(("size", "batch_size"), [((4, 4), None), ((2, 6), 1), ((9, 3), 5)])
def test_a_crop_is_the_largest_part_in_the_middle(
    tf: Any, ramps: Path, size: tuple[int, int], batch_size: int | None
) -> None:
    found = fitted(ramps, batch_size, image_size=size, fit="crop", method="nearest")
    for sides, image in zip(SIDES, found, strict=True):
        assert image.tolist() == cropped(ramp(*sides), *size).tolist()


@pytest.mark.medium
def test_padding_keeps_the_shape_and_is_black(tf: Any, ramps: Path) -> None:
    wide, high, *_ = fitted(ramps, 5, image_size=(8, 8), fit="pad", method="nearest")
    assert wide[2:6].tolist() == ramp(4, 8).tolist()
    assert not wide[:2].any()
    assert not wide[6:].any()
    assert high[:, 2:6].tolist() == ramp(8, 4).tolist()
    assert not high[:, :2].any()
    assert not high[:, 6:].any()


@pytest.mark.medium
def test_the_shorter_side_gets_the_length_and_the_shape_stays(tf: Any, ramps: Path) -> None:
    found = fitted(ramps, image_size=3, fit="short-side", method="nearest")
    shapes = [image.shape[:2] for image in found]
    assert shapes == [(3, 6), (6, 3), (3, 3), (3, 5), (3, 21)]
    for sides, image in zip(SIDES, found, strict=True):
        assert image.tolist() == nearest(ramp(*sides), *image.shape[:2]).tolist()


@pytest.mark.medium
@pytest.mark.parametrize("sides", [(2, 300), (300, 1), (1, 1)])
def test_a_thin_image_keeps_a_row_when_it_is_padded(
    tf: Any, odd: Callable[..., Path], sides: tuple[int, int]
) -> None:
    root = odd(
        SCHEMA, [{"image/encoded": [tf.io.encode_png(np.full((*sides, 1), 9, np.uint8)).numpy()]}]
    )
    (found,) = fitted(root, image_size=(5, 6), fit="pad")
    (other,) = data_source(
        "odd", registry=root, decode=True, image_size=(5, 6), fit="pad", features=["image/encoded"]
    )
    assert found.any()
    assert np.array_equal(found, other["image/encoded"])


@pytest.mark.medium
@pytest.mark.parametrize("sides", [(7, 90), (13, 11), (3, 2)])
def test_padding_lies_alike_for_both_readers(
    tf: Any, odd: Callable[..., Path], sides: tuple[int, int]
) -> None:
    white = tf.io.encode_png(np.full((*sides, 1), 255, np.uint8)).numpy()
    root = odd(SCHEMA, [{"image/encoded": [white]}])
    (found,) = fitted(root, image_size=(24, 17), fit="pad")
    (other,) = data_source("odd", registry=root, decode=True, image_size=(24, 17), fit="pad")
    assert np.array_equal(found, other["image/encoded"])


def test_padding_is_that_of_tensorflow(tf: Any) -> None:
    from tfrecreg.builtin.training.tf_dataset.elements import resized

    fit = ImageSize(size=(24, 17), fit="pad")
    for sides in [(40, 30), (7, 90), (13, 11), (64, 64), (3, 2)]:
        image = np.random.default_rng(sides[0]).integers(0, 256, (*sides, 3), np.uint8)
        theirs = tf.cast(tf.round(tf.image.resize_with_pad(image, 24, 17)), tf.uint8)
        assert np.array_equal(resized(fit, tf.constant(image)), theirs)


@pytest.mark.medium
@pytest.mark.parametrize("fit", ["crop", "pad"])
def test_the_shape_is_static(tf: Any, ramps: Path, fit: str) -> None:
    arguments = {"decode": True, "channels": 3, "image_size": (4, 6), "fit": fit}
    spec = load("odd", registry=ramps, batch_size=2, **arguments).element_spec
    assert spec["image/encoded"] == tf.TensorSpec((None, 4, 6, 3), tf.uint8)
    single = load("odd", registry=ramps, **arguments).element_spec
    assert single["image/encoded"] == tf.TensorSpec((4, 6, 3), tf.uint8)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "area", "lanczos3", "lanczos5"])
@pytest.mark.parametrize("antialias", [False, True])
def test_methods_are_those_of_tensorflow_and_stay_within_bytes(
    tf: Any, method: Any, antialias: bool
) -> None:
    from tfrecreg.builtin.training.tf_dataset.elements import resized

    image = np.zeros((9, 12, 1), np.uint8)
    image[3:6, 4:8] = 255
    fit = ImageSize(size=(5, 30), method=method, antialias=antialias)
    exact = tf.image.resize(image, (5, 30), method=method, antialias=antialias).numpy()
    found = resized(fit, tf.constant(image)).numpy()
    assert found.tolist() == np.clip(np.round(exact), 0, 255).astype(np.uint8).tolist()

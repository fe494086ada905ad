"""Batches of small PNGs, decoded together, have the pixels that TensorFlow gives each image."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_support import png

from tfrecreg.builtin.training.load import load

pytestmark = pytest.mark.slow  # TensorFlow traces a graph for each test

SCHEMA = """
    feature {
      name: "image" type: BYTES presence { min_fraction: 1 min_count: 1 } shape {}
      image_domain {}
    }
"""
BATCH = 4
COLOURS = {"grey": 0, "rgb": 2, "grey with alpha": 4, "rgba": 6}


def images(colour: int, count: int = 9) -> list[bytes]:
    return [png(5, 6, colour=colour, seed=seed) for seed in range(count)]


def made(odd: Callable[..., Path], encoded: list[bytes]) -> Path:
    return odd(SCHEMA, [{"image": [data]} for data in encoded])


def batches(root: Path, **arguments: Any) -> list[Any]:
    dataset = load("odd", registry=root, decode=True, batch_size=BATCH, **arguments)
    return [batch["image"].numpy() for batch in dataset]


@pytest.mark.parametrize(
    ("colour", "channels"),
    [
        ("grey", 3),
        ("rgba", 0),
        ("grey with alpha", 0),
        ("rgb", 1),
    ],
)
def test_tensorflow_decodes_the_same(
    tf: Any, odd: Callable[..., Path], colour: str, channels: int
) -> None:
    encoded = images(COLOURS[colour])
    expected = [
        tf.io.decode_image(data, channels, expand_animations=False).numpy() for data in encoded
    ]
    found = batches(made(odd, encoded), channels=channels)
    assert np.array_equal(np.concatenate(found), np.stack(expected))


@pytest.mark.slow
def test_resized_images_are_those_of_single_elements(tf: Any, odd: Callable[..., Path]) -> None:
    root = made(odd, images(2))
    together = np.concatenate(batches(root, image_size=(9, 4)))
    single = load("odd", registry=root, decode=True, image_size=(9, 4))
    assert np.array_equal(together, np.stack([each["image"].numpy() for each in single]))
    assert together.shape == (9, 9, 4, 3)


def test_another_image_in_the_batch_changes_no_pixel(tf: Any, odd: Callable[..., Path]) -> None:
    """The first and the last batch are decoded together, the one between them one by one."""
    encoded = images(0)
    encoded[5] = bytes(tf.io.encode_png(np.full((6, 5, 1), 7, np.uint8), compression=0).numpy())
    encoded[6] = bytes(tf.io.encode_jpeg(np.full((6, 5, 1), 9, np.uint8)).numpy())
    found = np.concatenate(batches(made(odd, encoded)))
    expected = [tf.io.decode_image(each, expand_animations=False).numpy() for each in encoded]
    assert np.array_equal(found, np.stack(expected))


def test_shapes_stay_static(tf: Any, odd: Callable[..., Path]) -> None:
    root = made(odd, images(0))
    dataset = load("odd", registry=root, decode=True, channels=3, batch_size=4, image_size=(8, 8))
    assert dataset.element_spec["image"] == tf.TensorSpec((None, 8, 8, 3), tf.uint8)
    dataset = load("odd", registry=root, decode=True, batch_size=4, drop_remainder=True)
    assert dataset.element_spec["image"] == tf.TensorSpec((4, None, None, None), tf.uint8)


def test_an_image_with_a_wrong_checksum_is_named(tf: Any, odd: Callable[..., Path]) -> None:
    encoded = images(0)
    encoded[6] = encoded[6][:45] + bytes([encoded[6][45] ^ 1]) + encoded[6][46:]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`image` of record 6 of .* decode"):
        batches(made(odd, encoded))

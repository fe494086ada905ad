"""Random crops and flips: by record, epoch and seed, and the same for both readers."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tfrecreg.errors import UsageError
from tfrecreg.operations.data_source import data_source
from tfrecreg.operations.load import load
from tfrecreg.training.augmentation import CropDraws, are_flipped, crop_boxes

SCHEMA = """feature {
  name: "image/encoded" type: BYTES presence { min_fraction: 1 min_count: 1 } shape {}
  image_domain {}
}
feature {
  name: "number" type: INT presence { min_fraction: 1 min_count: 1 } shape {}
}
"""
COUNT = 24
SIZE: dict[str, Any] = {"decode": True, "channels": 3, "image_size": (16, 16), "method": "nearest"}
Pixels = npt.NDArray[np.uint8]


def ramp(number: int) -> Pixels:
    """An image whose pixels say where they are, in a size of its own."""
    height, width = 60 + number, 100 - 2 * number
    rows, columns = np.mgrid[:height, :width]
    found: Pixels = np.stack([rows, columns, np.full_like(rows, number)], -1).astype(np.uint8)
    return found


@pytest.fixture
def ramps(tf: Any, odd: Callable[..., Path]) -> Path:
    return odd(
        SCHEMA,
        [
            {"image/encoded": [tf.io.encode_png(ramp(number)).numpy()], "number": [number]}
            for number in range(COUNT)
        ],
    )


def crops(dataset: Any) -> dict[int, bytes]:
    """The image of each record, of one epoch."""
    found = {}
    for each in dataset:
        images, numbers = each["image/encoded"].numpy(), each["number"].numpy()
        if images.ndim == 3:
            images, numbers = images[None], numbers[None]
        assert images.shape[1:] == (16, 16, 3)
        for image, number in zip(images, numbers, strict=True):
            assert int(number) not in found
            found[int(number)] = image.tobytes()
    assert len(found)
    return found


def expected(number: int, seed: int, epoch: int) -> bytes:
    """The crop by the formula, each pixel the one at whose middle it lies."""
    draws = CropDraws(seed, epoch)(np.array([number]))
    image = ramp(number)
    height, width, _ = image.shape
    top, left, rows, columns = crop_boxes(draws, np.array([[height, width]], float))[0].tolist()
    part = image[top : top + rows, left : left + columns]
    part = part[((np.arange(16) + 0.5) * rows / 16).astype(int)]
    part = part[:, ((np.arange(16) + 0.5) * columns / 16).astype(int)]
    found: Pixels = part[:, ::-1] if are_flipped(draws)[0] else part
    return found.tobytes()


@pytest.mark.medium
@pytest.mark.parametrize("batch_size", [None, 1, 5])
def test_crops_are_those_of_record_epoch_and_seed(
    tf: Any, ramps: Path, batch_size: int | None
) -> None:
    dataset = load(
        "odd", registry=ramps, augment="imagenet", seed=3, epoch=4, batch_size=batch_size, **SIZE
    )
    for epoch in (4, 5):
        found = crops(dataset)
        assert found == {number: expected(number, 3, epoch) for number in range(COUNT)}


@pytest.mark.medium
def test_hosts_shuffles_and_batches_change_no_crop(tf: Any, ramps: Path) -> None:
    whole = crops(load("odd", registry=ramps, augment="imagenet", seed=3, **SIZE))
    for hosts in (1, 3):
        found: dict[int, bytes] = {}
        for host in range(hosts):
            found |= crops(
                load(
                    "odd",
                    registry=ramps,
                    augment="imagenet",
                    shuffle=True,
                    seed=3,
                    batch_size=4,
                    host=host,
                    hosts=hosts,
                    **SIZE,
                )
            )
        assert found == whole


@pytest.mark.medium
def test_a_repetition_is_the_next_epoch(tf: Any, ramps: Path) -> None:
    dataset = load(
        "odd", registry=ramps, augment="imagenet", seed=3, repeat=2, batch_size=8, **SIZE
    )
    batches = list(dataset)
    assert crops(batches[:3]) == {number: expected(number, 3, 0) for number in range(COUNT)}
    assert crops(batches[3:]) == {number: expected(number, 3, 1) for number in range(COUNT)}


@pytest.mark.medium
def test_another_run_without_a_seed_has_other_crops(tf: Any, ramps: Path) -> None:
    first, second = (
        crops(load("odd", registry=ramps, augment="imagenet", **SIZE)) for _ in range(2)
    )
    assert first != second


@pytest.mark.medium
def test_a_data_source_has_the_same_crops(tf: Any, ramps: Path) -> None:
    pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    more: dict[str, Any] = {"image_size": (16, 16), "augment": "imagenet", "seed": 3}
    source = data_source("odd", registry=ramps, decode=True, **more).with_epoch(4)
    dataset = load("odd", registry=ramps, decode=True, epoch=4, channels=3, batch_size=8, **more)
    at = 0
    for batch in dataset:
        for theirs in batch["image/encoded"].numpy().astype(int):
            # On a ramp both ways of resizing agree, but for the edges.
            assert np.abs(theirs - source[at]["image/encoded"])[1:-1, 1:-1].max() <= 2
            at += 1
    assert at == COUNT


@pytest.mark.medium
def test_only_the_crop_of_a_jpeg_is_decoded(tf: Any, odd: Callable[..., Path]) -> None:
    image = tf.io.encode_jpeg(ramp(0), quality=100).numpy()
    root = odd(SCHEMA, [{"image/encoded": [image], "number": [0]}])
    for seed in range(2):
        (found,) = load("odd", registry=root, augment="imagenet", seed=seed, **SIZE)
        by_hand = np.frombuffer(expected(0, seed, 0), np.uint8).reshape(16, 16, 3)
        assert np.abs(found["image/encoded"].numpy().astype(int) - by_hand).max() <= 12


@pytest.mark.medium
def test_an_image_that_does_not_decode_is_named(tf: Any, odd: Callable[..., Path]) -> None:
    stream = io.BytesIO(tf.io.encode_jpeg(ramp(0)).numpy())
    root = odd(SCHEMA, [{"image/encoded": [stream.getvalue()[:200]], "number": [0]}])
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not decode"):
        list(load("odd", registry=root, augment="imagenet", batch_size=1, **SIZE))


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (
            {"decode": True, "augment": "imagenet"},
            "`augment='imagenet'` needs `image_size`, and takes no `fit`: it crops",
            "`image_size=(224, 224), augment='imagenet'`",
        ),
        (
            {"decode": True, "augment": "imagenet", "image_size": (4, 4), "fit": "pad"},
            "`augment='imagenet'` needs `image_size`, and takes no `fit`: it crops",
            "`image_size=(224, 224), augment='imagenet'`",
        ),
        (
            {"decode": True, "augment": "cifar", "image_size": (4, 4)},
            "`augment` should be one of `imagenet`, found `cifar`",
            "`augment='imagenet'`",
        ),
        (
            {"augment": "imagenet", "image_size": (4, 4)},
            "`channels`, `image_size` and `augment` need `decode=True`",
            "add `decode=True`",
        ),
        (
            {"decode": True, "augment": "imagenet", "image_size": (4, 4), "cache": True},
            "`cache` would keep the random crops of the first epoch",
            "leave out `cache`, or `augment`",
        ),
        ({"epoch": 3}, "`epoch` needs `augment`", "`augment='imagenet', epoch=3`"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tf: Any, ramps: Path, arguments: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        load("odd", registry=ramps, **arguments)
    assert (caught.value.message, caught.value.hint) == (message, hint)

"""Images of data sources in one size, and in random crops."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tfrecreg
from tfrecreg.decoding import FeatureDecoder
from tfrecreg.errors import UsageError
from tfrecreg.images.pixels import Resizing
from tfrecreg.training.augmentation import CropDraws, are_flipped, crop_boxes
from tfrecreg.training.elements import Elements
from tfrecreg.training.fitted_images import fitting
from tfrecreg.training.image_sizes import ImageSize

pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
GOLDEN = [[154, 126, 216, 227], [0, 0, 20, 900]]
SIDES = [(4, 8), (8, 4), (6, 6), (5, 9), (1, 7)]
Pixels = npt.NDArray[np.uint8]


def ramp(height: int, width: int, channels: int = 3) -> Pixels:
    """An image in which places say where they are."""
    rows, columns = np.mgrid[:height, :width].astype(np.uint8)
    return np.stack([rows * 4, columns * 4, rows][:channels], -1)


class Fixed(FeatureDecoder):
    """One image, whatever it reads."""

    def __init__(self, image: Any) -> None:
        self._image = image

    def reads(self, feature: str, start: bytes) -> bool:
        return True

    def array(self, data: bytes) -> Any:
        return self._image


def fitted(image: Any, number: int = 0, seed: int = 0, epoch: int = 0, **size: Any) -> Pixels:
    def decoded(_: str, data: bytes, resizing: Resizing) -> Any:
        return Fixed(image).resized(data, resizing)

    decode = fitting(decoded, Elements(size=ImageSize(**size), seed=seed, epoch=epoch), number)
    found: Pixels = decode("image", b"")
    return found


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_a_size_is_reached_in_each_way(sides: tuple[int, int], channels: int) -> None:
    image = ramp(*sides, channels)
    for fit in ("stretch", "crop", "pad"):
        assert fitted(image, size=(6, 10), fit=fit).shape == (6, 10, channels)
    short = fitted(image, size=3, fit="short-side").shape
    assert min(short[:2]) == 3
    assert short[2] == channels


def test_a_crop_is_in_the_middle_and_padding_is_black() -> None:
    image = ramp(4, 8)
    assert fitted(image, size=(4, 4), fit="crop").tolist() == image[:, 2:6].tolist()
    padded = fitted(image, size=(8, 8), fit="pad")
    assert padded[2:6].tolist() == image.tolist()
    assert not padded[:2].any()
    assert not padded[6:].any()


@pytest.mark.parametrize("number", range(20))
def test_a_random_crop_is_the_one_of_record_epoch_and_seed(number: int) -> None:
    image = ramp(50, 60)
    draws = CropDraws(3, 5)(np.array([number]))
    ((top, left, rows, columns),) = crop_boxes(draws, np.array([[50.0, 60.0]])).tolist()
    # In its own size it is a copy.
    found = fitted(image, number, 3, 5, size=(rows, columns), augment="imagenet")
    part = image[top : top + rows, left : left + columns]
    assert found.tolist() == (part[:, ::-1] if are_flipped(draws)[0] else part).tolist()


def test_crops_have_the_sizes_that_they_should() -> None:
    sides = np.random.default_rng(1).integers(1, 900, (4000, 2)).astype(np.float64)
    draws = CropDraws(1, 2)(np.arange(4000))
    boxes = crop_boxes(draws, sides).astype(np.float64)
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 1).all()
    assert (boxes[:, :2] + boxes[:, 2:] <= sides).all()
    share = boxes[:, 2:].prod(axis=1) / sides.prod(axis=1)
    assert share.min() >= 0.08
    assert 0.25 < share.mean() < 0.45
    large = (boxes[:, 2:] > 50).all(axis=1) & (share < 1)
    ratios = boxes[large, 3] / boxes[large, 2]
    assert 0.73 < ratios.min() < 0.78
    assert 1.29 < ratios.max() < 1.36
    assert 0.46 < are_flipped(draws).mean() < 0.54


def test_a_crop_depends_on_its_own_draws_alone() -> None:
    """Of an image whose first attempt does not fit, another attempt than its neighbor's counts."""
    sides = np.random.default_rng(2).integers(1, 60, (500, 2)).astype(np.float64)
    draws = CropDraws(1, 2)(np.arange(500))
    alone = [crop_boxes(draws[at : at + 1], sides[at : at + 1])[0].tolist() for at in range(500)]
    assert crop_boxes(draws, sides).tolist() == alone


def test_the_crops_never_change() -> None:
    draws = CropDraws(1, 2)(np.array([0, 7]))
    assert crop_boxes(draws, np.array([[375.0, 500.0], [20.0, 900.0]])).tolist() == GOLDEN


def test_what_is_no_image_gets_no_size() -> None:
    with pytest.raises(ValueError, match=r"images of 8 bits, and this is float32 of shape \(3,\)"):
        fitted(np.zeros(3, np.float32), size=(4, 4))


def test_batches_have_the_crops_of_the_epoch_of_their_order(numbered: Path) -> None:
    source = tfrecreg.data_source(
        "digits1",
        "train",
        registry=numbered,
        decode=True,
        image_size=(24, 24),
        augment="imagenet",
        seed=3,
    )
    shown = [each["image/encoded"].tolist() for each in source.with_epoch(2)[:8]]
    order = source.order(epoch=2)
    (batch, *_) = source.batches(8, order)
    assert batch["image/encoded"].shape == (8, 24, 24, 1)
    assert batch["image/encoded"].tolist() == shown
    copy = pickle.loads(pickle.dumps(source.with_epoch(2)))
    assert [each["image/encoded"].tolist() for each in copy[:8]] == shown
    assert [each["image/encoded"].tolist() for each in source[:8]] != shown


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ({"image_size": (4, 4)}, "`image_size` needs `decode`", "add `decode=True`"),
        (
            {"decode": True, "fit": "pad"},
            "`fit` needs `image_size`",
            "`image_size=(224, 224), fit='crop'`",
        ),
        (
            {"decode": True, "seed": 1},
            "`seed` is that of `augment`",
            "`source.order(seed=1)` shuffles; `augment='imagenet', seed=1` crops",
        ),
        (
            {"decode": True, "augment": "imagenet"},
            "`augment='imagenet'` needs `image_size`, and takes no `fit`: it crops",
            "`image_size=(224, 224), augment='imagenet'`",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    numbered: Path, arguments: dict[str, Any], message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        tfrecreg.data_source("digits1", "train", registry=numbered, **arguments)
    assert (caught.value.message, caught.value.hint) == (message, hint)

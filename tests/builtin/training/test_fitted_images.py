"""Images of data sources in one size."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tfrecreg.builtin.training.arrays import Elements, ImageSize
from tfrecreg.builtin.training.images import fitting
from tfrecreg.core.images.decoder import FeatureDecoder
from tfrecreg.core.images.pixels import Resizing

pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
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


def fitted(image: Any, **size: Any) -> Pixels:
    def decoded(_: str, data: bytes, resizing: Resizing) -> Any:
        return Fixed(image).resized(data, resizing)

    decode = fitting(decoded, Elements(size=ImageSize(**size)))
    found: Pixels = decode("image", b"")
    return found


@pytest.mark.parametrize("sides", SIDES)
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_a_size_is_reached_in_each_way(sides: tuple[int, int], channels: int) -> None:
    image = ramp(*sides, channels)
    for fit in ("stretch", "crop", "pad"):
        assert fitted(image, size=(6, 10), fit=fit).shape == (6, 10, channels)
    short = fitted(image, size=3, fit="short-side").shape
    assert (min(short[:2]), short[2]) == (3, channels)


def test_a_crop_is_in_the_middle_and_padding_is_black() -> None:
    image, tall = ramp(4, 8), ramp(8, 4)
    assert fitted(image, size=(4, 4), fit="crop").tolist() == image[:, 2:6].tolist()
    assert fitted(tall, size=(4, 4), fit="crop").tolist() == tall[2:6].tolist()
    padded = fitted(image, size=(8, 8), fit="pad")
    assert padded[2:6].tolist() == image.tolist()
    assert not padded[[0, 1, 6, 7]].any()
    assert fitted(tall, size=(8, 8), fit="pad")[:, 2:6].tolist() == tall.tolist()

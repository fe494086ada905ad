"""Random crops and flips of ImageNet's recipe, by record, epoch and seed.

The numbers behind them are computed, as those of :mod:`tfrecreg.training.permutation`: words of a
counter that keys of seed and epoch decide. So a record has one crop in an epoch, whatever host,
worker or batch reads it. The formula has operations that IEEE 754 rounds in one way only.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.training.permutation import mix

Augment = Literal["imagenet"]
Drawn: TypeAlias = "npt.NDArray[np.float64]"

_PREFIX = "tfrecreg augment v1"
_ATTEMPTS = 10
_DRAWN = 4 * _ATTEMPTS + 1
"""Numbers that are drawn for a record."""
_TO_32_BITS = np.uint64(30)
_LEAST_AREA = 0.08
_LEAST_RATIO, _RATIOS = 0.75, 4 / 3 - 0.75
"""Width by height of a crop, and the range of it."""


class CropDraws:
    """Random numbers for records.

    Args:
        seed: any integer.
        epoch: any integer.
    """

    def __init__(self, seed: int, epoch: int) -> None:
        text = f"{_PREFIX}\n{seed}\n{epoch}\n"
        self._keys = np.frombuffer(blake3(text.encode("ascii")).digest(16), "<u8").astype(np.uint64)

    def __call__(self, numbers: npt.NDArray[np.int64]) -> Drawn:
        """Numbers from 0 to below 1, multiples of 2^-32.

        Args:
            numbers: of the records, shape (n,).

        Returns:
            Shape (n, 41): for :func:`crop_boxes` and :func:`are_flipped`.
        """
        counters = mix(numbers.astype(np.uint64), self._keys[0])
        every: npt.NDArray[np.uint64] = np.add.outer(counters, np.arange(_DRAWN, dtype=np.uint64))
        words = mix(every, self._keys[1])
        found: Drawn = (words >> _TO_32_BITS).astype(np.float64) * 2.0**-32
        return found


def crop_boxes(draws: Drawn, sides: npt.NDArray[np.float64]) -> npt.NDArray[np.int32]:
    """The parts of images that are their crops: top, left, height and width.

    As `tf.image.sample_distorted_bounding_box` does, an attempt draws a ratio of the sides, and
    then a height between those of the least and the largest part of that ratio. The whole image is
    taken if ten attempts give no part of at least 8 % of it.

    Args:
        draws: of the records, shape (n, 41).
        sides: height and width of the images, shape (n, 2).

    Returns:
        Shape (n, 4).
    """
    shapes, heights, tops, lefts = (
        draws[:, at * _ATTEMPTS : (at + 1) * _ATTEMPTS] for at in range(4)
    )
    height, width = sides[:, :1], sides[:, 1:]
    area = height * width
    ratio = _LEAST_RATIO + shapes * _RATIOS
    most = np.minimum(np.floor(np.sqrt(area / ratio) + 0.5), np.floor((width + 0.49) / ratio))
    most = np.minimum(most, height)
    least = np.minimum(np.floor(np.sqrt(_LEAST_AREA * area / ratio) + 0.5), most)
    rows = least + np.floor(heights * (most - least + 1))
    columns = np.floor(rows * ratio + 0.5)
    rows += rows * columns < _LEAST_AREA * area  # rounding may have made it a little too small
    columns = np.floor(rows * ratio + 0.5)
    fits = (rows <= height) & (columns <= width) & (columns >= 1)
    fits &= rows * columns >= _LEAST_AREA * area
    each, first = np.arange(len(draws)), fits.argmax(axis=1)
    is_part = fits[each, first][:, np.newaxis]
    size = np.where(is_part, np.stack((rows[each, first], columns[each, first]), 1), sides)
    starts = np.stack((tops[each, first], lefts[each, first]), 1)
    found: npt.NDArray[np.int32] = np.concatenate(
        (np.floor(starts * (sides - size + 1)), size), axis=1
    ).astype(np.int32)
    return found


def are_flipped(draws: Drawn) -> npt.NDArray[np.bool_]:
    """Whether images are mirrored, shape (n,)."""
    found: npt.NDArray[np.bool_] = draws[:, -1] < 0.5
    return found

"""Random crops and flips of ImageNet's recipe, by record, epoch and seed.

The numbers behind them are computed, as those of :mod:`tfrecreg.training.permutation`: words of a
counter that keys of seed and epoch decide. So a record has one crop in an epoch, whatever host,
worker or batch reads it. The formula has operations that IEEE 754 rounds in one way only, and is
the same code for NumPy and for TensorFlow.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.training.permutation import mix

Augment = Literal["imagenet"]

_PREFIX = "tfrecreg augment v1"
_ATTEMPTS = 10
DRAWN = 4 * _ATTEMPTS + 1
"""Numbers that are drawn for a record."""
_TO_32_BITS = np.uint64(30)
_LEAST_AREA = 0.08
_LEAST_RATIO, _RATIOS = 0.75, 4 / 3 - 0.75
"""Width by height of a crop, and the range of it."""


class Draws:
    """Draws numbers for records.

    Args:
        seed: any integer.
        epoch: any integer.
    """

    def __init__(self, seed: int, epoch: int) -> None:
        text = f"{_PREFIX}\n{seed}\n{epoch}\n"
        self._keys = np.frombuffer(blake3(text.encode("ascii")).digest(16), "<u8").astype(np.uint64)

    def __call__(self, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Numbers from 0 to below 1, multiples of 2^-32.

        Args:
            numbers: of the records, shape (n,).

        Returns:
            Shape (n, 41): for :func:`crop_box`, and last for :func:`is_flipped`.
        """
        counters = mix(numbers.astype(np.uint64), self._keys[0])[:, np.newaxis]
        words = mix(counters + np.arange(DRAWN, dtype=np.uint64), self._keys[1])
        found: npt.NDArray[np.float64] = (words >> _TO_32_BITS).astype(np.float64) * 2.0**-32
        return found


def crop_box(library: Any, draws: Any, height: Any, width: Any) -> tuple[Any, Any, Any, Any]:
    """The part of an image that is its crop: top, left, height and width, as float64.

    As `tf.image.sample_distorted_bounding_box` does, an attempt draws a ratio of the sides, and
    then a height between those of the least and the largest part of that ratio. The whole image is
    taken if ten attempts give no part of at least 8 % of it.

    Args:
        library: NumPy or TensorFlow, of whose arrays the others are.
        draws: of one record.
        height: of the image, as float64.
        width: of the image, as float64.
    """
    shape, heights, tops, lefts = (
        draws[at * _ATTEMPTS : (at + 1) * _ATTEMPTS] for at in range(4)
    )
    area = height * width
    ratio = _LEAST_RATIO + shape * _RATIOS
    most = library.minimum(
        library.floor(library.sqrt(area / ratio) + 0.5), library.floor((width + 0.49) / ratio)
    )
    most = library.minimum(most, height)
    least = library.minimum(library.floor(library.sqrt(_LEAST_AREA * area / ratio) + 0.5), most)
    rows = least + library.floor(heights * (most - least + 1.0))
    columns = library.floor(rows * ratio + 0.5)
    # Rounding may have made it a little too small.
    rows = library.where(rows * columns < _LEAST_AREA * area, rows + 1.0, rows)
    columns = library.floor(rows * ratio + 0.5)
    fits = (rows <= height) & (columns <= width) & (rows >= 1.0) & (columns >= 1.0)
    fits = fits & (rows * columns >= _LEAST_AREA * area)
    at = library.argmax(library.where(fits, 1.0, 0.0))
    rows = library.where(fits[at], rows[at], height)
    columns = library.where(fits[at], columns[at], width)
    top = library.floor(tops[at] * (height - rows + 1.0))
    left = library.floor(lefts[at] * (width - columns + 1.0))
    return top, left, rows, columns


def is_flipped(draws: Any) -> Any:
    """Whether images are mirrored, by the draws of one or more records."""
    return draws[..., DRAWN - 1] < 0.5

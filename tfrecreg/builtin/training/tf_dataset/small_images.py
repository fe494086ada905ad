"""Small PNGs of one batch, decoded together: without the loop and the decoder that each takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.core.images.png_pixels import LARGEST, decode_alike

_SLACK = 1 << 10
"""By so much a small PNG may be larger than its pixels."""
_MOST_MISSES = 8
"""Number of consecutive batches with other images after which no further one is tried."""


def together(tensorflow: Any, data: Any, channels: int) -> Any:
    """The images of a batch, if all of them are small PNGs of one shape."""
    none = tensorflow.zeros((0, 0, 0, 0), tensorflow.uint8)
    most = tensorflow.reduce_max(tensorflow.strings.length(data))
    decode = _decoder(channels)
    pixels = tensorflow.cond(
        most <= LARGEST + _SLACK,
        lambda: tensorflow.numpy_function(decode, [data], tensorflow.uint8, stateful=False),
        lambda: none,
    )
    return tensorflow.ensure_shape(pixels, (None, None, None, None))


def _decoder(channels: int) -> Callable[[npt.NDArray[np.object_]], npt.NDArray[np.uint8]]:
    misses = 0

    def decode(images: npt.NDArray[np.object_]) -> npt.NDArray[np.uint8]:
        nonlocal misses
        pixels = decode_alike(images.tolist()) if misses < _MOST_MISSES else None
        pixels = None if pixels is None else _with_channels(pixels, channels)
        misses = misses + 1 if pixels is None else 0
        return np.empty((0, 0, 0, 0), np.uint8) if pixels is None else pixels

    return decode


def _with_channels(pixels: npt.NDArray[np.uint8], channels: int) -> npt.NDArray[np.uint8] | None:
    """The same images with so many channels; None if TensorFlow has to convert them."""
    if channels in (0, pixels.shape[-1]):
        return pixels
    return np.repeat(pixels, 3, axis=-1) if (pixels.shape[-1], channels) == (1, 3) else None

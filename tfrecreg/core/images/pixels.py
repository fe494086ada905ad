"""Encoded images to arrays, for training: by Pillow, without limits of its own.
Small plain PNGs take a shorter way.

Checks, which read any data, use `decoder` instead.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrecreg.core.images.decoder import pillow
from tfrecreg.core.images.png_pixels import decode_alike
from tfrecreg.core.values.text import safe

Resizing: TypeAlias = Callable[[int, int], tuple[tuple[int, int], Sequence[int]]]
"""From height and width of an image to those that it gets, and to the part of it that gets them:
top, left, height and width."""

_CHANNELS = {"L": "L", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "1": "L", "F": "L"}
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")
"""Modes of grey images of 16 bits."""


def decode_pixels(data: bytes) -> npt.NDArray[np.uint8]:
    """The pixels of an image, of its first frame if it has several.

    Returns:
        Shape (height, width, channels), as `tf.io.decode_image` gives it: 1 channel for grey, 2 for
        grey with alpha, 3 or 4 for colours. Of 16 bits the upper 8.

    Raises:
        ValueError: it does not decode; the text is the reason, escaped.
        MissingExtraError: Pillow is not installed.
    """
    small = decode_alike([data])
    found: npt.NDArray[np.uint8]
    found = np.array(_decoded(data), np.uint8) if small is None else small[0]
    return found if found.ndim == 3 else found[:, :, np.newaxis]


def decode_resized(data: bytes, fit: Resizing) -> npt.NDArray[np.uint8]:
    """As :func:`resized` of :func:`decode_pixels`, without the two copies of all pixels.

    Raises:
        ValueError, MissingExtraError: as :func:`decode_pixels`.
    """
    small = decode_alike([data])
    if small is not None:
        return resized(small[0], fit)
    image = _decoded(data)
    return _resized(image, len(image.getbands()), fit)


def _decoded(data: bytes) -> Any:
    """An image of Pillow, in a mode that has bytes for channels."""
    image_module = pillow("PIL.Image")
    try:
        with image_module.open(io.BytesIO(data)) as image:
            image.load()
            if image.mode in _DEEP:
                deep = np.asarray(image).astype(np.int64)
                return image_module.fromarray((deep >> 8).clip(0, 255).astype(np.uint8))
            see_through = image.mode in ("P", "PA") and "transparency" in image.info
            mode = _CHANNELS.get(image.mode, "RGBA" if see_through else "RGB")
            return image if image.mode == mode else image.convert(mode)
    except image_module.DecompressionBombError as error:
        raise ValueError(safe(str(error), limit=300)) from error
    except Exception as error:
        # Decoders raise many errors: OSError, SyntaxError, struct.error, KeyError …
        why = re.sub(r" at 0x[0-9a-f]+", "", str(error))
        raise ValueError(f"{type(error).__name__}: {safe(why, limit=300)}") from error


def resized(pixels: npt.NDArray[np.uint8], fit: Resizing) -> npt.NDArray[np.uint8]:
    """A part of an image in a size: bilinear, filtered where it becomes smaller."""
    channels = pixels.shape[2]
    return _resized(
        pillow("PIL.Image").fromarray(pixels[:, :, 0] if channels == 1 else pixels), channels, fit
    )


def _resized(image: Any, channels: int, fit: Resizing) -> npt.NDArray[np.uint8]:
    size, (top, left, rows, columns) = fit(image.height, image.width)
    box = (left, top, left + columns, top + rows)
    image = image.resize(size[::-1], pillow("PIL.Image").Resampling.BILINEAR, box=box)
    return np.array(image, np.uint8).reshape(*size, channels)

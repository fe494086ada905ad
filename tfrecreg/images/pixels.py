"""Encoded images to arrays in this process, for training: by Pillow, without limits of its own.
Small plain PNGs take a shorter way.

Checks, which read any data, use `decoder` instead.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.errors import MissingExtraError
from tfrecreg.images.png_pixels import decode_alike
from tfrecreg.text import safe

_CHANNELS = {"L": "L", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "1": "L", "F": "L"}
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")
"""Modes of grey images of 16 bits."""


def expect_pillow() -> None:
    """Refuse to go on without Pillow.

    Raises:
        MissingExtraError: it is not installed.
    """
    _pillow()


def _pillow() -> Any:
    try:
        return import_module("PIL.Image")
    except ModuleNotFoundError:
        raise MissingExtraError("decoding images", "images") from None


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
    if small is not None:
        found: npt.NDArray[np.uint8] = small[0]
        return found
    image_module = _pillow()
    try:
        with image_module.open(io.BytesIO(data)) as image:
            image.load()
            if image.mode in _DEEP:
                found = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
            else:
                see_through = image.mode in ("P", "PA") and "transparency" in image.info
                mode = _CHANNELS.get(image.mode, "RGBA" if see_through else "RGB")
                found = np.array(image if image.mode == mode else image.convert(mode), np.uint8)
    except image_module.DecompressionBombError as error:
        raise ValueError(safe(str(error), limit=300)) from error
    except Exception as error:
        # Decoders raise many errors: OSError, SyntaxError, struct.error, KeyError …
        why = re.sub(r" at 0x[0-9a-f]+", "", str(error))
        raise ValueError(f"{type(error).__name__}: {safe(why, limit=300)}") from error
    return found if found.ndim == 3 else found[:, :, np.newaxis]


def resized(
    pixels: npt.NDArray[np.uint8], size: tuple[int, int], box: Sequence[int]
) -> npt.NDArray[np.uint8]:
    """A part of an image in a size: bilinear, filtered where it becomes smaller.

    Args:
        pixels: shape (height, width, channels).
        size: height and width.
        box: top, left, height and width of the part.
    """
    pillow = _pillow()
    top, left, rows, columns = box
    channels = pixels.shape[2]
    image = pillow.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
    image = image.resize(
        size[::-1], pillow.Resampling.BILINEAR, box=(left, top, left + columns, top + rows)
    )
    return np.array(image, np.uint8).reshape(*size, channels)

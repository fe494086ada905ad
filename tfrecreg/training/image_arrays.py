"""Encoded images to arrays, by Pillow. Its only home outside the validators."""

from __future__ import annotations

import io
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.errors import MissingExtraError, RefusedError
from tfrecreg.text import safe

_CHANNELS = {"L": "L", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "1": "L", "F": "L"}
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")
"""Modes of grey images of 16 bits."""


def expect_pillow() -> None:
    """Refuse to go on without Pillow.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import_module("PIL.Image")
    except ModuleNotFoundError:
        raise MissingExtraError("decoding images", "images") from None


def image_array(feature: str, value: Any, *, single: bool) -> Any:
    """What a feature has in an element where its images are decoded.

    Args:
        feature: its name.
        value: `bytes`, or an array of them.
        single: whether an array with one value becomes one image; else it stays an array, and has
            an image for each value.

    Raises:
        RefusedError: an image does not decode. The message is the end of a sentence.
    """
    if isinstance(value, bytes):
        return _decoded(feature, value)
    if not isinstance(value, np.ndarray) or value.dtype != object:
        raise RefusedError(
            f"has numbers in `{safe(feature)}`, which cannot be decoded as an image",
            hint="`decode=[…]` names features that hold encoded images",
        )
    if single and value.size == 1:
        return _decoded(feature, value.reshape(-1)[0])
    images = np.empty(value.shape, object)
    for at, each in np.ndenumerate(value):
        images[at] = _decoded(feature, each)
    return images


def _decoded(feature: str, data: bytes) -> npt.NDArray[np.uint8]:
    """Shape (height, width, channels); channels as the file has them: 1, 2, 3 or 4."""
    image_module: Any = import_module("PIL.Image")
    try:
        with image_module.open(io.BytesIO(data)) as image:
            image.load()
            if image.mode in _DEEP:
                found = (np.asarray(image).astype(np.int64) >> 8).clip(0, 255).astype(np.uint8)
            else:
                see_through = image.mode in ("P", "PA") and "transparency" in image.info
                mode = _CHANNELS.get(image.mode, "RGBA" if see_through else "RGB")
                found = np.array(image if image.mode == mode else image.convert(mode), np.uint8)
    except (OSError, ValueError, SyntaxError, image_module.DecompressionBombError) as error:
        why = safe(str(error), limit=300)
        raise RefusedError(
            f"has an image in `{safe(feature)}` that does not decode: {why}",
            hint="`tfrecreg check` with the validator `images` finds all such images",
        ) from error
    return found if found.ndim == 3 else found[:, :, np.newaxis]

"""Decodes features of encoded images with Pillow, and resizes them as `load` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.arrays import Elements, ImageSize
from tfrecreg.core.images.pixels import Resizing
from tfrecreg.core.values.errors import RefusedError

DecodeAsIs = Callable[[str, bytes], npt.NDArray[Any]]
"""Decodes a value of a feature; raises a ValueError for a damaged value."""


class Decode(Protocol):
    """Decodes a value. `fit` gives the size that the image is resized to."""

    def __call__(
        self, feature: str, data: bytes, fit: Resizing | None = None, /
    ) -> npt.NDArray[Any]: ...


def image_array(feature: str, value: Any, decode: DecodeAsIs, *, single: bool) -> Any:
    """The decoded value of a feature in an element."""
    if isinstance(value, bytes):
        return _decoded(feature, value, decode)
    if isinstance(value, list):
        return [image_array(feature, each, decode, single=True) for each in value]
    if not isinstance(value, np.ndarray) or value.dtype != object:
        raise RefusedError(f"has numbers in `{feature}`, so it cannot be decoded as an image")
    if single and value.size == 1:
        return _decoded(feature, value.reshape(-1)[0], decode)
    images = np.empty(value.shape, object)
    for at, each in np.ndenumerate(value):
        images[at] = _decoded(feature, each, decode)
    return images


def _decoded(feature: str, data: bytes, decode: DecodeAsIs) -> npt.NDArray[Any]:
    try:
        return decode(feature, data)
    except ValueError as error:
        raise RefusedError(
            f"has an image in `{feature}` that does not decode: {error}"
        ) from error.__cause__


def fitting(decode: Decode | None, form: Elements) -> DecodeAsIs | None:
    """Return a decoder that also converts images to the size and channels of `form`."""
    if decode is None:
        return None
    sized = decode if form.size.size is None else partial(_fitted, decode, form.size)
    if not form.size.channels:
        return sized
    return lambda feature, data: _in_channels(sized(feature, data), form.size.channels)


def _in_channels(pixels: npt.NDArray[Any], channels: int) -> npt.NDArray[Any]:
    """Convert an image to gray, to colors, or to colors with opacity.

    Opacity is kept only with 4 channels, as in `tf.io.decode_image`. Gray is 299 / 1000 red, 587 /
    1000 green and 114 / 1000 blue, as in Pillow (ITU-R BT.601, rounded).
    """
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[-1] > 4:
        return pixels
    has = pixels.shape[-1]
    if channels == has:
        return pixels
    colors, opacity = (pixels[..., :-1], pixels[..., -1:]) if has in (2, 4) else (pixels, None)
    if channels == 1 and colors.shape[-1] == 3:
        luma = colors.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
        colors = ((luma + 0x8000) >> 16).astype(np.uint8)[..., np.newaxis]
    elif channels > 1 and colors.shape[-1] == 1:
        colors = np.repeat(colors, 3, axis=-1)
    if channels == 4:
        full = np.full((*pixels.shape[:-1], 1), 255, np.uint8)
        colors = np.concatenate([colors, full if opacity is None else opacity], axis=-1)
    return np.ascontiguousarray(colors)


def _fitted(decode: Decode, size: ImageSize, feature: str, data: bytes) -> npt.NDArray[Any]:
    sides = size.size
    top = left = 0

    def fit(height: int, width: int) -> tuple[tuple[int, int], Sequence[int]]:
        nonlocal top, left
        whole = (0, 0, height, width)
        if not isinstance(sides, tuple):
            side, shorter = sides or 0, max(1, min(height, width))
            return (height * side // shorter, width * side // shorter), whole
        if size.fit == "stretch":
            return sides, whole
        if size.fit == "crop":
            rows = min(max(width * sides[0] // sides[1], 1), height)
            columns = min(max(height * sides[1] // sides[0], 1), width)
            return sides, ((height - rows) // 2, (width - columns) // 2, rows, columns)
        # The same sides as `tf.image.resize_with_pad`, which `load` agrees with.
        top = max(0, sides[0] * width - height * sides[1]) // (2 * width)
        left = max(0, sides[1] * height - width * sides[0]) // (2 * height)
        rows = min(sides[0], max(1, height * sides[1] // width))
        columns = min(sides[1], max(1, width * sides[0] // height))
        return (rows, columns), whole

    found = decode(feature, data, fit)
    if size.fit != "pad" or not isinstance(sides, tuple):
        return found
    rows, columns, channels = found.shape
    padded = np.zeros((*sides, channels), np.uint8)
    padded[top : top + rows, left : left + columns] = found
    return padded

"""Decoded images in one size, by Pillow: the fits of `load`, and its random crops."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.images.pixels import resized
from tfrecreg.training.augmentation import CropDraws, are_flipped, crop_boxes
from tfrecreg.training.image_arrays import Decode
from tfrecreg.training.image_sizes import ImageSize


def fitting(decode: Decode | None, size: ImageSize, number: int, seed: int, epoch: int) -> Any:
    """What decodes images, and brings those of one record to their size.

    Args:
        decode: decodes a value of a feature; None where nothing is decoded.
        size: that they get.
        number: of the record through all shards of its splits, as `load` counts them.
        seed: of random crops.
        epoch: of random crops.
    """
    if decode is None or size.size is None:
        return decode

    def decoded(feature: str, data: bytes) -> npt.NDArray[Any]:
        pixels = decode(feature, data)
        if pixels.ndim != 3 or pixels.dtype != np.uint8:
            raise ValueError(
                f"`image_size` applies to images of 8 bits, and this is {pixels.dtype} of shape "
                f"{pixels.shape}"
            )
        height, width, _ = pixels.shape
        if size.augment is None:
            return _fitted(pixels, size)
        assert isinstance(size.size, tuple)  # else `augment` was refused
        draws = CropDraws(seed, epoch)(np.array([number]))
        (box,) = crop_boxes(draws, np.array([[height, width]], np.float64)).tolist()
        found = resized(pixels, size.size, box)
        return np.ascontiguousarray(found[:, ::-1]) if are_flipped(draws)[0] else found

    return decoded


def _fitted(pixels: npt.NDArray[np.uint8], size: ImageSize) -> npt.NDArray[np.uint8]:
    has_height, has_width, channels = pixels.shape
    whole = (0, 0, has_height, has_width)
    if not isinstance(size.size, tuple):
        side, shorter = size.size or 0, max(1, min(has_height, has_width))
        return resized(pixels, (has_height * side // shorter, has_width * side // shorter), whole)
    height, width = size.size
    if size.fit == "stretch":
        return resized(pixels, size.size, whole)
    if size.fit == "crop":
        rows = min(max(has_width * height // width, 1), has_height)
        columns = min(max(has_height * width // height, 1), has_width)
        box = ((has_height - rows) // 2, (has_width - columns) // 2, rows, columns)
        return resized(pixels, size.size, box)
    rows = min(height, max(1, has_height * width // has_width))
    columns = min(width, max(1, has_width * height // has_height))
    found = np.zeros((height, width, channels), np.uint8)
    top, left = (height - rows) // 2, (width - columns) // 2
    found[top : top + rows, left : left + columns] = resized(pixels, (rows, columns), whole)
    return found

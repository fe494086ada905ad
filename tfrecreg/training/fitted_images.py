"""Decoded images in one size, by Pillow: the fits of `load`, and its random crops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.training.augmentation import CropDraws, are_flipped, crop_boxes
from tfrecreg.training.image_arrays import Decode, DecodeAsIs
from tfrecreg.training.image_sizes import ImageSize


def fitting(
    decode: Decode | None, size: ImageSize, number: int, seed: int, epoch: int
) -> DecodeAsIs | None:
    """What decodes images, and brings those of one record to their size.

    Args:
        decode: decodes a value of a feature, in a size; None where nothing is decoded.
        size: that they get.
        number: of the record through all shards of its splits, as `load` counts them.
        seed: of random crops.
        epoch: of random crops.
    """
    if decode is None or size.size is None:
        return decode

    def decoded(feature: str, data: bytes) -> npt.NDArray[Any]:
        if size.augment is None:
            return _fitted(decode, feature, data, size)
        flipped = False

        def crop(height: int, width: int) -> tuple[tuple[int, int], Sequence[int]]:
            nonlocal flipped
            draws = CropDraws(seed, epoch)(np.array([number]))
            (box,) = crop_boxes(draws, np.array([[height, width]], np.float64)).tolist()
            flipped = bool(are_flipped(draws)[0])
            assert isinstance(size.size, tuple)  # else `augment` was refused
            return size.size, box

        found = decode(feature, data, crop)
        return np.ascontiguousarray(found[:, ::-1]) if flipped else found

    return decoded


def _fitted(decode: Decode, feature: str, data: bytes, size: ImageSize) -> npt.NDArray[Any]:
    sides = size.size

    def fit(height: int, width: int) -> tuple[tuple[int, int], Sequence[int]]:
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
        rows = min(sides[0], max(1, height * sides[1] // width))
        columns = min(sides[1], max(1, width * sides[0] // height))
        return (rows, columns), whole

    found = decode(feature, data, fit)
    if size.fit != "pad" or not isinstance(sides, tuple):
        return found
    rows, columns, channels = found.shape
    padded = np.zeros((*sides, channels), np.uint8)
    top, left = (sides[0] - rows) // 2, (sides[1] - columns) // 2
    padded[top : top + rows, left : left + columns] = found
    return padded

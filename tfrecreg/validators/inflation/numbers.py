"""How narrow numbers could be stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Range", "byte_levels", "message_bytes", "smooth_levels", "varint_bytes"]

_LEVELS = 256
_NEAR = 0.05
"""Of a step: numbers that were scaled as float32 lie no farther beside their level."""
_SMOOTH = 0.35
"""Of the deviation: neighbours in a picture differ by less on average; chance makes it 1.13."""
_DIVISORS = (1, 2, 3)
"""The smallest difference that is seen may be so many steps."""


class Range:
    """What whole numbers were seen, and so how many bytes each needs at least. Plain data."""

    # It is msgspec's to pack: see tfrecreg.scan.codec.Plain.
    plain_type = tuple[int, int, int]

    def __init__(self, count: int = 0, low: int = 0, high: int = 0) -> None:
        self.count = count
        self.low = low
        self.high = high

    def add(self, low: int, high: int, count: int) -> None:
        """Take in more numbers, from `low` to `high`."""
        if count:
            self.low = min(self.low, low) if self.count else low
            self.high = max(self.high, high) if self.count else high
            self.count += count

    def plain(self) -> tuple[int, int, int]:
        return self.count, self.low, self.high

    @classmethod
    def of_plain(cls, plain: tuple[int, int, int]) -> Range:
        return cls(*plain)

    @property
    def dtype(self) -> str:
        """The narrowest type of NumPy and TensorFlow that holds them all."""
        for dtype in ("uint8", "int8", "uint16", "int16", "uint32", "int32"):
            limits = np.iinfo(dtype)
            if limits.min <= self.low and self.high <= limits.max:
                return dtype
        return "int64"


def byte_levels(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8] | None:
    """The numbers as bytes, if they are a byte each that was scaled and moved: ``x / 255 - 0.5``.

    That is so where they lie on at most 256 levels, evenly spaced.

    Args:
        values: any shape, of numbers.

    Returns:
        The level of each, from 0, in the same shape; None where they are no such numbers.
    """
    different, which = np.unique(values, return_inverse=True)
    if len(different) > _LEVELS or not np.isfinite(different).all():
        return None
    levels = np.zeros(len(different))
    if len(different) > 1:
        offsets = different.astype(np.float64) - float(different[0])
        step = float(np.diff(offsets).min())
        for divisor in _DIVISORS:
            levels = offsets * (divisor / step)
            if np.abs(levels - np.rint(levels)).max() <= _NEAR:
                break
        else:
            return None
        if levels[-1] >= _LEVELS - 0.5:
            return None
    found: npt.NDArray[np.uint8] = np.rint(levels).astype(np.uint8)[which].reshape(values.shape)
    return found


def smooth_levels(
    values: npt.NDArray[Any], width: int, channels: int
) -> npt.NDArray[np.uint8] | None:
    """Floats as 256 levels, if they go up and down as the pixels of a picture do.

    Pixels that were resized, or whose mean was taken off for each place, lie on no levels.

    Args:
        values: rows of a picture, flat.
        width: pixels of a row.
        channels: numbers of a pixel.
    """
    rows = len(values) // (width * channels)
    if not rows or width < 2 or not np.isfinite(values).all():
        return None
    pixels = values[: rows * width * channels].astype(np.float64).reshape(rows, width, channels)
    deviation = float(pixels.std())
    if not deviation or np.abs(np.diff(pixels, axis=1)).mean() > _SMOOTH * deviation:
        return None
    low, high = float(pixels.min()), float(pixels.max())
    found: npt.NDArray[np.uint8] = np.rint((pixels - low) * (255 / (high - low))).astype(np.uint8)
    return found.ravel()


def varint_bytes(values: npt.NDArray[np.int64]) -> int:
    """Bytes of these numbers as varints: 1 for 0 to 127, 2 up to 16,383, 10 for negative ones."""
    bits = values.view(np.uint64)
    return len(bits) + sum(int((bits >> np.uint64(7 * each) > 0).sum()) for each in range(1, 10))


def message_bytes(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Bytes of features as messages, as `Feature.wire_bytes` has them.

    Args:
        values: bytes of the values of each: of one of bytes, or of packed numbers.
    """
    lists = 1 + _length_bytes(values) + values
    return 1 + _length_bytes(lists) + lists


def _length_bytes(lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    found: npt.NDArray[np.int64] = np.ones_like(lengths)
    for bits in (7, 14, 21, 28):
        found += lengths >= 1 << bits
    return found

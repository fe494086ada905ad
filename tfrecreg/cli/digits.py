"""Draw a small dataset of digits for the demo, and write it as gzip-compressed IDX files.

This needs no download and no font. Each digit is a few smooth curves, drawn with a round pen
through points that vary from image to image. The same arguments give the same images on every
machine. Random numbers come from PCG64's raw stream, which NumPy promises to keep. The drawing uses
only operations that IEEE 754 rounds exactly (no sines, no sums whose order NumPy may choose).
"""

from __future__ import annotations

from math import prod
from struct import pack
from typing import TYPE_CHECKING

import numpy as np

from tfrecreg.core.records.gzip_writer import GzipEncoder
from tfrecreg.core.storage.interface import Storage

Stroke = tuple[tuple[float, float], ...]
"""Points on a smooth curve: x grows to the right and y grows down, both from 0 to 1. At a corner of
a digit, one stroke ends and the next stroke begins."""

_ZERO: Stroke = (
    (0.55, 0.0), (0.2, 0.14), (0.06, 0.5), (0.2, 0.88), (0.5, 1.0),
    (0.82, 0.85), (0.94, 0.48), (0.8, 0.12), (0.5, 0.0),
)  # fmt: skip
_ONE: Stroke = ((0.52, 0.0), (0.5, 0.5), (0.48, 1.0))
_ONE_FLAG: Stroke = ((0.22, 0.24), (0.4, 0.13), (0.52, 0.0))
_TWO: Stroke = (
    (0.1, 0.24), (0.3, 0.04), (0.62, 0.0), (0.84, 0.2), (0.72, 0.48), (0.42, 0.76), (0.08, 0.97),
)  # fmt: skip
_TWO_FOOT: Stroke = ((0.08, 0.97), (0.5, 0.93), (0.96, 0.97))
_TWO_LOOPED: Stroke = (
    (0.14, 0.2), (0.42, 0.0), (0.76, 0.14), (0.7, 0.46), (0.42, 0.78), (0.16, 0.96), (0.06, 0.84),
    (0.24, 0.76), (0.55, 0.92), (0.98, 0.94),
)  # fmt: skip
_THREE_TOP: Stroke = ((0.12, 0.12), (0.46, 0.0), (0.8, 0.16), (0.68, 0.38), (0.36, 0.47))
_THREE_BOTTOM: Stroke = ((0.36, 0.47), (0.74, 0.53), (0.9, 0.75), (0.6, 0.98), (0.1, 0.9))
_FOUR_OPEN: Stroke = ((0.2, 0.02), (0.12, 0.3), (0.1, 0.58))
_FOUR_BAR: Stroke = ((0.1, 0.58), (0.5, 0.57), (0.94, 0.52))
_FOUR_DOWN: Stroke = ((0.78, 0.06), (0.72, 0.5), (0.66, 1.0))
_FOUR_SLOPE: Stroke = ((0.62, 0.0), (0.34, 0.32), (0.06, 0.64))
_FOUR_FLOOR: Stroke = ((0.06, 0.64), (0.5, 0.64), (0.96, 0.62))
_FOUR_POST: Stroke = ((0.62, 0.0), (0.64, 0.5), (0.62, 1.0))
_FIVE_HAT: Stroke = ((0.9, 0.02), (0.55, 0.04), (0.26, 0.04))
_FIVE_NECK: Stroke = ((0.26, 0.04), (0.2, 0.22), (0.18, 0.44))
_FIVE_BELLY: Stroke = (
    (0.18, 0.44), (0.5, 0.37), (0.84, 0.52), (0.8, 0.84), (0.46, 1.0), (0.08, 0.9),
)  # fmt: skip
_SIX: Stroke = (
    (0.74, 0.0), (0.38, 0.2), (0.16, 0.56), (0.2, 0.88), (0.52, 1.0), (0.84, 0.84), (0.74, 0.58),
    (0.46, 0.54), (0.18, 0.74),
)  # fmt: skip
_SEVEN_TOP: Stroke = ((0.08, 0.07), (0.5, 0.05), (0.9, 0.03))
_SEVEN_DOWN: Stroke = ((0.9, 0.03), (0.62, 0.45), (0.44, 1.0))
_SEVEN_BAR: Stroke = ((0.34, 0.54), (0.58, 0.51), (0.86, 0.5))
_EIGHT: Stroke = (
    (0.78, 0.1), (0.46, 0.0), (0.2, 0.18), (0.42, 0.42), (0.76, 0.64), (0.76, 0.92), (0.46, 1.0),
    (0.18, 0.88), (0.26, 0.62), (0.6, 0.4), (0.82, 0.2), (0.72, 0.06),
)  # fmt: skip
_NINE_HEAD: Stroke = (
    (0.8, 0.14), (0.5, 0.0), (0.18, 0.18), (0.22, 0.42), (0.52, 0.48), (0.8, 0.28), (0.82, 0.12),
)  # fmt: skip
_NINE_STRAIGHT: Stroke = ((0.82, 0.12), (0.78, 0.5), (0.7, 1.0))
_NINE_HOOKED: Stroke = ((0.82, 0.12), (0.84, 0.6), (0.66, 0.94), (0.24, 0.96))

GLYPHS: tuple[tuple[tuple[Stroke, ...], ...], ...] = (
    ((_ZERO,),),
    ((_ONE,), (_ONE,), (_ONE_FLAG, _ONE)),
    ((_TWO, _TWO_FOOT), (_TWO_LOOPED,)),
    ((_THREE_TOP, _THREE_BOTTOM),),
    ((_FOUR_OPEN, _FOUR_BAR, _FOUR_DOWN), (_FOUR_SLOPE, _FOUR_FLOOR, _FOUR_POST)),
    ((_FIVE_HAT, _FIVE_NECK, _FIVE_BELLY),),
    ((_SIX,),),
    ((_SEVEN_TOP, _SEVEN_DOWN), (_SEVEN_TOP, _SEVEN_DOWN, _SEVEN_BAR)),
    ((_EIGHT,),),
    ((_NINE_HEAD, _NINE_STRAIGHT), (_NINE_HEAD, _NINE_HOOKED)),
)
"""For each digit, the ways to write it. Each way is a tuple of strokes."""


if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

SIDE = 28
"""Length of an image's side, in pixels."""

_BLOCK = 256
"""Number of images that are drawn at a time. They fit into a processor's cache."""
_SUBDIVISIONS = 3
"""Number of straight pieces between two points of a curve."""


def write_digits(raw: Storage, *, train: int, test: int, seed: int, more: int = 0) -> None:
    """Write the four files of MNIST, under MNIST's names, at the root of `raw`.

    Args:
        raw: storage for the files.
        train: number of images for training.
        test: number of images for testing.
        seed: determines the images.
        more: number of extra training images, which follow the others.
    """
    for name, count, number in (("train", train, 0), ("t10k", test, 1)):
        pixels, labels = draw_digits(count, seed=seed, stream=number)
        if more and name == "train":
            more_pixels, more_labels = draw_digits(more, seed=seed + 1)
            pixels = np.concatenate([pixels, more_pixels])
            labels = np.concatenate([labels, more_labels])
        _write(raw, f"{name}-images-idx3-ubyte.gz", pixels)
        _write(raw, f"{name}-labels-idx1-ubyte.gz", labels)


def draw_digits(
    count: int, *, seed: int, stream: int = 0
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    if count < 1:
        raise ValueError(f"a split needs at least 1 image, not {count}")
    dice = _Dice(seed, stream)
    labels = np.minimum(dice.uniform(count) * 10, 9).astype(np.uint8)
    pixels = np.zeros((count, SIDE, SIDE), np.uint8)
    for digit, variants in enumerate(GLYPHS):
        which = np.flatnonzero(labels == digit)
        style = np.minimum(dice.uniform(len(which)) * len(variants), len(variants) - 1)
        for number, strokes in enumerate(variants):
            chosen = which[style.astype(np.int64) == number]
            for start in range(0, len(chosen), _BLOCK):
                some = chosen[start : start + _BLOCK]
                pixels[some] = _draw(strokes, len(some), dice)
    return pixels, labels


class _Dice:
    """Random numbers that are equal for every version of NumPy and on every machine."""

    def __init__(self, seed: int, stream: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence([seed, stream]))

    def uniform(self, *shape: int) -> Floats:
        """Return numbers of at least 0 and below 1, in steps of 2^-24."""
        raw = np.atleast_1d(self._bits.random_raw(prod(shape))).reshape(shape)
        numbers: Floats = (raw >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)
        return numbers

    def spread(self, width: float, *shape: int) -> Floats:
        """Return numbers from -width to width in a triangular distribution around 0."""
        numbers: Floats = (self.uniform(*shape) - self.uniform(*shape)) * np.float32(width)
        return numbers


def _draw(strokes: tuple[Stroke, ...], count: int, dice: _Dice) -> NDArray[np.uint8]:
    """Return `count` images of one glyph, in the shape (count, 28, 28)."""
    # Scale the unit box to pixels: about 20 high and 14 wide in the middle of 28 × 28.
    height = 19.0 + dice.spread(2.5, count)
    width = 13.5 + dice.spread(4.0, count)
    slant = dice.spread(0.4, count) + np.float32(0.12)
    tilt = dice.spread(0.15, count)
    left = 13.5 + dice.spread(1.2, count)
    top = 13.5 + dice.spread(1.2, count)
    nearest = np.full((count, SIDE, SIDE), 1e6, np.float32)
    grid = np.arange(SIDE, dtype=np.float32)
    for stroke in strokes:
        points = np.asarray(stroke, np.float32) - np.float32(0.5)
        wobble = dice.spread(0.075, 2, count, len(points))
        x, y = points[:, 0] + wobble[0], points[:, 1] + wobble[1]
        x, y = x * width[:, None], y * height[:, None]
        x, y = x - y * slant[:, None], y + x * tilt[:, None]
        _ink(nearest, grid, _smooth(x + left[:, None]), _smooth(y + top[:, None]))
    radius = 0.95 + dice.uniform(count, 1, 1) * np.float32(0.75)
    cover = np.clip(radius + np.float32(0.6) - np.sqrt(nearest), 0, 1.2) / np.float32(1.2)
    # Ink is uneven and paper stays blank, as in cleaned scans.
    cover = cover * (1 - dice.uniform(count, SIDE, SIDE) * np.float32(0.25) * (cover < 1))
    drawn: NDArray[np.uint8] = (cover * np.float32(254) + np.float32(0.5)).astype(np.uint8)
    return drawn


def _smooth(points: Floats) -> Floats:
    """Return more points on a Catmull-Rom spline through the points of each row."""
    before = np.concatenate([points[:, :1], points[:, :-2]], axis=1)
    start, end = points[:, :-1], points[:, 1:]
    after = np.concatenate([points[:, 2:], points[:, -1:]], axis=1)
    pieces = []
    for number in range(_SUBDIVISIONS):
        t = number / _SUBDIVISIONS
        pieces.append(
            start
            + (end - before) * (t / 2)
            + (before * 2 - start * 5 + end * 4 - after) * (t * t / 2)
            + (start * 3 - before - end * 3 + after) * (t * t * t / 2)
        )
    inner = np.stack(pieces, axis=2).reshape(len(points), -1)
    return np.concatenate([inner, points[:, -1:]], axis=1)


def _ink(nearest: Floats, grid: Floats, x: Floats, y: Floats) -> None:
    """Update `nearest`: for each pixel, the squared distance to the nearest piece drawn so far."""
    for number in range(x.shape[1] - 1):
        start_x, start_y = x[:, number], y[:, number]
        along_x, along_y = x[:, number + 1] - start_x, y[:, number + 1] - start_y
        square = np.maximum(along_x * along_x + along_y * along_y, np.float32(1e-6))
        from_x, from_y = grid - start_x[:, None], grid - start_y[:, None]
        # Each array of pixels is the sum of a term per column and a term per row.
        dot_x, dot_y = from_x * along_x[:, None], from_y * along_y[:, None]
        dot = dot_x[:, None, :] + dot_y[:, :, None]
        length = square[:, None, None]
        place = np.clip(dot / length, 0, 1)
        apart = (from_x * from_x)[:, None, :] + (from_y * from_y)[:, :, None]
        apart += place * (place * length - dot * 2)
        np.minimum(nearest, np.maximum(apart, 0), out=nearest)


def _write(raw: Storage, path: str, array: NDArray[np.uint8]) -> None:
    shape = array.shape
    data = pack(f">BBBB{len(shape)}I", 0, 0, 0x08, len(shape), *shape) + array.tobytes()
    encoder = GzipEncoder(apart=True)  # one member, without empty blocks
    with raw.create(path) as writer:
        writer.write(encoder.write(data) + encoder.close())

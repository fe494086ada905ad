"""Masks of objects as strips that are drawn: from run lengths, and from one image per object.

Both are forms that the source `coco` writes. The text form of run lengths is that of COCO's
`maskApi.c`: columns from the left, each from the top, as numbers of zeros and ones in turn. A
number has base-32 digits, the lowest first, each as the character 48 + digit, plus 32 where more
follow; bit 16 of the last is the sign. From the fourth on it is the difference from the number two
before.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.images.decoder import Conversion, Undecodable, convert_image
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import read_header
from tfrecreg.core.values.errors import TfrecregError

COUNTS, SIZE = "image/object/rle/counts", "image/object/rle/size"
"""Run lengths in text form, and height and width, for each object."""
MASK = "image/object/mask"
"""An image for each object, in which zero is not the object; as TensorFlow's Object Detection API
reads it.
"""

_LINES = 64
"""Columns or rows of a mask that are drawn; the others look like their neighbours."""
_MASKS = 60
"""Masks drawn on an image, as many as objects."""
_STRIPS = 1000
"""Strips drawn on an image."""
_DIGITS = 7
"""Digits of a number below 2^31."""


class Strip(NamedTuple):
    """A rectangle that an object covers, in fractions of the sides of the image."""

    left: float
    top: float
    width: float
    height: float


def strips_of(example: Example) -> list[tuple[Strip, ...]]:
    """The strips of the mask of each object. A mask that does not parse or decode has none."""
    found: list[tuple[Strip, ...]] = []
    left = _STRIPS
    for strips in islice(_masks(example), _MASKS):
        found.append(tuple(islice(strips, left)))
        left -= len(found[-1])
    return found


def _masks(example: Example) -> Iterator[Iterator[Strip]]:
    counts, sizes = example.get(COUNTS), example.get(SIZE)
    if (
        counts is not None
        and sizes is not None
        and counts.kind is Kind.BYTES
        and sizes.kind is Kind.INT64
    ):
        pairs = zip(sizes.values[::2], sizes.values[1::2], strict=False)
        for text, (height, width) in zip(counts.values, pairs, strict=False):
            yield _of_runs(text, height, width)
        return
    images = example.get(MASK)
    if images is not None and images.kind is Kind.BYTES:
        yield from map(_of_image, images.values)


def _of_runs(text: bytes, height: int, width: int) -> Iterator[Strip]:
    """One strip for each run in a column that is drawn."""
    if min(height, width) < 1:
        return
    step = -(-width // _LINES)
    covered = 0
    for number, count in enumerate(_numbers(text)):
        start, end = covered, covered + count
        if count < 0 or end > height * width:
            return
        covered = end
        if number % 2 == 0 or not count:
            continue
        first = -(-(start // height) // step) * step
        for column in range(first, (end - 1) // height + 1, step):
            top = max(start - column * height, 0)
            bottom = min(end - column * height, height)
            right = min(column + step, width)
            yield Strip(
                column / width, top / height, (right - column) / width, (bottom - top) / height
            )


def _numbers(text: bytes) -> Iterator[int]:
    """The run lengths of a text form, up to the first fault in it."""
    before: list[int] = []
    value = shift = 0
    for byte in text:
        digit = byte - 48
        if not 0 <= digit < 64 or shift >= 5 * _DIGITS:
            return
        value |= (digit & 31) << shift
        shift += 5
        if digit & 32:
            continue
        if digit & 16:
            value -= 1 << shift
        if len(before) > 2:
            value += before[-2]
        before = [*before[-2:], value]
        yield value
        value = shift = 0


def _of_image(data: bytes) -> Iterator[Strip]:
    """One strip for each run in a row of the image, made small."""
    conversion = Conversion(
        shorter=_LINES, width=0, height=0, format="ppm", quality=0, upright=False
    )
    try:
        header = read_header(data)
        kind, size, _, pixels = convert_image(data, header, conversion).split(b"\n", 3)
    except (ImageError, Undecodable, TfrecregError):
        return
    if kind != b"P5":
        return  # in colours: not a mask
    width, height = map(int, size.split())
    rows = np.frombuffer(pixels, np.uint8).reshape(height, width)
    inside = np.zeros((height, width + 2), np.int8)
    inside[:, 1:-1] = rows > int(rows.max()) // 2
    edges = np.diff(inside, axis=1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    for (row, left), (_, right) in zip(starts.tolist(), ends.tolist(), strict=True):
        yield Strip(left / width, row / height, (right - left) / width, 1 / height)

"""Samples one feature: finds how its values are stored, and how many bytes they need."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.validators.inflation.stored_numbers import (
    Array,
    ImageShape,
    StoredNumbers,
    bmp_pixels,
    numbers_of,
)
from tfrecreg.core.check.scan.tally import add_up
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.images.read import base64_inside, sniff

_LEVELS = 256
_NEAR = 0.05
"""Maximum distance between a float32 number and its level, as a fraction of a step."""
_SMOOTH = 0.35
"""Neighboring pixels of an image differ on average by less than this many standard deviations. For
random numbers, this average is 1.13."""
_DIVISORS = (1, 2, 3)
"""The smallest difference between two numbers may be one, two or three steps."""


@dataclass(slots=True)
class Range:
    """The count, minimum and maximum of whole numbers."""

    count: int = 0
    low: int = 0
    high: int = 0

    def add(self, low: int, high: int, count: int) -> None:
        """Add `count` numbers that lie between `low` and `high`."""
        if count:
            self.low = min(self.low, low) if self.count else low
            self.high = max(self.high, high) if self.count else high
            self.count += count

    def merge(self, other: Range) -> None:
        self.add(other.low, other.high, other.count)

    @property
    def dtype(self) -> str:
        """The narrowest integer type of NumPy and TensorFlow for the range."""
        for dtype in ("uint8", "int8", "uint16", "int16", "uint32", "int32"):
            limits = np.iinfo(dtype)
            if limits.min <= self.low and self.high <= limits.max:
                return dtype
        return "int64"


def byte_levels(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8] | None:
    """Convert numbers back to bytes if they may have been computed as in ``x / 255 - 0.5``.

    Such numbers lie on at most 256 evenly spaced levels.
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
    """The floats, rounded to 256 levels. None if the floats vary less smoothly than the pixels of
    an image.

    Pixels that were resized, or from which a mean image was subtracted, do not lie on levels.
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


Pixels = npt.NDArray[np.uint8]
"""Shape (height, width, channels)."""

_AROUND = 8 + 25 + 12 + 12
"""Size in bytes of the signature, IHDR, IEND, and the frame of IDAT."""
_LEVEL = 6


def png_bytes(pixels: Pixels) -> int:
    """Size in bytes of the pixels as a PNG, with a filter per row that is chosen as in libpng.

    TensorFlow and Pillow write such files. The PNG is made, but only its size is kept. Source: W3C
    Portable Network Graphics, third edition, section 9 (filtering) and 12.7 (choice of the filter:
    the least sum of absolute differences, row by row).
    """
    lines = _filtered(pixels.reshape(len(pixels), -1), pixels.shape[2])
    squeeze = zlib.compressobj(_LEVEL, strategy=zlib.Z_FILTERED)
    return _AROUND + len(squeeze.compress(lines.tobytes())) + len(squeeze.flush())


def _filtered(rows: npt.NDArray[np.uint8], step: int) -> npt.NDArray[np.uint8]:
    """The rows, each encoded with its best PNG filter. Each begins with the filter's number."""
    here = rows.astype(np.int16)
    left, up, corner = np.zeros_like(here), np.zeros_like(here), np.zeros_like(here)
    left[:, step:] = here[:, :-step]
    up[1:] = here[:-1]
    corner[1:, step:] = here[:-1, :-step]
    guess = left + up - corner
    far_left, far_up, far_corner = (np.abs(guess - each) for each in (left, up, corner))
    upper = np.where(far_up <= far_corner, up, corner)
    paeth = np.where((far_left <= far_up) & (far_left <= far_corner), left, upper)
    guesses = np.stack((np.zeros_like(here), left, up, (left + up) // 2, paeth))
    filtered = (here - guesses).astype(np.uint8)
    cost = np.abs(filtered.view(np.int8).astype(np.int16)).sum(axis=2, dtype=np.int64)
    best = cost.argmin(axis=0)
    lines = np.empty((len(rows), 1 + rows.shape[1]), np.uint8)
    lines[:, 0] = best
    lines[:, 1:] = filtered[best, np.arange(len(rows))]
    return lines


_TRIALS = 8
"""This many images per feature and shard are encoded as PNG for the estimate."""
_HEADS = 4
"""Bytes of the tags and lengths around the numbers of a short list."""
_PLAIN = ("bytes", "float", "int64")
"""These forms store numbers one after the other, and nothing else."""
_SHAPES = 4
"""Maximum number of image shapes to distinguish."""
_SPREAD = ("held", "numbers", "values", "pixels", "text")


@dataclass(slots=True)
class FeatureSample:
    """Sums over the sampled records, and estimates for all records. Plain data."""

    records: int = 0
    wire: int = 0
    """Size in bytes of the feature's Protobuf message."""
    content: int = 0
    """Size in bytes of its values alone."""
    form: str = ""
    """How its numbers are stored; empty if no number could have another form."""
    numbers: int = 0
    whole: Range = field(default_factory=Range)
    """Range of the numbers in those records whose numbers are all whole."""
    levels: int = 0
    """Number of values that are not whole but lie on at most 256 levels."""
    wide: bool = True
    """Whether all sampled numbers fit into a narrower type."""
    values: int = 0
    """Number of the feature's values that hold numbers."""
    held: int = 0
    """Encoded size in bytes of the values that hold numbers."""
    pixels: int = 0
    """How many of the numbers are pixels."""
    text: int = 0
    """Size in bytes of values that are base64 of encoded images."""
    texts: dict[str, int] = field(default_factory=dict)
    """`text` by image format."""
    all_held: int = 0
    """Each `all_` field is extrapolated from the sample of a shard to all records of the shard."""
    all_numbers: int = 0
    all_values: int = 0
    all_pixels: int = 0
    all_text: int = 0
    tried: int = 0
    """Size in bytes of the pixels that were encoded for the estimate."""
    png: int = 0
    """Size in bytes of these pixels as PNG."""
    trials: int = 0
    formats: dict[str, int] = field(default_factory=dict)
    """Size in bytes of encoded images by format."""
    shapes: dict[str, int] = field(default_factory=dict)
    """Number of images for each shape, such as ``28x28x1``. Only the first few shapes are kept."""

    def merge(self, other: FeatureSample) -> None:
        self.form = self.form or other.form
        self.wide = self.wide and other.wide and other.form in ("", self.form)
        add_up(self, other)

    def add(self, name: str, feature: Feature, declared: list[ImageShape]) -> None:
        """Add the feature of one record."""
        self.records += 1
        self.wire += feature.wire_bytes
        self.content += _content(feature)
        if feature.kind is Kind.BYTES and feature.count == 1:
            value, size = feature.values[0], feature.sizes[0]
            kind, inside = sniff(value), base64_inside(value)
            # An unpacked BMP counts as pixels, not as an encoded image.
            if kind is not None and (kind != "bmp" or bmp_pixels(value) is None):
                self.formats[kind] = self.formats.get(kind, 0) + size
                return
            if inside is not None:
                self.texts[inside] = self.texts.get(inside, 0) + size
                self.text += size
                return
        found = numbers_of(name, feature, declared) if self.wide else None
        if found is not None:
            self.values += 1
            self.held += feature.wire_bytes
            self._take(found)

    def spread(self, size: int) -> None:
        """Extrapolate from the sampled records to all records of the shard."""
        part = size / self.wire if self.wire else 0.0
        for name in _SPREAD:
            setattr(self, f"all_{name}", round(part * getattr(self, name)))

    def _take(self, found: StoredNumbers) -> None:
        if self.form not in ("", found.form):
            self.wide = False
            return
        self.form = found.form
        self.numbers += found.total
        levels = self._levels(found)
        if levels is None:
            return
        for sides in found.sides[:1]:
            self.pixels += found.total
            self._try(levels, sides)
            shape = "x".join(map(str, sides))
            if found.form in _PLAIN and (shape in self.shapes or len(self.shapes) < _SHAPES):
                self.shapes[shape] = self.shapes.get(shape, 0) + 1

    def _levels(self, found: StoredNumbers) -> Array | None:
        """Count the numbers that fit into a narrower type. Return the numbers as bytes or, for
        floats, as levels from 0 to 255; None if neither is possible.
        """
        numbers = found.values
        if numbers.dtype == np.uint8 or not numbers.size:
            return numbers.astype(np.uint8)
        is_whole = numbers.dtype.kind != "f" or (
            np.isfinite(numbers).all()
            and np.abs(numbers).max() < 1 << 53
            and (numbers == np.rint(numbers)).all()
        )
        if is_whole:
            low, high = int(numbers.min()), int(numbers.max())
            self.whole.add(low, high, found.total)
            return numbers.astype(np.uint8) if 0 <= low <= high <= 255 else None
        levels = byte_levels(numbers)
        if levels is None and found.sides and (channels := found.sides[0].channels) > 1:
            # The channels of an image may be scaled separately.
            rows = numbers[: len(numbers) // channels * channels].reshape(-1, channels)
            scaled = [byte_levels(rows[:, each]) for each in range(channels)]
            known = [each for each in scaled if each is not None]
            levels = np.stack(known, axis=1).ravel() if len(known) == channels else None
        if levels is not None:
            self.levels += found.total
            return levels
        if found.sides:
            levels = smooth_levels(numbers, found.sides[0].width, found.sides[0].channels)
        if levels is None:
            self.wide = False
        return levels

    def _try(self, levels: Array, sides: ImageShape) -> None:
        row = sides.width * sides.channels
        if self.trials >= _TRIALS or len(levels) < row:
            return
        rows = len(levels) // row
        self.trials += 1
        self.tried += rows * row
        self.png += png_bytes(levels[: rows * row].reshape(rows, sides.width, sides.channels))


def _content(feature: Feature) -> int:
    """Size in bytes of the values, without their length prefixes."""
    if feature.kind is Kind.BYTES:
        return sum(feature.sizes)
    if feature.kind is Kind.FLOAT:
        return 4 * feature.count
    return max(0, feature.wire_bytes - _HEADS)

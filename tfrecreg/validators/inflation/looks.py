"""What was seen of one feature in the records that were looked at closely."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tfrecreg.example import Feature, Kind
from tfrecreg.pictures import sniff
from tfrecreg.pictures.sniff import base64_inside
from tfrecreg.validators.inflation.numbers import (
    Range,
    byte_levels,
    smooth_levels,
    varint_bytes,
)
from tfrecreg.validators.inflation.png import png_bytes
from tfrecreg.validators.inflation.shape import Sides
from tfrecreg.validators.inflation.stored import Array, Numbers, numbers_of
from tfrecreg.validators.inflation.wrapped import bmp_pixels

__all__ = ["Look"]

_TRIALS = 8
"""Pictures of a feature that are encoded for trial, in each shard."""
_FEW = 64
"""Numbers that are looked at one by one, and for which what stands around them matters."""
_HEADS = 8
"""Bytes around a longer list of numbers, about."""


_SPREAD = ("held", "numbers", "values", "pixels", "text")
_SUMS = (
    *("records", "wire", "content", "levels", "tried", "png", "trials"),
    *_SPREAD,
    *(f"all_{name}" for name in _SPREAD),
)


@dataclass(slots=True)
class Look:
    """Sums over the records that were looked at, and what follows for all. Plain data."""

    records: int = 0
    wire: int = 0
    """Bytes of the feature as a message."""
    content: int = 0
    """Bytes of its values alone."""
    form: str = ""
    """How its numbers are stored; empty where it holds none that could be stored otherwise."""
    numbers: int = 0
    whole: Range = field(default_factory=Range)
    """Of numbers that are whole, and all of them are."""
    levels: int = 0
    """Numbers that are on at most 256 levels, and are not whole."""
    wide: bool = True
    """Whether all numbers that were seen could be narrower."""
    values: int = 0
    """Values of the feature that these numbers are in."""
    held: int = 0
    """Bytes of these values, as messages."""
    pixels: int = 0
    """Numbers that are pixels."""
    text: int = 0
    """Bytes of values that are the base64 of encoded pictures."""
    texts: dict[str, int] = field(default_factory=dict)
    """The same by the format of these."""
    all_held: int = 0
    """`held` in all records, by what part it is in those of each shard that were looked at."""
    all_numbers: int = 0
    all_values: int = 0
    all_pixels: int = 0
    all_text: int = 0
    tried: int = 0
    """Bytes of pixels that were encoded for trial."""
    png: int = 0
    """Bytes that these were as a PNG."""
    trials: int = 0
    formats: dict[str, int] = field(default_factory=dict)
    """Bytes of encoded pictures, by format."""

    def merge(self, other: Look) -> None:
        """Take in another shard."""
        self.form = self.form or other.form
        self.wide = self.wide and other.wide and other.form in ("", self.form)
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.whole.add(other.whole.low, other.whole.high, other.whole.count)
        for ours, theirs in ((self.formats, other.formats), (self.texts, other.texts)):
            for name, size in theirs.items():
                ours[name] = ours.get(name, 0) + size

    def add(self, name: str, feature: Feature, declared: list[Sides]) -> None:
        """Look at the feature of one record.

        Args:
            name: the feature's.
            feature: the feature.
            declared: sides that the record says a picture has.
        """
        self.records += 1
        self.wire += feature.wire_bytes
        self.content += _content(feature)
        if feature.kind is Kind.BYTES and feature.count == 1:
            value, size = feature.values[0], feature.sizes[0]
            kind, inside = sniff(value), base64_inside(value)
            # A BMP is pixels with a header in front, unless it is packed.
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
        """Reckon from the records that were looked at to all of the shard.

        Args:
            size: bytes of the feature in all records of the shard.
        """
        part = size / self.wire if self.wire else 0.0
        for name in _SPREAD:
            setattr(self, f"all_{name}", round(part * getattr(self, name)))

    def _take(self, found: Numbers) -> None:
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

    def _levels(self, found: Numbers) -> Array | None:
        """Count numbers that could be narrower; those that are bytes, scaled or not, as bytes."""
        numbers = found.values
        if numbers.dtype == np.uint8 or not numbers.size:
            return numbers.astype(np.uint8)
        if _are_whole(numbers):
            low, high = int(numbers.min()), int(numbers.max())
            self.whole.add(low, high, found.total)
            return numbers.astype(np.uint8) if 0 <= low <= high <= 255 else None
        levels = byte_levels(numbers)
        if levels is None and found.sides and found.sides[0].channels > 1:
            levels = _by_channel(numbers, found.sides[0].channels)
        if levels is not None:
            self.levels += found.total
            return levels
        if found.sides:
            levels = smooth_levels(numbers, found.sides[0].width, found.sides[0].channels)
        if levels is None:
            self.wide = False
        return levels

    def _try(self, levels: Array, sides: Sides) -> None:
        row = sides.width * sides.channels
        if self.trials >= _TRIALS or len(levels) < row:
            return
        rows = len(levels) // row
        self.trials += 1
        self.tried += rows * row
        self.png += png_bytes(levels[: rows * row].reshape(rows, sides.width, sides.channels))


def _are_whole(numbers: Array) -> bool:
    if numbers.dtype.kind != "f":
        return True
    if not np.isfinite(numbers).all() or np.abs(numbers).max() >= 1 << 53:
        return False
    return bool((numbers == np.rint(numbers)).all())


def _by_channel(numbers: Array, channels: int) -> Array | None:
    """The same for pictures whose channels were scaled apart."""
    numbers = numbers[: len(numbers) // channels * channels].reshape(-1, channels)
    levels = [byte_levels(numbers[:, each]) for each in range(channels)]
    found = [each for each in levels if each is not None]
    return np.stack(found, axis=1).ravel() if len(found) == channels else None


def _content(feature: Feature) -> int:
    """Bytes of the values, without what says where each ends."""
    if feature.kind is Kind.BYTES:
        return sum(feature.sizes)
    if feature.kind is Kind.FLOAT:
        return 4 * feature.count
    if feature.kind is Kind.INT64 and feature.count <= _FEW:
        return varint_bytes(np.array(feature.values, np.int64))
    return max(0, feature.wire_bytes - _HEADS)

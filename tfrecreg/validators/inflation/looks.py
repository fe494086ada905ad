"""What was seen of one feature in the records that were looked at closely."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.example import Feature, Kind
from tfrecreg.example.tensors import read_tensor
from tfrecreg.pictures import sniff
from tfrecreg.validators.inflation.numbers import Range, byte_levels, varint_bytes
from tfrecreg.validators.inflation.png import png_bytes
from tfrecreg.validators.inflation.shape import Sides, fitting

__all__ = ["Look"]

Array = npt.NDArray[Any]

_WINDOW = 1 << 16
"""So many values of a feature of one record are looked at, from its middle."""
_TRIALS = 8
"""Pictures of a feature that are encoded for trial, in each shard."""
_LEAST = 64
"""Bytes or numbers of what may be a picture."""
_FEW = 64
"""Numbers that are looked at one by one, and for which what stands around them matters."""
_HEADS = 8
"""Bytes around a longer list of numbers, about."""
_RAW_TYPES = ("<i8", "<i4", "<f8", "<f4")
"""What bytes without a type are taken for, where so many values make the declared picture."""
_LIKELY = (1e-9, 1e6)
"""Between these are the sizes of such values: floats that are read as integers are not."""
_BASE64 = bytes.maketrans(b"-_", b"+/")
_DTYPES = {
    "float32": "<f4",
    "float64": "<f8",
    "uint8": "u1",
    "int8": "i1",
    "int16": "<i2",
    "uint16": "<u2",
    "int32": "<i4",
    "uint32": "<u4",
    "int64": "<i8",
    "uint64": "<u8",
}


class _Values(NamedTuple):
    """Numbers that a feature holds, or some of them."""

    numbers: Array
    """Flat; from the middle, where they are not all."""
    total: int
    """How many there are in all."""
    form: str
    """How they are stored: ``float``, ``int64``, ``bytes``, ``base64``, or a tensor's type."""
    sides: tuple[Sides, ...]
    """Of the picture that they may be."""


@dataclass(slots=True)
class Look:
    """Sums over the records that were looked at. Plain data."""

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
    pixels: int = 0
    """Values that are pixels, a byte each."""
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
        for name in ("records", "wire", "content", "numbers", "levels", "pixels"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("tried", "png", "trials"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.whole.add(other.whole.low, other.whole.high, other.whole.count)
        for name, size in other.formats.items():
            self.formats[name] = self.formats.get(name, 0) + size

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
            kind = sniff(feature.values[0])
            if kind is not None:
                self.formats[kind] = self.formats.get(kind, 0) + feature.sizes[0]
                return
        found = _values(name, feature, declared) if self.wide else None
        if found is not None:
            self._take(found)

    def _take(self, found: _Values) -> None:
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

    def _levels(self, found: _Values) -> Array | None:
        """Count numbers that could be narrower; those that are bytes, scaled or not, as bytes."""
        numbers = found.numbers
        if numbers.dtype == np.uint8 or not numbers.size:
            return numbers.astype(np.uint8)
        if _are_whole(numbers):
            low, high = int(numbers.min()), int(numbers.max())
            self.whole.add(low, high, found.total)
            return numbers.astype(np.uint8) if 0 <= low <= high <= 255 else None
        levels = byte_levels(numbers)
        if levels is None and found.sides and found.sides[0].channels > 1:
            levels = _by_channel(numbers, found.sides[0].channels)
        if levels is None:
            self.wide = False
        else:
            self.levels += found.total
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


def _values(name: str, feature: Feature, declared: list[Sides]) -> _Values | None:
    """What numbers the feature holds; None where none that could be stored otherwise."""
    count = feature.count
    if feature.kind is Kind.FLOAT:
        sides = tuple(fitting(count, name, declared))
        packed = np.frombuffer(feature.packed_floats, "<f4")
        return _Values(_middle(packed, sides), count, "float", sides)
    if feature.kind is Kind.INT64:
        sides = tuple(fitting(count, name, declared))
        return _Values(np.array(feature.first(_WINDOW), np.int64), count, "int64", sides)
    if feature.kind is not Kind.BYTES or count != 1 or feature.sizes[0] < _LEAST:
        return None
    data = feature.values[0]
    return next(_in_bytes(name, data, declared), None)


def _in_bytes(name: str, data: bytes, declared: list[Sides]) -> Iterator[_Values]:
    """The ways to read bytes as numbers that make sense, the likeliest first."""
    tensor = read_tensor(data)
    if tensor is not None:
        dtype, (start, stop) = _DTYPES.get(tensor.dtype), tensor.content
        if dtype is not None and stop > start:
            sides = tuple(fitting(tensor.count, name, [*_tensor_sides(tensor.shape), *declared]))
            numbers = np.frombuffer(data[start:stop], dtype)
            yield _Values(
                _middle(numbers, sides), tensor.count, f"a tensor of {tensor.dtype}", sides
            )
        return
    sides = tuple(fitting(len(data), name, declared))
    if sides and not _is_text(data):
        yield _Values(_middle(np.frombuffer(data, np.uint8), sides), len(data), "bytes", sides)
    pixels = _from_base64(data, declared)
    if pixels is not None:
        sides = tuple(fitting(len(pixels), name, declared))
        numbers = np.frombuffer(pixels, np.uint8)
        yield _Values(_middle(numbers, sides), len(pixels), "base64", sides)
    for dtype in _RAW_TYPES if declared else ():
        count, rest = divmod(len(data), np.dtype(dtype).itemsize)
        sides = () if rest else tuple(fitting(count, name, declared))
        numbers = _middle(np.frombuffer(data, dtype), sides) if sides else np.empty(0)
        if sides and _is_likely(numbers):
            yield _Values(numbers, count, f"bytes of {numbers.dtype.name}", sides)


def _is_likely(numbers: Array) -> bool:
    """Whether bytes that were read as these numbers are likely to be such."""
    sizes = np.abs(numbers[numbers != 0].astype(np.float64))
    if not np.isfinite(sizes).all():
        return False
    return not sizes.size or bool(_LIKELY[0] <= sizes.min() and sizes.max() <= _LIKELY[1])


def _tensor_sides(shape: tuple[int, ...]) -> list[Sides]:
    """The sides of a picture that a tensor may be: height and width, maybe behind a 1."""
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) == 2:
        return [Sides(*shape, 1)]
    return [Sides(*shape)] if len(shape) == 3 else []


def _middle(numbers: Array, sides: tuple[Sides, ...]) -> Array:
    """As many of the numbers as are looked at: whole rows, if they are pixels."""
    if len(numbers) <= _WINDOW:
        return numbers
    row = sides[0].width * sides[0].channels if sides else 1
    wanted = max(_WINDOW // row, 1) * row
    start = (len(numbers) - wanted) // 2 // row * row
    return numbers[start : start + wanted]


def _is_text(data: bytes) -> bool:
    """Whether it looks like text, of which any length may be that of a picture by chance."""
    part = data[:1024]
    return sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in part) > 0.95 * len(part)


def _from_base64(data: bytes, declared: list[Sides]) -> bytes | None:
    """What base64 stands for, if it is as many bytes as a declared picture has."""
    size = len(data.rstrip(b"=")) * 3 // 4
    if not declared or not any(fitting(size, "", declared)):
        return None
    text = data.translate(_BASE64)
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return None

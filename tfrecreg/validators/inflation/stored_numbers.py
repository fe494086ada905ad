"""Which sides a picture may have that a feature holds as pixels."""

from __future__ import annotations

import base64
import binascii
import math
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.example import Example, Feature, Kind
from tfrecreg.example.tensors import read_tensor
from tfrecreg.pictures import PictureError, bmp, read_header

__all__ = [
    "Array",
    "Npy",
    "Numbers",
    "Sides",
    "bmp_pixels",
    "declared_sides",
    "fitting",
    "numbers_of",
    "read_npy",
    "unpacked",
]


_SIDE = re.compile(r"(.*?)(height|rows|width|cols|columns|channels?|depth)$", re.IGNORECASE)
_MEANING = {
    "height": "height",
    "rows": "height",
    "width": "width",
    "cols": "width",
    "columns": "width",
    "channel": "channels",
    "channels": "channels",
    "depth": "channels",
}
_PICTURE = re.compile(r"image|img|pixel|picture|frame|digit", re.IGNORECASE)
"""In the name of a feature: only then may it hold the pixels of a square that nobody declares."""
_CHANNELS = (1, 3, 4)
_LEAST_SIDE = 8
_MOST_SIDE = 1 << 16


class Sides(NamedTuple):
    """Of a picture, in pixels."""

    height: int
    width: int
    channels: int
    """0 where it is not said."""


def declared_sides(example: Example) -> list[Sides]:
    """What features such as `image/height`, `image_width` and `channels` say, by their prefix."""
    found: dict[str, dict[str, int]] = {}
    for name, feature in example.items():
        match = _SIDE.fullmatch(name) if feature.kind is Kind.INT64 and feature.count == 1 else None
        if match is not None:
            value = feature.values[0]
            if 0 < value <= _MOST_SIDE:
                found.setdefault(match[1], {})[_MEANING[match[2].lower()]] = value
    return [
        Sides(sides["height"], sides["width"], sides.get("channels", 0))
        for _, sides in sorted(found.items())
        if "height" in sides and "width" in sides
    ]


def fitting(count: int, name: str, declared: list[Sides]) -> Iterator[Sides]:
    """The sides of pictures of so many values: declared ones, or those of a square.

    Args:
        count: how many values there are.
        name: of the feature; a square is only thought of where it sounds like a picture.
        declared: what the record says.
    """
    for height, width, channels in declared:
        for each in (channels,) if channels else _CHANNELS:
            if height * width * each == count and each in _CHANNELS:
                yield Sides(height, width, each)
    if not declared and _PICTURE.search(name):
        for channels in (1, 3):
            side = math.isqrt(count // channels)
            if side >= _LEAST_SIDE and side * side * channels == count:
                yield Sides(side, side, channels)


_NPY = b"\x93NUMPY"
_DESCR = re.compile(rb"'descr':\s*'([<>|=]?[iuf][1248])'")
_SHAPE = re.compile(rb"'shape':\s*\(([0-9, ]*)\)")
_PACKED = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_MOST_UNPACKED = 1 << 24
"""Bytes that gzip or zlib may hold and be looked at."""


class Npy(NamedTuple):
    """An array of NumPy."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    """Where its numbers begin."""


def read_npy(data: bytes) -> Npy | None:
    """The array that a `.npy` file holds; None where it is none, or its numbers are not all there.

    The header is a literal of Python, and is not evaluated.
    """
    if not data.startswith(_NPY) or len(data) < 12:
        return None
    wide = data[6] > 1
    start = 12 if wide else 10
    stop = start + int.from_bytes(data[8:start], "little")
    header = data[start : min(stop, start + 1024)]
    descr, shape = _DESCR.search(header), _SHAPE.search(header)
    if descr is None or shape is None:
        return None
    sizes = tuple(int(each) for each in shape[1].split(b",") if each.strip())
    dtype = np.dtype(descr[1].decode("ascii"))
    count = 1
    for size in sizes:
        count *= size
    if not count or len(data) - stop != count * dtype.itemsize:
        return None
    return Npy(dtype.str, sizes, stop)


def bmp_pixels(data: bytes) -> tuple[bytes, Sides] | None:
    """The pixels of a BMP of 8, 24 or 32 bits that is not packed, from the bottom to the top."""
    try:
        header = read_header(data)
    except PictureError:
        return None
    found = bmp.details(data)
    channels = found.depth // 8
    if header.format != "bmp" or found.packed or found.depth not in (8, 24, 32):
        return None
    start = int.from_bytes(data[10:14], "little")
    row = (header.width * channels + 3) // 4 * 4
    body = data[start : start + row * header.height]
    if len(body) < row * header.height:
        return None
    lines = np.frombuffer(body, np.uint8).reshape(header.height, row)
    pixels = lines[:, : header.width * channels].tobytes()
    return pixels, Sides(header.height, header.width, channels)


def unpacked(data: bytes) -> bytes | None:
    """What gzip or zlib holds; None where the bytes are neither, or hold too much."""
    if not data.startswith(_PACKED):
        return None
    inflate = zlib.decompressobj(wbits=47)
    try:
        found = inflate.decompress(data, _MOST_UNPACKED)
    except zlib.error:
        return None
    return found if inflate.eof else None


Array = npt.NDArray[Any]

_WINDOW = 1 << 16
"""So many values of a feature of one record are looked at, from its middle."""
_LEAST = 64
"""Bytes of what may be a picture."""
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


class Numbers(NamedTuple):
    """Numbers that a feature holds, or some of them."""

    values: Array
    """Flat; from the middle, where they are not all."""
    total: int
    """How many there are in all."""
    form: str
    """How they are stored: ``float``, ``int64``, ``bytes``, ``base64``, or a tensor's type."""
    sides: tuple[Sides, ...]
    """Of the picture that they may be."""


def numbers_of(name: str, feature: Feature, declared: list[Sides]) -> Numbers | None:
    """What numbers the feature holds; None where none that could be stored otherwise."""
    count = feature.count
    if feature.kind is Kind.FLOAT:
        sides = tuple(fitting(count, name, declared))
        packed = np.frombuffer(feature.packed_floats, "<f4")
        return Numbers(_middle(packed, sides), count, "float", sides)
    if feature.kind is Kind.INT64:
        sides = tuple(fitting(count, name, declared))
        return Numbers(np.array(feature.first(_WINDOW), np.int64), count, "int64", sides)
    if feature.kind is not Kind.BYTES or count != 1 or feature.sizes[0] < _LEAST:
        return None
    data = feature.values[0]
    return next(_in_bytes(name, data, declared), None)


def _in_bytes(
    name: str, data: bytes, declared: list[Sides], *, packed: bool = False
) -> Iterator[Numbers]:
    """The ways to read bytes as numbers that make sense, the likeliest first.

    Args:
        name: of the feature.
        data: the bytes.
        declared: sides that the record says a picture has.
        packed: whether they were packed, and are not looked into once more.
    """
    array = read_npy(data)
    if array is not None:
        numbers = np.frombuffer(data, array.dtype, offset=array.start)
        there = [*_tensor_sides(array.shape), *declared]
        sides = tuple(fitting(len(numbers), name, there))
        form = f"an .npy of {numbers.dtype.name}"
        yield Numbers(_middle(numbers, sides), len(numbers), form, sides)
        return
    bitmap = bmp_pixels(data)
    if bitmap is not None:
        numbers, sides = np.frombuffer(bitmap[0], np.uint8), (bitmap[1],)
        yield Numbers(_middle(numbers, sides), len(numbers), "BMP", sides)
        return
    inside = None if packed else unpacked(data)
    if inside is not None:
        for found in _in_bytes(name, inside, declared, packed=True):
            if found.sides:
                form = "gzip" if found.form == "bytes" else f"gzip of {found.form}"
                yield found._replace(form=form)
        return
    tensor = read_tensor(data)
    if tensor is not None:
        dtype, (start, stop) = _DTYPES.get(tensor.dtype), tensor.content
        if dtype is not None and stop > start:
            sides = tuple(fitting(tensor.count, name, [*_tensor_sides(tensor.shape), *declared]))
            numbers = np.frombuffer(data[start:stop], dtype)
            yield Numbers(
                _middle(numbers, sides), tensor.count, f"a tensor of {tensor.dtype}", sides
            )
        return
    sides = tuple(fitting(len(data), name, declared))
    if sides and not _is_text(data):
        yield Numbers(_middle(np.frombuffer(data, np.uint8), sides), len(data), "bytes", sides)
    pixels = _from_base64(data, declared)
    if pixels is not None:
        sides = tuple(fitting(len(pixels), name, declared))
        numbers = np.frombuffer(pixels, np.uint8)
        yield Numbers(_middle(numbers, sides), len(pixels), "base64", sides)
    for dtype in _RAW_TYPES if declared else ():
        count, rest = divmod(len(data), np.dtype(dtype).itemsize)
        sides = () if rest else tuple(fitting(count, name, declared))
        numbers = _middle(np.frombuffer(data, dtype), sides) if sides else np.empty(0)
        if sides and _is_likely(numbers):
            yield Numbers(numbers, count, f"bytes of {numbers.dtype.name}", sides)


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

"""Which numbers a feature holds, however they are stored."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.example import Feature, Kind
from tfrecreg.example.tensors import read_tensor
from tfrecreg.validators.inflation.shape import Sides, fitting
from tfrecreg.validators.inflation.wrapped import bmp_pixels, read_npy, unpacked

__all__ = ["Array", "Numbers", "numbers_of"]

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

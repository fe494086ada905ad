"""Finds the numbers that a feature stores in any form, and infers the shape of a possible image.

Numbers may be a list of floats or integers, raw bytes, base64, a tensor, `.npy`, BMP or gzip.
"""

from __future__ import annotations

import base64
import binascii
import io
import math
import re
import tokenize
import warnings
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format

from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.example.tensors import read_tensor
from tfrecreg.core.images.headers import bmp_details
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import read_header

_MEANING = {
    **dict.fromkeys(("height", "rows"), "height"),
    **dict.fromkeys(("width", "cols", "columns"), "width"),
    **dict.fromkeys(("channels", "channel", "depth"), "channels"),
}
_SIDE = re.compile(rf"(.*?)({'|'.join(_MEANING)})", re.IGNORECASE)
_IMAGE = re.compile(r"image|img|pixel|frame|digit", re.IGNORECASE)
"""Features with such names may hold a square image without a declared shape."""
_CHANNELS = (1, 3, 4)
_LEAST_SIDE = 8
_MOST_SIDE = 1 << 16


class ImageShape(NamedTuple):
    """The shape of an image, in pixels."""

    height: int
    width: int
    channels: int
    """Number of channels; 0 if unknown."""


def declared_shapes(example: Example) -> list[ImageShape]:
    """The image shapes that features such as `image/height` and `image_width` declare."""
    found: dict[str, dict[str, int]] = {}
    for name, feature in example.items():
        match = _SIDE.fullmatch(name) if feature.kind is Kind.INT64 and feature.count == 1 else None
        if match is not None:
            value = feature.values[0]
            if 0 < value <= _MOST_SIDE:
                found.setdefault(match[1], {})[_MEANING[match[2].lower()]] = value
    return [
        ImageShape(sides["height"], sides["width"], sides.get("channels", 0))
        for _, sides in sorted(found.items())
        if "height" in sides and "width" in sides
    ]


def fitting_shapes(count: int, name: str, declared: list[ImageShape]) -> Iterator[ImageShape]:
    """Possible image shapes for `count` values. They are squares if no shape is declared."""
    for height, width, channels in declared:
        for each in (channels,) if channels else _CHANNELS:
            if height * width * each == count and each in _CHANNELS:
                yield ImageShape(height, width, each)
    if not declared and _IMAGE.search(name):
        for channels in (1, 3):
            side = math.isqrt(count // channels)
            if side >= _LEAST_SIDE and side * side * channels == count:
                yield ImageShape(side, side, channels)


_PACKED = (b"\x1f\x8b", b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")
_MOST_UNPACKED = 1 << 24
"""Maximum number of bytes that are decompressed from gzip or zlib."""


_npy: Any = npy_format  # untyped
Array = npt.NDArray[Any]


def read_npy(data: bytes) -> Array | None:
    """The array in a `.npy` file; None if `data` is not a whole array of numbers."""
    if not data.startswith(_npy.MAGIC_PREFIX):
        return None
    file = io.BytesIO(data)
    try:
        version, _ = _npy.read_magic(file)
        read = _npy.read_array_header_1_0 if version == 1 else _npy.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of headers from Python 2
            shape, _, dtype = read(file)
    except (ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return None
    size, start = math.prod(shape) * dtype.itemsize, file.tell()
    if dtype.kind not in "iuf" or not size or len(data) - start != size:
        return None
    numbers: Array = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return numbers


def bmp_pixels(data: bytes) -> tuple[bytes, ImageShape] | None:
    """The pixels and the shape of an uncompressed BMP of 8, 24 or 32 bits, bottom row first."""
    try:
        header = read_header(data)
    except ImageError:
        return None
    found = bmp_details(data)
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
    return pixels, ImageShape(header.height, header.width, channels)


def decompressed(data: bytes) -> bytes | None:
    """The content of gzip or zlib; None if `data` is neither, or decompresses to too many bytes."""
    if not data.startswith(_PACKED):
        return None
    inflate = zlib.decompressobj(wbits=47)
    try:
        found = inflate.decompress(data, _MOST_UNPACKED)
    except zlib.error:
        return None
    return found if inflate.eof else None


_WINDOW = 1 << 16
"""At most this many values of a list are examined: those in the middle."""
_LEAST = 64
"""Minimum size of an image in bytes."""
_RAW_TYPES = ("<i8", "<i4", "<f8", "<f4")
"""Raw bytes are tried as these types, if the number of values would match the declared image."""
_LIKELY = (1e-9, 1e6)
"""Limits for absolute values of plausible numbers. Numbers read with a wrong type rarely fit."""
_BASE64 = bytes.maketrans(b"-_", b"+/")
_DTYPES = frozenset(
    {"float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
)


class StoredNumbers(NamedTuple):
    """The numbers that a feature holds, or some of them."""

    values: Array
    """The numbers as a flat array. If there are too many, it holds only the middle ones."""
    total: int
    """Number of all values."""
    form: str
    """How the numbers are stored, in words: ``float``, ``bytes``, ``a tensor of uint8``."""
    sides: tuple[ImageShape, ...]
    """Possible shapes of an image made of these numbers."""


def numbers_of(name: str, feature: Feature, declared: list[ImageShape]) -> StoredNumbers | None:
    """The numbers in a feature. None for bytes in which no numbers are found."""
    count = feature.count
    if feature.kind is Kind.FLOAT:
        return _stored(np.frombuffer(feature.packed_floats, "<f4"), count, "float", name, declared)
    if feature.kind is Kind.INT64:
        sides = tuple(fitting_shapes(count, name, declared))
        return StoredNumbers(np.array(feature.first(_WINDOW), np.int64), count, "int64", sides)
    if feature.kind is not Kind.BYTES or count != 1 or feature.sizes[0] < _LEAST:
        return None
    data = feature.values[0]
    return next(_in_bytes(name, data, declared), None)


def _stored(
    numbers: Array, total: int, form: str, name: str, declared: list[ImageShape]
) -> StoredNumbers:
    sides = tuple(fitting_shapes(total, name, declared))
    return StoredNumbers(_middle(numbers, sides), total, form, sides)


def _in_bytes(
    name: str, data: bytes, declared: list[ImageShape], *, packed: bool = False
) -> Iterator[StoredNumbers]:
    """Plausible ways to read bytes as numbers, the most likely way first."""
    array = read_npy(data)
    if array is not None:
        form, there = f"an .npy of {array.dtype.name}", _tensor_sides(array.shape)
        yield _stored(array.ravel(), array.size, form, name, [*there, *declared])
        return
    bitmap = bmp_pixels(data)
    if bitmap is not None:
        numbers, sides = np.frombuffer(bitmap[0], np.uint8), (bitmap[1],)
        yield StoredNumbers(_middle(numbers, sides), len(numbers), "BMP", sides)
        return
    inside = None if packed else decompressed(data)
    if inside is not None:
        for found in _in_bytes(name, inside, declared, packed=True):
            if found.sides:
                form = "gzip" if found.form == "bytes" else f"gzip of {found.form}"
                yield found._replace(form=form)
        return
    tensor = read_tensor(data)
    if tensor is not None:
        start, stop = tensor.content
        if tensor.dtype in _DTYPES and stop > start:
            numbers = np.frombuffer(data[start:stop], np.dtype(tensor.dtype).newbyteorder("<"))
            form, there = f"a tensor of {tensor.dtype}", _tensor_sides(tensor.shape)
            yield _stored(numbers, tensor.count, form, name, [*there, *declared])
        return
    # The length of a text may match an image by chance.
    part = data[:1024]
    is_text = sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in part) > 0.95 * len(part)
    found = _stored(np.frombuffer(data, np.uint8), len(data), "bytes", name, declared)
    if found.sides and not is_text and (declared or not _are_wider(data)):
        yield found
    pixels = _from_base64(data, declared)
    if pixels is not None:
        yield _stored(np.frombuffer(pixels, np.uint8), len(pixels), "base64", name, declared)
    for dtype in map(np.dtype, _RAW_TYPES) if declared else ():
        count, rest = divmod(len(data), dtype.itemsize)
        if not rest:
            numbers = np.frombuffer(data, dtype)
            found = _stored(numbers, count, f"bytes of {dtype.name}", name, declared)
            if found.sides and _is_likely(found.values):
                yield found


@np.errstate(invalid="ignore")  # signaling NaN
def _is_likely(numbers: Array) -> bool:
    """Whether numbers that were read from raw bytes are plausible."""
    sizes = np.abs(numbers[numbers != 0].astype(np.float64))
    if not np.isfinite(sizes).all():
        return False
    return not sizes.size or bool(_LIKELY[0] <= sizes.min() and sizes.max() <= _LIKELY[1])


def _are_wider(data: bytes) -> bool:
    """Whether raw bytes may hold wider numbers. A float32 image may look like a uint8 image."""
    part = data[:_WINDOW]
    return any(part) and any(
        _is_likely(np.frombuffer(part, dtype))
        for dtype in _RAW_TYPES
        if len(data) % np.dtype(dtype).itemsize == 0
    )


def _tensor_sides(shape: tuple[int, ...]) -> list[ImageShape]:
    """The shape of a tensor as an image; empty if the tensor cannot be an image. Leading dimensions
    of 1 are ignored.
    """
    while len(shape) > 2 and shape[0] == 1:
        shape = shape[1:]
    if len(shape) == 2:
        return [ImageShape(*shape, 1)]
    return [ImageShape(*shape)] if len(shape) == 3 else []


def _middle(numbers: Array, sides: tuple[ImageShape, ...]) -> Array:
    """The numbers to examine. Pixels are examined in whole rows."""
    if len(numbers) <= _WINDOW:
        return numbers
    row = sides[0].width * sides[0].channels if sides else 1
    wanted = max(_WINDOW // row, 1) * row
    start = (len(numbers) - wanted) // 2 // row * row
    return numbers[start : start + wanted]


def _from_base64(data: bytes, declared: list[ImageShape]) -> bytes | None:
    """Decode base64, if the result has as many bytes as a declared image."""
    size = len(data.rstrip(b"=")) * 3 // 4
    if not declared or not any(fitting_shapes(size, "", declared)):
        return None
    text = data.translate(_BASE64)
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return None

"""What is wrapped around numbers: the headers of `.npy` and BMP, and gzip or zlib."""

from __future__ import annotations

import re
import zlib
from typing import NamedTuple

import numpy as np

from tfrecreg.pictures import PictureError, bmp, read_header
from tfrecreg.validators.inflation.shape import Sides

__all__ = ["Npy", "bmp_pixels", "read_npy", "unpacked"]

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

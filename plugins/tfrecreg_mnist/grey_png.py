"""An encoder of 8-bit grayscale PNG: the same pixels give the same bytes.

Format: W3C Portable Network Graphics, third edition: signature, then the chunks IHDR, IDAT and
IEND, and nothing else: no time, no text, no gamma. Every scanline has filter 0 (none), which on
images of this kind beats the other four and the usual heuristic; `docs/sources/mnist.md` has
the figures. The bytes inside IDAT are zlib's, so they may differ between versions of zlib; the
pixels never do.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, pack
from zlib import DEFLATED, Z_DEFAULT_STRATEGY, compressobj, crc32

MAX_SIDE = (1 << 31) - 1
"""Pixels; PNG allows no more in either direction."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FILTER_NONE = b"\0"
_LEVEL = 5
_WINDOWS = range(10, 16)
"""Bits of zlib's window. For images of 28 × 28, allocating and clearing a window larger than the
image takes as long as compressing. zlib does not support windows of 8 bits, and its windows of 9
bits do not have their declared size."""


def encode_png(pixels: bytes, height: int, width: int) -> bytes:
    """The image as a PNG file."""
    if not (0 < height <= MAX_SIDE and 0 < width <= MAX_SIDE):
        raise ValueError(f"a PNG has sides of 1 to {MAX_SIDE}, not {height} × {width}")
    if len(pixels) != height * width:
        raise ValueError(f"{height} × {width} pixels expected, {len(pixels)} found")
    start, rows, window = _form(height, width)
    # 2^(memory level + 6) symbols go into a block: more than a small image has.
    deflate = compressobj(_LEVEL, DEFLATED, window, window // 2, Z_DEFAULT_STRATEGY)
    lines = _FILTER_NONE + _FILTER_NONE.join(rows.unpack(pixels))
    data = deflate.compress(lines) + deflate.flush()
    return b"".join((start, _chunk(b"IDAT", data), _END))


@lru_cache(maxsize=16)
def _form(height: int, width: int) -> tuple[bytes, Struct, int]:
    """What all images of one size share: signature and header, scanlines, window bits."""
    # After the sides: 8 bits, color type 0 (gray), and the only compression, filter method and
    # interlacing (none) used here.
    header = pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    bits = (height * (width + 1)).bit_length()
    window = min(max(bits, _WINDOWS[0]), _WINDOWS[-1])
    return _SIGNATURE + _chunk(b"IHDR", header), Struct(f"{width}s" * height), window


def _chunk(kind: bytes, data: bytes) -> bytes:
    return b"".join((pack(">I", len(data)), kind, data, pack(">I", crc32(data, crc32(kind)))))


_END = _chunk(b"IEND", b"")

"""PNG: the chunk IHDR, checked by its CRC. PNG specification (third edition), 11.2.1."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from tfrecreg.core.images.model import ImageError, ImageHeader, exif_orientation, sized

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_SIZE = struct.Struct(">I")
_IHDR = struct.Struct(">IIBBBBB")
_COLOURS = {
    0: (1, (1, 2, 4, 8, 16)),
    2: (3, (8, 16)),
    3: (3, (1, 2, 4, 8)),
    4: (2, (8, 16)),
    6: (4, (8, 16)),
}
"""Channels and allowed bit depths by color type."""
_PALETTE = 3
_MOST_BEFORE_DATA = 1_000
_MOST_CHUNKS = 10_000_000


def header(data: bytes) -> ImageHeader:
    """The content of IHDR, and of the chunks on animation and orientation."""
    if len(data) < 33:
        raise ImageError(f"a PNG that ends after {len(data)} bytes, inside its header")
    size, kind = int.from_bytes(data[8:12], "big"), data[12:16]
    if kind == b"CgBI":
        raise ImageError("a PNG of Apple's own kind (CgBI)")
    if size != 13 or kind != b"IHDR":
        raise ImageError("a PNG that does not begin with the chunk IHDR")
    if zlib.crc32(data[12:29]) != int.from_bytes(data[29:33], "big"):
        raise ImageError("a PNG whose header has a wrong CRC")
    width, height, depth, colour, compression, method, interlace = _IHDR.unpack(data[16:29])
    channels, depths = _COLOURS.get(colour, (0, ()))
    if depth not in depths:
        raise ImageError(f"a PNG of colour type {colour} with a bit depth of {depth}")
    if compression or method or interlace > 1 or max(height, width) >= 1 << 31:
        raise ImageError("a PNG whose header has undefined values")
    bits = 8 if colour == _PALETTE else depth
    return sized(ImageHeader("png", height, width, channels, bits, *_before_pixels(data)))


def png_of(deflated: bytes, width: int, height: int, depth: int = 8, colour: int = 0) -> bytes:
    """A PNG of compressed scanlines, without interlacing. By default, it has 8 bits of gray."""
    made = _SIGNATURE
    head = _IHDR.pack(width, height, depth, colour, 0, 0, 0)
    for chunk in (b"IHDR" + head, b"IDAT" + deflated, b"IEND"):
        made += _SIZE.pack(len(chunk) - 4) + chunk + _SIZE.pack(zlib.crc32(chunk))
    return made


def ends(data: bytes) -> bool:
    """Whether the file has the chunk IEND. Bytes after this chunk are not part of the image."""
    return any(kind == b"IEND" for kind, _ in _chunks(data, _MOST_CHUNKS))


def _before_pixels(data: bytes) -> tuple[bool, int]:
    """Whether the image has several frames according to the chunk acTL, and its orientation from
    eXIf."""
    animated, orientation = False, 1
    for kind, start in _chunks(data, _MOST_BEFORE_DATA):
        if kind == b"acTL":
            animated = int.from_bytes(data[start : start + 4], "big") > 1
        elif kind == b"eXIf":
            size = int.from_bytes(data[start - 8 : start - 4], "big")
            orientation = exif_orientation(data[start : start + size])
        elif kind == b"IDAT":
            break
    return animated, orientation


def _chunks(data: bytes, most: int) -> Iterator[tuple[bytes, int]]:
    """The type of each whole chunk, and the offset of its body."""
    position = 8
    for _ in range(most):
        end = position + 12 + int.from_bytes(data[position : position + 4], "big")
        if position + 12 > len(data) or end > len(data):
            return
        yield data[position + 4 : position + 8], position + 8
        position = end

"""Reads the headers of JPEG, PNG, GIF, WebP and BMP, and finds out whether a file is truncated.

Specifications: ITU-T T.81, annex B (JPEG); PNG specification (third edition), 11.2.1; GIF89a;
RFC 9649, sections 2.5 to 2.7 (WebP). BMP has many versions, from OS/2 and Windows.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from tfrecreg.core.images.model import ImageError, ImageHeader, exif_orientation, sized

_TEM, _SOI, _EOI, _SOS, _DHP = 0x01, 0xD8, 0xD9, 0xDA, 0xDE
_RESTARTS = range(0xD0, 0xD8)
_BARE = frozenset((_TEM, _SOI, *_RESTARTS))
"""Markers without a length."""
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC} | {_DHP}
"""Frames of every coding, including lossless, hierarchical and arithmetic coding."""
_USUAL = frozenset((0xC0, 0xC1, 0xC2, 0xC9, 0xCA))
"""Baseline, extended and progressive coding. Extended and progressive coding may be arithmetic."""
_MARKER = re.compile(rb"\xff[^\xff]", re.DOTALL)
"""A marker with the byte `ff` before it. More bytes `ff` may come before that byte as padding."""
_APP1, _JPEG_EXIF = 0xE1, b"Exif\0\0"


def jpeg_header(data: bytes) -> ImageHeader:
    """The content of the first frame header. Junk between segments is skipped, as in libjpeg."""
    _, position, size, exif = _find_jpeg_frame(data)
    orientation = exif_orientation(data[exif]) if exif is not None else 1
    segment = data[position + 2 : position + size]
    if len(segment) < size - 2:
        raise _too_short(data)
    bits, channels = (segment[0], segment[5]) if size >= 8 else (0, 0)
    height, width = int.from_bytes(segment[1:3], "big"), int.from_bytes(segment[3:5], "big")
    if not 2 <= bits <= 16 or not 1 <= channels <= 4 or size != 8 + 3 * channels:
        raise ImageError("a JPEG whose frame header has undefined values")
    return sized(ImageHeader("jpeg", height, width, channels, bits, False, orientation))


def jpeg_is_lossless(data: bytes) -> bool:
    """Whether a JPEG is lossless or hierarchical, which few decoders support."""
    return _find_jpeg_frame(data)[0] not in _USUAL


def _find_jpeg_frame(data: bytes) -> tuple[int, int, int, slice | None]:
    """Marker, offset and length of the first frame header, and the place of EXIF data."""
    exif = None
    for marker, position, size in _jpeg_segments(data):
        if marker in (_SOS, _EOI):
            raise ImageError("a JPEG without a frame header")
        if position + 2 > len(data):
            break
        if size < 2:
            raise ImageError(f"a JPEG with a segment of length {size} at byte {position - 2}")
        if marker in _FRAMES:
            return marker, position, size, exif
        if marker == _APP1 and exif is None and data.startswith(_JPEG_EXIF, position + 2):
            exif = slice(position + 2 + len(_JPEG_EXIF), position + size)
    raise _too_short(data)


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Marker, offset and length of each segment. The offset is behind the marker."""
    position = 2
    while (found := _MARKER.search(data, position)) is not None:
        position = found.end()
        marker = data[position - 1]
        if marker and marker not in _BARE:
            size = int.from_bytes(data[position : position + 2], "big")
            yield marker, position, size
            position += size


def jpeg_ends(data: bytes) -> bool:
    """Whether the file has an end marker after the start of the first scan.

    Inside a scan, a zero follows each ``ff`` of the data, so the bytes of the end marker occur only
    as the marker. The end marker of a thumbnail comes before the scan.
    """
    if data.endswith(b"\xff\xd9"):
        return True
    scans = (position for marker, position, _ in _jpeg_segments(data) if marker == _SOS)
    return data.rfind(b"\xff\xd9") >= next(scans, len(data))


def _too_short(data: bytes) -> ImageError:
    return ImageError(f"a JPEG that ends after {len(data)} bytes, before its frame header")


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


def png_header(data: bytes) -> ImageHeader:
    """The content of IHDR, and of the chunks on animation and orientation."""
    if len(data) < 33:
        raise ImageError(f"a PNG that ends after {len(data)} bytes, inside its header")
    if data[8:16] != b"\0\0\0\rIHDR":
        raise ImageError("a PNG that does not begin with the chunk IHDR")
    if zlib.crc32(data[12:29]) != int.from_bytes(data[29:33], "big"):
        raise ImageError("a PNG whose header has a wrong CRC")
    width, height, depth, colour, compression, method, interlace = _IHDR.unpack(data[16:29])
    channels, depths = _COLOURS.get(colour, (0, ()))
    is_known = depth in depths and not compression and not method and interlace <= 1
    if not is_known or max(height, width) >= 1 << 31:
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


def png_ends(data: bytes) -> bool:
    """Whether the file has the chunk IEND. Bytes after this chunk are not part of the image."""
    return any(kind == b"IEND" for kind, _ in _png_chunks(data))


def _before_pixels(data: bytes) -> tuple[bool, int]:
    """Whether acTL announces several frames, and the orientation in eXIf."""
    animated, orientation = False, 1
    for kind, start in _png_chunks(data):
        if kind == b"acTL":
            animated = int.from_bytes(data[start : start + 4], "big") > 1
        elif kind == b"eXIf":
            size = int.from_bytes(data[start - 8 : start - 4], "big")
            orientation = exif_orientation(data[start : start + size])
        elif kind == b"IDAT":
            break
    return animated, orientation


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """The type of each whole chunk, and the offset of its body."""
    position = 8
    while position + 12 <= len(data):
        end = position + 12 + int.from_bytes(data[position : position + 4], "big")
        if end > len(data):
            return
        yield data[position + 4 : position + 8], position + 8
        position = end


_IMAGE, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B
_LAST = b"\0;"
"""The end of a frame's data, and the trailer."""


def gif_header(data: bytes) -> ImageHeader:
    """The content of the logical screen descriptor: the canvas for the frames."""
    if len(data) < 13:
        raise ImageError(f"a GIF that ends after {len(data)} bytes, inside its header")
    width, height = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    return sized(ImageHeader("gif", height, width, 3, 8, animated=_walk_gif(data, most=2)[0] > 1))


def gif_ends(data: bytes) -> bool:
    """Whether the file is complete. It may be damaged in other ways. Wrong lengths do not count as
    truncation. Unknown bytes after a whole frame do not count either. Decoders skip such faults.
    """
    return _walk_gif(data, most=len(data))[1] or data.endswith(_LAST)


def _walk_gif(data: bytes, most: int) -> tuple[int, bool]:
    """Count frames, at most `most`. The second result is True if the walk ended at the trailer. It
    is also True if, after a frame, the walk ended at bytes that begin no block.
    """
    last = len(data)
    position = 13 + _gif_table(data[10]) if last >= 13 else last
    frames = 0
    while position < last and frames < most:
        block = data[position]
        if block == _TRAILER:
            return frames, True
        if block == _IMAGE and position + 10 <= last:
            frames += 1
            position += 11 + _gif_table(data[position + 9])
        elif block == _EXTENSION:
            position += 2
        else:
            return frames, frames > 0 and block != _IMAGE
        while position < last and data[position]:
            position += 1 + data[position]
        position += 1
    return frames, False


def _gif_table(flags: int) -> int:
    """Size in bytes of the color table that the flags declare."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


_WEBP_ANIMATION, _WEBP_EXIF, _WEBP_ALPHA = 0x02, 0x08, 0x10


def webp_header(data: bytes) -> ImageHeader:
    """The content of the first chunk: a key frame of VP8, a lossless VP8L, or a canvas (VP8X)."""
    kind = data[12:16]
    sizes = {b"VP8 ": 30, b"VP8L": 25, b"VP8X": 30}
    needed = sizes.get(kind)
    if needed is None and len(data) >= 16:
        raise ImageError("a WebP whose first chunk is of no known kind")
    if needed is None or len(data) < needed:
        raise ImageError(f"a WebP that ends after {len(data)} bytes, inside its header")
    if kind == b"VP8X":
        return _webp_canvas(data)
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        if data[20] != 0x2F or bits >> 29:
            raise ImageError("a WebP whose lossless header has a wrong signature")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        return ImageHeader("webp", height, width, 4 if bits >> 28 & 1 else 3, 8, animated=False)
    if data[20] & 1 or data[23:26] != b"\x9d\x01\x2a":
        raise ImageError("a WebP that does not begin with a key frame")
    width = int.from_bytes(data[26:28], "little") & 0x3FFF
    height = int.from_bytes(data[28:30], "little") & 0x3FFF
    return sized(ImageHeader("webp", height, width, 3, 8, animated=False))


def webp_ends(data: bytes) -> bool:
    """Whether the file has at least the size in the RIFF header."""
    return len(data) >= 8 + int.from_bytes(data[4:8], "little")


def _webp_canvas(data: bytes) -> ImageHeader:
    flags = data[20]
    width = int.from_bytes(data[24:27], "little") + 1
    height = int.from_bytes(data[27:30], "little") + 1
    if height * width >= 1 << 32:
        raise ImageError(f"a WebP with a canvas of {width} × {height} pixels")
    channels = 4 if flags & _WEBP_ALPHA else 3
    orientation = _webp_orientation(data) if flags & _WEBP_EXIF else 1
    animated = bool(flags & _WEBP_ANIMATION)
    return ImageHeader("webp", height, width, channels, 8, animated, orientation)


def _webp_orientation(data: bytes) -> int:
    """The orientation in the chunk EXIF, which comes after the pixels."""
    position = 12
    while position < len(data):
        size = int.from_bytes(data[position + 4 : position + 8], "little")
        body = position + 8
        if data.startswith(b"EXIF", position):
            return exif_orientation(data[body : body + size].removeprefix(b"Exif\0\0"))
        position = body + size + size % 2
    return 1


BMP_CORE = 12
"""Size of the OS/2 header in bytes."""
_DEPTHS = frozenset((1, 2, 4, 8, 16, 24, 32))
_PLAIN, _FIELDS, _ALPHA_FIELDS = 0, 3, 6
_COMPRESSIONS = frozenset((_PLAIN, 1, 2, _FIELDS, _ALPHA_FIELDS))


def bmp_header(data: bytes) -> ImageHeader:
    """The content of the second header. If the height is negative, rows are stored from the top."""
    size = int.from_bytes(data[14:18], "little")
    if len(data) < 14 + min(size, 40):
        raise ImageError(f"a BMP that ends after {len(data)} bytes, inside its header")
    width, height, depth, compression = _bmp_fields(data, size)
    if depth not in _DEPTHS or compression not in _COMPRESSIONS or width < 0:
        raise ImageError(
            f"a BMP {width} pixels wide, of {depth} bits a pixel and compression {compression}"
        )
    channels = 4 if depth == 32 else 3
    return sized(ImageHeader("bmp", abs(height), width, channels, 8, animated=False))


def bmp_ends(data: bytes) -> bool:
    """Whether all rows are present. If rows are packed, only the declared file size is compared."""
    width, height, depth, compression = _bmp_fields(data, int.from_bytes(data[14:18], "little"))
    if compression in (_PLAIN, _FIELDS, _ALPHA_FIELDS):
        start = int.from_bytes(data[10:14], "little")
        return len(data) >= start + (width * depth + 31) // 32 * 4 * abs(height)
    return len(data) >= int.from_bytes(data[2:6], "little")


class BmpDetails(NamedTuple):
    """How a BMP stores its pixels."""

    header: int
    """Size of its second header in bytes, which identifies the version."""
    depth: int
    """Bits a pixel."""
    packed: bool
    """Whether rows are packed by run length."""
    grey: bool
    """Whether color N of its palette is the gray shade N, for every N; True without a palette."""


def bmp_details(data: bytes) -> BmpDetails:
    """How a BMP with a sound header stores its pixels."""
    size = int.from_bytes(data[14:18], "little")
    _, _, depth, compression = _bmp_fields(data, size)
    grey = True
    if depth <= 8:
        step = 3 if size == BMP_CORE else 4
        start = 14 + size
        palette = data[start : min(start + (step << depth), int.from_bytes(data[10:14], "little"))]
        colours = (palette[at : at + 3] for at in range(0, len(palette), step))
        grey = all(each == bytes((number,) * 3) for number, each in enumerate(colours))
    return BmpDetails(size, depth, compression in (1, 2), grey)


def _bmp_fields(data: bytes, size: int) -> tuple[int, int, int, int]:
    """Width, height, bits per pixel and compression."""
    if size == BMP_CORE:
        numbers = [int.from_bytes(data[at : at + 2], "little") for at in (18, 20, 24)]
        return numbers[0], numbers[1], numbers[2], _PLAIN
    width = int.from_bytes(data[18:22], "little", signed=True)
    height = int.from_bytes(data[22:26], "little", signed=True)
    depth = int.from_bytes(data[28:30], "little")
    compression = int.from_bytes(data[30:34], "little") if size >= 20 else _PLAIN
    return width, height, depth, compression

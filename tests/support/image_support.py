"""Images made byte by byte; only those of `png()` can be decoded."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable

import pytest

from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import read_header


def reason(data: bytes) -> str:
    """Why a header is refused."""
    with pytest.raises(ImageError) as caught:
        read_header(data)
    return caught.value.detail


def segment(marker: int, body: bytes) -> bytes:
    return b"\xff" + bytes([marker]) + (len(body) + 2).to_bytes(2, "big") + body


def jpeg(
    width: int = 3,
    height: int = 2,
    *,
    marker: int = 0xC0,
    bits: int = 8,
    channels: int = 3,
    before: bytes = b"",
    scan: bytes = b"\x12\x34\xff\x00\x56",
    end: bytes = b"\xff\xd9",
) -> bytes:
    """A JPEG with this frame header, after `before`."""
    frame = struct.pack(">BHHB", bits, height, width, channels) + bytes(3 * channels)
    app0 = segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    sos = segment(0xDA, bytes([channels]) + bytes(2 * channels + 3))
    return b"\xff\xd8" + app0 + before + segment(marker, frame) + sos + scan + end


def chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(
    width: int = 3,
    height: int = 2,
    *,
    depth: int = 8,
    colour: int = 2,
    seed: int = 0,
    pixels: bytes | None = None,
    before: Iterable[bytes] = (),
    end: bytes | None = None,
) -> bytes:
    """A PNG that decodes; `before` are chunks in front of the pixels, which are zero at the end."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}.get(colour, 1)
    row = (width * depth * channels + 7) // 8
    if pixels is None:
        pixels = bytes((seed + 7 * y + 3 * x) % 251 for y in range(height) for x in range(row))
    rows = b"".join(
        b"\0" + pixels[y * row : (y + 1) * row].ljust(row, b"\0") for y in range(height)
    )
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)),
            *before,
            chunk(b"IDAT", zlib.compress(rows)),
            chunk(b"IEND", b"") if end is None else end,
        ]
    )


def gif(width: int = 3, height: int = 2, *, frames: int = 1) -> bytes:
    """A GIF with a colour table and a number of frames."""
    screen = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + bytes(6)
    extension = b"!\xf9\x04" + bytes(4) + b"\0"
    frame = b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02" + b"\x02\x44\x01\0"
    return screen + (extension + frame) * frames + b";"


def webp(
    width: int = 3, height: int = 2, *, kind: str = "VP8 ", alpha: bool = False, moves: bool = False
) -> bytes:
    """A WebP whose first chunk is of that kind."""
    if kind == "VP8 ":
        body = b"\x10\0\0\x9d\x01\x2a" + struct.pack("<HH", width, height) + bytes(6)
    elif kind == "VP8L":
        bits = (width - 1) | (height - 1) << 14 | alpha << 28
        body = b"\x2f" + bits.to_bytes(4, "little") + bytes(7)
    else:
        flags = (0x10 if alpha else 0) | (0x02 if moves else 0)
        sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
        body = bytes([flags, 0, 0, 0]) + sides
    inner = b"WEBP" + kind.encode() + len(body).to_bytes(4, "little") + body
    return b"RIFF" + len(inner).to_bytes(4, "little") + inner


def bmp(
    width: int = 3, height: int = 2, *, header: int = 40, depth: int = 24, compression: int = 0
) -> bytes:
    """A BMP with a header of that length; a negative height has its rows from the top."""
    if header == 12:
        body = struct.pack("<IHHHH", 12, width, height, 1, depth)
    else:
        body = struct.pack("<IiiHHI", header, width, height, 1, depth, compression)
        body = (body + bytes(header))[:header]
    rows = bytes((width * depth + 31) // 32 * 4 * abs(height))
    start = 14 + len(body)
    return b"BM" + struct.pack("<IHHI", start + len(rows), 0, 0, start) + body + rows

"""WebP: reads the first chunk, which has one of three kinds. RFC 9649, sections 2.5 to 2.7."""

from __future__ import annotations

from tfrecreg.core.images.model import ImageError, ImageHeader, exif_orientation, sized

_ANIMATION, _EXIF, _ALPHA = 0x02, 0x08, 0x10


def header(data: bytes) -> ImageHeader:
    """The content of the first chunk: a key frame of VP8, a lossless VP8L, or a canvas (VP8X)."""
    kind = data[12:16]
    sizes = {b"VP8 ": 30, b"VP8L": 25, b"VP8X": 30}
    needed = sizes.get(kind)
    if needed is None and len(data) >= 16:
        raise ImageError("a WebP whose first chunk is of no known kind")
    if needed is None or len(data) < needed:
        raise ImageError(f"a WebP that ends after {len(data)} bytes, inside its header")
    if kind == b"VP8X":
        return _extended(data)
    if kind == b"VP8L":
        return _lossless(data)
    if data[20] & 1 or data[23:26] != b"\x9d\x01\x2a":
        raise ImageError("a WebP that does not begin with a key frame")
    width = int.from_bytes(data[26:28], "little") & 0x3FFF
    height = int.from_bytes(data[28:30], "little") & 0x3FFF
    return sized(ImageHeader("webp", height, width, 3, 8, animated=False))


def ends(data: bytes) -> bool:
    """Whether the file has at least the size in the RIFF header."""
    return len(data) >= 8 + int.from_bytes(data[4:8], "little")


def _lossless(data: bytes) -> ImageHeader:
    bits = int.from_bytes(data[21:25], "little")
    if data[20] != 0x2F or bits >> 29:
        raise ImageError("a WebP whose lossless header has a wrong signature")
    width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    channels = 4 if bits >> 28 & 1 else 3
    return ImageHeader("webp", height, width, channels, 8, animated=False)


def _extended(data: bytes) -> ImageHeader:
    flags = data[20]
    width = int.from_bytes(data[24:27], "little") + 1
    height = int.from_bytes(data[27:30], "little") + 1
    if height * width >= 1 << 32:
        raise ImageError(f"a WebP with a canvas of {width} × {height} pixels")
    channels = 4 if flags & _ALPHA else 3
    orientation = _orientation(data) if flags & _EXIF else 1
    return ImageHeader(
        "webp", height, width, channels, 8, bool(flags & _ANIMATION), orientation=orientation
    )


def _orientation(data: bytes) -> int:
    """The orientation in the chunk EXIF, which comes after the pixels."""
    position = 12
    while position < len(data):
        size = int.from_bytes(data[position + 4 : position + 8], "little")
        body = position + 8
        if data.startswith(b"EXIF", position):
            return exif_orientation(data[body : body + size].removeprefix(b"Exif\0\0"))
        position = body + size + size % 2
    return 1

"""JPEG: the frame header (SOF), for every coding. ITU-T T.81, annex B."""

from __future__ import annotations

import re

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
_APP1, _EXIF = 0xE1, b"Exif\0\0"


def header(data: bytes) -> ImageHeader:
    """The content of the first frame header. Junk between segments is skipped, as in libjpeg."""
    _, position, size, exif = _find_frame(data)
    found = _frame(data, position, size)
    orientation = exif_orientation(data[exif]) if exif is not None else 1
    return found if orientation == 1 else found._replace(orientation=orientation)


def is_lossless(data: bytes) -> bool:
    """Whether a JPEG is lossless or hierarchical, which few decoders support."""
    return _find_frame(data)[0] not in _USUAL


def _find_frame(data: bytes) -> tuple[int, int, int, slice | None]:
    """Marker, offset and length of the first frame header, and the place of EXIF data."""
    position, exif = 2, None
    while (found := _MARKER.search(data, position)) is not None:
        position = found.end()
        marker = data[position - 1]
        if not marker or marker in _BARE:
            continue
        if marker in (_SOS, _EOI):
            raise ImageError("a JPEG without a frame header before its scan or end")
        size = int.from_bytes(data[position : position + 2], "big")
        if position + 2 > len(data):
            break
        if size < 2:
            raise ImageError(f"a JPEG with a segment of length {size} at byte {position - 2}")
        if marker in _FRAMES:
            return marker, position, size, exif
        if marker == _APP1 and exif is None and data.startswith(_EXIF, position + 2):
            exif = slice(position + 2 + len(_EXIF), position + size)
        position += size
    raise _too_short(data)


def _frame(data: bytes, position: int, size: int) -> ImageHeader:
    segment = data[position + 2 : position + size]
    if len(segment) < size - 2:
        raise _too_short(data)
    bits, channels = (segment[0], segment[5]) if size >= 8 else (0, 0)
    height, width = int.from_bytes(segment[1:3], "big"), int.from_bytes(segment[3:5], "big")
    if not 2 <= bits <= 16 or not 1 <= channels <= 4 or size != 8 + 3 * channels:
        raise ImageError("a JPEG whose frame header has undefined values")
    return sized(ImageHeader("jpeg", height, width, channels, bits, animated=False))


def ends(data: bytes) -> bool:
    """Whether the file has an end marker behind the marker that starts the first scan.

    Inside a scan, a zero follows each ``ff`` of the data, so the bytes of the end marker occur only
    as the marker. The end marker of a thumbnail comes before the scan.
    """
    if data.endswith(b"\xff\xd9"):
        return True
    end = data.rfind(b"\xff\xd9")
    if end < 0:
        return False
    position = 2
    while position + 4 <= len(data) and data[position] == 0xFF and data[position + 1] != _SOS:
        position += 2 + int.from_bytes(data[position + 2 : position + 4], "big")
    return data.find(b"\xff\xda", position) < end


def _too_short(data: bytes) -> ImageError:
    return ImageError(f"a JPEG that ends after {len(data)} bytes, before its frame header")

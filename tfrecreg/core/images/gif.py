"""GIF: reads the logical screen, and looks for a second frame. GIF89a specification."""

from __future__ import annotations

from tfrecreg.core.images.model import ImageError, ImageHeader, sized

_IMAGE, _EXTENSION, _TRAILER = 0x2C, 0x21, 0x3B
_LAST = b"\0;"
"""The end of a frame's data, and the trailer."""


def header(data: bytes) -> ImageHeader:
    """The content of the logical screen descriptor: the canvas for the frames."""
    if len(data) < 13:
        raise ImageError(f"a GIF that ends after {len(data)} bytes, inside its header")
    width, height = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    return sized(ImageHeader("gif", height, width, 3, 8, animated=_walk(data, most=2)[0] > 1))


def ends(data: bytes) -> bool:
    """Whether the file is not truncated. It may be damaged in other ways. Bytes after a whole frame
    that are not a block, and wrong lengths, are no truncation, because decoders skip them.
    """
    return _walk(data, most=len(data))[1] or data.endswith(_LAST)


def _walk(data: bytes, most: int) -> tuple[int, bool]:
    """Count frames up to the limit `most`. Also returns whether the walk reached the trailer, or
    reached bytes after a frame that do not form a block."""
    last = len(data)
    position = 13 + _table(data[10]) if last >= 13 else last
    frames = 0
    while position < last and frames < most:
        block = data[position]
        if block == _TRAILER:
            return frames, True
        if block == _IMAGE and position + 10 <= last:
            frames += 1
            position += 11 + _table(data[position + 9])
        elif block == _EXTENSION:
            position += 2
        else:
            return frames, frames > 0 and block != _IMAGE
        while position < last and data[position]:
            position += 1 + data[position]
        position += 1
    return frames, False


def _table(flags: int) -> int:
    """Size in bytes of the color table that the flags declare."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0

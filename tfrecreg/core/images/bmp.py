"""BMP: skips the file header and reads the second header, in every version of OS/2 and Windows."""

from __future__ import annotations

from typing import NamedTuple

from tfrecreg.core.images.model import ImageError, ImageHeader, sized

CORE = 12
"""Size of the OS/2 header in bytes."""
_DEPTHS = frozenset((1, 2, 4, 8, 16, 24, 32))
_PLAIN, _FIELDS, _ALPHA_FIELDS = 0, 3, 6
_COMPRESSIONS = frozenset((_PLAIN, 1, 2, _FIELDS, _ALPHA_FIELDS))


def header(data: bytes) -> ImageHeader:
    """The content of the second header. If the height is negative, rows are stored from the top."""
    size = int.from_bytes(data[14:18], "little")
    if len(data) < 14 + min(size, 40):
        raise ImageError(f"a BMP that ends after {len(data)} bytes, inside its header")
    width, height, depth, compression = _fields(data, size)
    if depth not in _DEPTHS or compression not in _COMPRESSIONS or width < 0:
        raise ImageError(
            f"a BMP {width} pixels wide, of {depth} bits a pixel and compression {compression}"
        )
    channels = 4 if depth == 32 else 3
    return sized(ImageHeader("bmp", abs(height), width, channels, 8, animated=False))


def ends(data: bytes) -> bool:
    """Whether all rows are present. If they are packed, the file size in the header decides."""
    width, height, depth, compression = _fields(data, int.from_bytes(data[14:18], "little"))
    if compression in (_PLAIN, _FIELDS, _ALPHA_FIELDS):
        start = int.from_bytes(data[10:14], "little")
        return len(data) >= start + (width * depth + 31) // 32 * 4 * abs(height)
    return len(data) >= int.from_bytes(data[2:6], "little")


class Details(NamedTuple):
    """How a BMP stores its pixels."""

    header: int
    """Size of its second header in bytes, which identifies the version."""
    depth: int
    """Bits a pixel."""
    packed: bool
    """Whether rows are packed by run length."""
    grey: bool
    """Whether color N of its palette is the gray shade N, for every N; True without a palette."""


def details(data: bytes) -> Details:
    """How a BMP with a sound header stores its pixels."""
    size = int.from_bytes(data[14:18], "little")
    _, _, depth, compression = _fields(data, size)
    palette = b""
    if depth <= 8:
        step = 3 if size == CORE else 4
        start = 14 + size
        palette = data[start : min(start + (step << depth), int.from_bytes(data[10:14], "little"))]
        colours = (palette[at : at + 3] for at in range(0, len(palette), step))
        grey = all(each == bytes((number,) * 3) for number, each in enumerate(colours))
    return Details(size, depth, compression in (1, 2), not palette or grey)


def _fields(data: bytes, size: int) -> tuple[int, int, int, int]:
    """Width, height, bits per pixel and compression."""
    if size == CORE:
        numbers = [int.from_bytes(data[at : at + 2], "little") for at in (18, 20, 24)]
        return numbers[0], numbers[1], numbers[2], _PLAIN
    width = int.from_bytes(data[18:22], "little", signed=True)
    height = int.from_bytes(data[22:26], "little", signed=True)
    depth = int.from_bytes(data[28:30], "little")
    compression = int.from_bytes(data[30:34], "little") if size >= 20 else _PLAIN
    return width, height, depth, compression

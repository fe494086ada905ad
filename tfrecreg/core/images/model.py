"""The content of an image header, and the error for an unreadable one."""

from __future__ import annotations

from typing import Literal, NamedTuple

IMAGE_FORMATS = ("bmp", "gif", "jpeg", "png", "webp")
"""The known formats, as in `image/format`."""

UNREADABLE = "SRC110"
"""The code of an item that is skipped because its image is unreadable."""


class ImageHeader(NamedTuple):
    """The content of an image's header.

    `height` and `width` count stored pixels, as returned by decoders that ignore EXIF orientation
    (such as TensorFlow's).
    """

    format: str
    """One of :data:`IMAGE_FORMATS`."""
    height: int
    """Height in pixels, at least 1. An animation has the height of its canvas."""
    width: int
    """Width in pixels, at least 1. An animation has the width of its canvas."""
    channels: int
    """1 gray, 2 gray and alpha, 3 color, 4 color and alpha or CMYK. A palette counts as 3."""
    bits: int
    """Bits per sample of these channels. A palette has colors of 8 bits."""
    animated: bool
    """Whether there is more than one frame."""
    orientation: int = 1
    """EXIF orientation, 1 to 8, by which a viewer turns the stored pixels. 1 leaves them
    unchanged."""

    @property
    def shown(self) -> tuple[int, int]:
        """Width and height in a viewer, which turns the image according to its EXIF orientation."""
        sides = self.width, self.height
        return sides if self.orientation < _ON_ITS_SIDE else sides[::-1]


_ON_ITS_SIDE = 5
"""The first EXIF orientation that exchanges the sides."""
_ORIENTATION, _SHORT = 0x0112, 3


class ImageError(ValueError):
    """The bytes are not an image of a known format, or their header is invalid.

    Args:
        detail: the problem in words; one line, without characters that need escaping.
    """

    code = UNREADABLE
    """The code of an item that is skipped because of this error."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def exif_orientation(exif: bytes) -> int:
    """The orientation in EXIF data, which begin with a TIFF header; 1 if they do not state it."""
    order: Literal["little", "big"] = "little" if exif[:2] == b"II" else "big"
    first = int.from_bytes(exif[4:8], order)
    count = int.from_bytes(exif[first : first + 2], order)
    for at in range(first + 2, min(first + 2 + 12 * count, len(exif) - 9), 12):
        tag, kind = int.from_bytes(exif[at : at + 2], order), exif[at + 2 : at + 4]
        if tag == _ORIENTATION:
            value = int.from_bytes(exif[at + 8 : at + 10], order)
            is_known = int.from_bytes(kind, order) == _SHORT and 1 <= value <= 8
            return value if is_known else 1
    return 1


def sized(header: ImageHeader) -> ImageHeader:
    """Return `header`, or raise an error if it has no pixels."""
    if header.height < 1 or header.width < 1:
        raise ImageError(f"the header states a size of {header.width} × {header.height} pixels")
    return header

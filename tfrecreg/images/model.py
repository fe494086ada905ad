"""What the header of an image says, and why an image has none that could be read."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

IMAGE_FORMATS = ("bmp", "gif", "jpeg", "png", "webp")
"""The formats that are known, as `image/format` has them."""

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "empty": "SRC002",
        "unknown-format": "SRC003",
        "truncated-header": "SRC004",
        "corrupt-header": "SRC005",
        "zero-size": "SRC006",
        "unsupported": "SRC007",
    }
)
"""Every reason of a :class:`ImageError`, and the code of an item that is skipped for it."""


class ImageHeader(NamedTuple):
    """What an image's header says, as it is stored: EXIF and ICC are not looked at.

    So `height` and `width` are those of the stored pixels, which is what decoders give that do not
    turn images by their EXIF orientation (TensorFlow's do not).
    """

    format: str
    """One of :data:`IMAGE_FORMATS`."""
    height: int
    """Pixels, at least 1. Of an animation, of its canvas."""
    width: int
    """Pixels, at least 1. Of an animation, of its canvas."""
    channels: int
    """1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha or CMYK. A palette counts as 3."""
    bits: int
    """Bits a sample of these channels; of a palette, its colours: 8."""
    animated: bool
    """Whether there is more than one frame."""


class ImageError(ValueError):
    """The bytes are no image of a known format, or their header cannot be relied on.

    Args:
        reason: one of :data:`REASONS`.
        detail: what is wrong, for people; one line, nothing in it that would need escaping.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    @property
    def code(self) -> str:
        """The code of an item that is skipped for this: ``SRC002`` … ``SRC007``."""
        return REASONS[self.reason]

    def __str__(self) -> str:
        return self.detail


def sized(header: ImageHeader) -> ImageHeader:
    """`header`, where it has at least one pixel.

    Raises:
        ImageError: it has none.
    """
    if header.height < 1 or header.width < 1:
        raise ImageError(
            "zero-size",
            f"the header says {header.width} pixels wide and {header.height} high",
        )
    return header

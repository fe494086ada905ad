"""What encoded images have in common, as far as it decides how TensorFlow decodes them.

Only headers are read: damage after the header is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tfrecreg.api import ImageError, ImageHeader, read_header, why_undecodable

_PALETTE = 3
_MOST_CHUNKS = 1_000
"""Maximum number of chunks of a PNG to read."""
_BMP_DEPTH = 24
"""The only depth that TensorFlow decodes into the same channels for any argument."""


def look_at_image(data: bytes) -> ImageHeader | None:
    """The header of an image, with the channels that `tf.io.decode_image` chooses."""
    try:
        header = read_header(data)
    except ImageError:
        return None
    if why_undecodable(data, header) is not None:
        return None
    if header.format == "bmp" and int.from_bytes(data[28:30], "little") != _BMP_DEPTH:
        return None
    if header.format == "jpeg":
        if header.channels == 2:
            return None
        return header._replace(channels=min(header.channels, 3))  # CMYK becomes RGB
    if header.format == "png" and _is_transparent(data):
        return header._replace(channels=4)
    return header


@dataclass(slots=True)
class ImagesSeen:
    """What the images of one feature have in common. Picklable and mergeable; size bounded."""

    count: int = 0
    formats: set[str] = field(default_factory=set)
    channels: set[int] = field(default_factory=set)
    depths: set[bool] = field(default_factory=set)
    """Whether there are 16 bits a channel."""
    heights: set[int] = field(default_factory=set)
    """At most two of them: more say nothing more."""
    widths: set[int] = field(default_factory=set)
    """At most two of them."""
    strange: int = 0
    """Values that TensorFlow does not decode as images, or that are too large to read."""
    where: str = ""
    """The first of these."""

    def add(self, data: bytes, where: str) -> None:
        """See one more value."""
        header = look_at_image(data)
        if header is None:
            self.add_strange(where)
            return
        self.count += 1
        self.formats.add(header.format)
        self.channels.add(header.channels)
        self.depths.add(header.bits == 16)
        _bounded(self.heights, {header.height})
        _bounded(self.widths, {header.width})

    def add_strange(self, where: str) -> None:
        """Count a value that is not available or not an image header."""
        self.strange += 1
        self.where = self.where or where

    def merge(self, other: ImagesSeen) -> None:
        """Add the results of `other`."""
        self.count += other.count
        self.formats |= other.formats
        self.channels |= other.channels
        self.depths |= other.depths
        _bounded(self.heights, other.heights)
        _bounded(self.widths, other.widths)
        self.strange += other.strange
        self.where = self.where or other.where


def _bounded(seen: set[int], more: set[int]) -> None:
    for number in more:
        if len(seen) < 2:
            seen.add(number)


def _is_transparent(data: bytes) -> bool:
    """Whether the palette of a PNG has transparency: its chunk precedes the pixels."""
    if data[25] != _PALETTE:
        return False
    at = 8
    for _ in range(_MOST_CHUNKS):
        kind, size = data[at + 4 : at + 8], int.from_bytes(data[at : at + 4], "big")
        if kind in (b"tRNS", b"IDAT") or at + 12 + size > len(data):
            return kind == b"tRNS" and at + 12 + size <= len(data)
        at += 12 + size
    return False

"""The feature decoder for encoded images."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.api import (
    FeatureDecoder,
    ImageError,
    ImageHeader,
    Thumbnail,
    decode_pixels,
    decode_resized,
    is_truncated,
    read_header,
    si_bytes,
    sniff,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tfrecreg.api import Resizing

_NAMES = {"bmp": "BMP", "gif": "GIF", "jpeg": "JPEG", "png": "PNG", "webp": "WebP"}
_LOSSLESS = 64
"""Thumbnails are PNGs if the longer side of the image has at most this many pixels."""
_QUALITY = 80
"""Quality of all other thumbnails, which are JPEGs."""


class PictureDecoder(FeatureDecoder):
    """Decodes images in five formats. Reads headers without a library, and pixels with Pillow."""

    def reads(self, feature: str, start: bytes) -> bool:
        del feature
        return sniff(start) is not None

    def header(self, data: bytes) -> ImageHeader:
        return read_header(data)

    def array(self, data: bytes) -> npt.NDArray[np.uint8]:
        return decode_pixels(data)

    def resized(self, data: bytes, fit: Resizing) -> npt.NDArray[np.uint8]:
        return decode_resized(data, fit)

    def thumbnail(self, data: bytes, side: int) -> Thumbnail:
        """The first frame, with the stored pixels (no EXIF orientation)."""
        from tfrecreg.api import Conversion, Undecodable, convert_image

        header = read_header(data)
        small = max(header.width, header.height) <= _LOSSLESS
        conversion = Conversion(
            shorter=side,
            width=0,
            height=0,
            format="png" if small else "jpeg",
            quality=0 if small else _QUALITY,
            upright=False,
        )
        try:
            made = convert_image(data, header, conversion)
        except Undecodable as error:
            raise ValueError(error.detail) from error
        return Thumbnail("png" if small else "jpeg", made)

    def caption(self, data: bytes) -> str:
        name, size = f"{_NAMES[sniff(data) or '']} image", si_bytes(len(data))
        try:
            header = read_header(data)
        except ImageError as error:
            return f"{name}, {size}, unreadable: {error.detail}"
        moves = ", animated" if header.animated else ""
        cut = ", cut short" if is_truncated(data) else ""
        return f"{name}, {header.width}x{header.height}, {size}{moves}{cut}"

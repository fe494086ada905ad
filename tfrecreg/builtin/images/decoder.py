"""The decoder of features for encoded images."""

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
"""Images of up to this many pixels on their longer side get a PNG as their thumbnail."""
_QUALITY = 80
"""Quality of thumbnails that become JPEGs."""


class PictureDecoder(FeatureDecoder):
    """Images in the five formats: headers are read without a library, pixels by Pillow."""

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
        """The first frame, with its pixels as they are stored."""
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

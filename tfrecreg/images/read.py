"""The header of an image of whichever format, and whether its bytes reach its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfrecreg.images import bmp, gif, jpeg, png, webp
from tfrecreg.images.model import ImageError, ImageHeader
from tfrecreg.images.sniff import guess, sniff

_HEADERS: Mapping[str, Callable[[bytes], ImageHeader]] = {
    "bmp": bmp.header,
    "gif": gif.header,
    "jpeg": jpeg.header,
    "png": png.header,
    "webp": webp.header,
}
_ENDS: Mapping[str, Callable[[bytes], bool]] = {
    "bmp": bmp.ends,
    "gif": gif.ends,
    "jpeg": jpeg.ends,
    "png": png.ends,
    "webp": webp.ends,
}


def read_header(data: bytes) -> ImageHeader:
    """What the header of an image says. Reads headers alone and holds nothing: microseconds.

    Args:
        data: the whole file. A part of it will do where that holds the headers, which in a JPEG
            come behind metadata of any length.

    Raises:
        ImageError: the bytes are no image of a known format, or their header is cut, makes no
            sense, or has no pixels.
    """
    kind = sniff(data)
    if kind is None:
        if not data:
            raise ImageError("empty", "the file has no bytes")
        raise ImageError(
            "unknown-format", f"expected a JPEG, PNG, GIF, WebP or BMP, found {guess(data)}"
        )
    return _HEADERS[kind](data)


def is_truncated(data: bytes) -> bool:
    """Whether an image with a sound header ends before its end: as a stopped download does.

    A cheap look at the structure (JPEG without its end marker, PNG without IEND, fewer bytes than
    a BMP or WebP announces); damage in between is not seen. Decoders differ in what they do with
    such images: some fail, some fill up with grey.

    Args:
        data: the whole file.

    Returns:
        False for whatever has no sound header: :func:`read_header` says what that is.
    """
    kind = sniff(data)
    if kind is None or _ENDS[kind](data):
        return False  # mostly: the header need not be looked at then
    try:
        read_header(data)
    except ImageError:
        return False
    return True

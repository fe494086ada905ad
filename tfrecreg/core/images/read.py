"""The header of an image of any known format, and whether the image is truncated."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tfrecreg.core.images import bmp, gif, jpeg, png, webp
from tfrecreg.core.images.model import ImageError, ImageHeader
from tfrecreg.core.images.sniff import guess, sniff

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
    """The header of an image. Reads only headers and keeps no data: takes microseconds.

    Args:
        data: the whole file. A part is enough if it holds the headers, which in a JPEG come after
            metadata of any length.

    Raises:
        ImageError: the bytes are not an image of a known format, or their header is cut, is
            invalid, or has no pixels.
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
    """Whether an image with a sound header is truncated, as by an interrupted download.

    A cheap check of the structure (JPEG without its end marker, PNG without IEND, fewer bytes than
    a BMP or WebP declares); other damage is not detected. Decoders treat such images differently:
    some fail, some fill the rest with gray.

    Args:
        data: the whole file.

    Returns:
        False for bytes without a sound header: :func:`read_header` raises the reason.
    """
    kind = sniff(data)
    if kind is None or _ENDS[kind](data):
        return False  # the usual case, which does not need the header
    try:
        read_header(data)
    except ImageError:
        return False
    return True


def truncation_text(data: bytes, header: ImageHeader) -> str:
    """What a remark says of a truncated image that is written; empty for one that is not."""
    if not is_truncated(data):
        return ""
    return f"a {header.format.upper()} that is cut short, written unchanged"

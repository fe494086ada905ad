"""Reads the header of an image of any known format. Finds out whether the image is truncated, and
whether TensorFlow decodes it (`decode_image_op.cc` of 2.16). The tests try every kind with
TensorFlow.
"""

from __future__ import annotations

from base64 import b64decode

from tfrecreg.core.images import headers
from tfrecreg.core.images.model import ImageError, ImageHeader

JPEG = b"\xff\xd8\xff"
PNG = b"\x89PNG\r\n\x1a\n"

_URL_SAFE = bytes.maketrans(b"-_", b"+/")

_BMP_HEADERS = frozenset((12, 16, 40, 52, 56, 64, 108, 124))
"""Possible sizes in bytes of a BMP's second header. The size depends on the version."""

_FORMATS = {
    "bmp": (headers.bmp_header, headers.bmp_ends),
    "gif": (headers.gif_header, headers.gif_ends),
    "jpeg": (headers.jpeg_header, headers.jpeg_ends),
    "png": (headers.png_header, headers.png_ends),
    "webp": (headers.webp_header, headers.webp_ends),
}
"""For each format, how to read its header, and whether a file of it is not truncated."""
_OTHERS = (
    (b"II*\x00", "a TIFF"),
    (b"MM\x00*", "a TIFF"),
    (b"version https://git-lfs", "a pointer of git-lfs, whose file was not fetched"),
    (b"<!DOCTYPE html", "an HTML page"),
    (b"<html", "an HTML page"),
)


def sniff(data: bytes) -> str | None:
    """``jpeg``, ``png``, ``gif``, ``webp`` or ``bmp``, according to the first bytes; else None.

    The suffix of the name is ignored. Two letters are too few to identify a BMP, so the size of its
    second header has to be a valid one.

    Args:
        data: a file, or at least its first 18 bytes.
    """
    if data.startswith(JPEG):
        return "jpeg"
    if data.startswith(PNG):
        return "png"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "webp"
    if data.startswith(b"BM") and len(data) >= 18:
        return "bmp" if int.from_bytes(data[14:18], "little") in _BMP_HEADERS else None
    return None


def base64_inside(data: bytes) -> str | None:
    """The format of the image that these bytes encode in base64; None if they encode no image."""
    text = data[:64].translate(_URL_SAFE)
    try:
        return sniff(b64decode(text[: len(text) // 4 * 4], validate=True))
    except ValueError:
        return None


def guess(data: bytes) -> str:
    """Describe bytes without a known image format, for messages."""
    for magic, name in _OTHERS:
        if data.startswith(magic):
            return name
    if data[4:8] == b"ftyp":
        return "a HEIC, an AVIF or an MP4"
    if not data[:64].strip(b"\x00"):
        return "zeros"
    inside = base64_inside(data)
    if inside is not None:
        return f"the base64 of a {inside.upper()}"
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in data[:64]):
        return "text"
    return f"the bytes {data[:8].hex(' ')}"


def read_header(data: bytes) -> ImageHeader:
    """The header of an image. This reads only headers and keeps no data, so it takes microseconds.

    Args:
        data: the whole file. A part is enough if it holds the headers. In a JPEG, these come after
            metadata of any length.

    Raises:
        ImageError: the bytes are not an image of a known format, or their header is cut, is
            invalid, or has no pixels.
    """
    kind = sniff(data)
    if kind is None:
        if not data:
            raise ImageError("the file has no bytes")
        raise ImageError(f"expected a JPEG, PNG, GIF, WebP or BMP, found {guess(data)}")
    return _FORMATS[kind][0](data)


def is_truncated(data: bytes) -> bool:
    """Whether an image with a sound header is truncated, for example by an interrupted download.

    This quick check looks only at the structure: a JPEG without its end marker, a PNG without IEND,
    a GIF without its trailer, or a BMP or WebP with fewer bytes than it declares. Other damage is
    not detected.
    """
    kind = sniff(data)
    if kind is None or _FORMATS[kind][1](data):
        return False  # the usual case, without a need for the header
    try:
        read_header(data)
    except ImageError:
        return False
    return True


def truncation_text(data: bytes, header: ImageHeader) -> str:
    """A note that a truncated image was written unchanged; empty if it is not truncated."""
    if not is_truncated(data):
        return ""
    return f"a {header.format.upper()} that is cut short, written unchanged"


_BMP_DEPTHS = (8, 24, 32)


def why_undecodable(data: bytes, header: ImageHeader) -> str | None:
    """Why `tf.io.decode_image` refuses a sound image or decodes it wrongly; else None."""
    if header.format == "webp":
        return "a WebP"
    if header.format == "bmp":
        return _bmp(data)
    if header.format == "jpeg":
        if header.bits != 8:
            return f"a JPEG of {header.bits} bits a sample"
        if headers.jpeg_is_lossless(data):
            return "a lossless or hierarchical JPEG"
    return None


def _bmp(data: bytes) -> str | None:
    found = headers.bmp_details(data)
    if found.header == headers.BMP_CORE:
        return "a BMP with the header of OS/2"
    if found.packed:
        return "a BMP packed by run length"
    if found.depth not in _BMP_DEPTHS:
        return f"a BMP of {found.depth} bits a pixel"
    if found.depth == 8 and not found.grey:
        return "a BMP with a palette of colors, which TensorFlow decodes as indexes"
    return None

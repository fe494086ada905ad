"""The header of an image of any known format, and whether the image is truncated.

Differences between TensorFlow's decoders and Pillow.

Source: `tensorflow/core/kernels/image/decode_image_op.cc` of TensorFlow 2.16; the tests decode an
image of every kind with it.

Formats by their first bytes: images, and other files that are often found in place of images.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping

from tfrecreg.core.images import bmp, gif, jpeg, png, webp
from tfrecreg.core.images.model import ImageError, ImageHeader

JPEG = b"\xff\xd8\xff"
PNG = b"\x89PNG\r\n\x1a\n"

_URL_SAFE = bytes.maketrans(b"-_", b"+/")

_BMP_HEADERS = frozenset((12, 16, 40, 52, 56, 64, 108, 124))
"""Sizes in bytes of the header after a BMP's file header, by version."""

_OTHERS = (
    (b"II*\x00", "a TIFF"),
    (b"MM\x00*", "a TIFF"),
    (b"II+\x00", "a TIFF"),
    (b"8BPS", "a Photoshop file"),
    (b"\x00\x00\x01\x00", "an icon"),
    (b"\x00\x00\x00\x0cJXL ", "a JPEG XL"),
    (b"\xff\x0a", "a JPEG XL"),
    (b"\x00\x00\x00\x0cjP  ", "a JPEG 2000"),
    (b"\xffO\xffQ", "a JPEG 2000"),
    (b"%PDF", "a PDF"),
    (b"version https://git-lfs", "a pointer of git-lfs, whose file was not fetched"),
    (b"<!DOCTYPE html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"<?xml", "XML"),
    (b"<svg", "an SVG"),
    (b"\x1f\x8b", "gzip"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x89PNG", "a PNG whose signature a transfer as text has damaged"),
    (b"\x00\x05\x16\x07", "a companion file of macOS"),
)
_NETPBM = {
    b"P1": "a PBM",
    b"P2": "a PGM",
    b"P3": "a PPM",
    b"P4": "a PBM",
    b"P5": "a PGM",
    b"P6": "a PPM",
    b"P7": "a PAM",
}
_BRANDS = {
    b"avif": "an AVIF",
    b"avis": "an AVIF",
    b"heic": "a HEIC",
    b"heix": "a HEIC",
    b"mif1": "a HEIF",
    b"msf1": "a HEIF",
}


def sniff(data: bytes) -> str | None:
    """``jpeg``, ``png``, ``gif``, ``webp`` or ``bmp`` by the first bytes; None for anything else.

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
    """The format of an image whose base64 these bytes are; None if they are not base64 of
    an image.
    """
    text = data[:64].translate(_URL_SAFE)
    try:
        return sniff(b64decode(text[: len(text) // 4 * 4], validate=True))
    except ValueError:
        return None


def guess(data: bytes) -> str:
    """A description, for messages, of bytes without a known image format."""
    for magic, name in _OTHERS:
        if data.startswith(magic):
            return name
    if data[:2] in _NETPBM and data[2:3].isspace():
        return _NETPBM[data[:2]]
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "an MP4 or the like")
    if not data[:64].strip(b"\x00"):
        return "zeros"
    inside = base64_inside(data[:64])
    if inside is not None:
        return f"the base64 of a {inside.upper()}"
    if all(32 <= byte < 127 or byte in b"\t\r\n" for byte in data[:64]):
        return "text"
    return f"the bytes {data[:8].hex(' ')}"


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


_BMP_DEPTHS = (8, 24, 32)


def why_undecodable(data: bytes, header: ImageHeader) -> str | None:
    """Why `tf.io.decode_image` refuses a sound image or gives other pixels; None if it does not."""
    if header.format == "webp":
        return "a WebP"
    if header.format == "bmp":
        return _bmp(data)
    if header.format == "jpeg":
        if header.bits != 8:
            return f"a JPEG of {header.bits} bits a sample"
        if jpeg.is_lossless(data):
            return "a lossless or hierarchical JPEG"
    return None


def _bmp(data: bytes) -> str | None:
    found = bmp.details(data)
    if found.header == bmp.CORE:
        return "a BMP with the header of OS/2"
    if found.packed:
        return "a BMP packed by run length"
    if found.depth not in _BMP_DEPTHS:
        return f"a BMP of {found.depth} bits a pixel"
    if found.depth == 8 and not found.grey:
        return "a BMP with a palette of colors, which TensorFlow decodes as indexes"
    return None

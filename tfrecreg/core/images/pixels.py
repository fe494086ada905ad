"""Decodes images to arrays for training, with Pillow. Sets no limits of its own.

Small plain PNGs with equal headers are decoded together. For a digit of 28 by 28 pixels, Pillow
takes 36 µs, but inflating the pixels takes less than 4 µs. Such a PNG has 8 bits per sample, no
palette, no interlacing, only one chunk IDAT between the header and the end, and rows without a
filter. The source `mnist` writes such PNGs. Pillow decodes all other images, and PNGs with a fault.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrecreg.core.images.decoder import pillow
from tfrecreg.core.values.text import safe

LARGEST = 1 << 14
"""Maximum size of such a PNG's pixels in bytes. Above it, Pillow's overhead is negligible."""

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_HEADER = struct.Struct(">8sI4sIIBBBBBI")
"""The signature, and the chunk IHDR, which consists of length, name, width, height, depth, colour
type, three methods and checksum."""
_CHUNK = struct.Struct(">I4s")
_CHECKSUM = struct.Struct(">I")
_END = b"\0\0\0\0IEND\xaeB`\x82"
_CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}
"""Samples per pixel by colour type: grey, RGB, grey with alpha, RGBA."""


def decode_alike(images: Sequence[bytes]) -> npt.NDArray[np.uint8] | None:
    """The pixels of PNGs with the same header; None if Pillow has to decode them."""
    if not images:
        return None
    shape = _shape(images[0])
    if shape is None:
        return None
    height, width, channels = shape
    header = images[0][: _HEADER.size]
    size = height * (1 + width * channels)
    parts = []
    for image in images:
        rows = _inflated(image, header, size)
        if rows is None:
            return None
        parts.append(rows)
    found = np.frombuffer(b"".join(parts), np.uint8).reshape(len(images), height, -1)
    if found[:, :, 0].any():  # a row has a filter
        return None
    pixels: npt.NDArray[np.uint8] = found[:, :, 1:].copy().reshape(-1, height, width, channels)
    return pixels


def _shape(image: bytes) -> tuple[int, int, int] | None:
    """Height, width and channels of an image that this module can read; None for other images."""
    if len(image) < _HEADER.size:
        return None
    signature, length, name, width, height, depth, colour, *methods, checksum = _HEADER.unpack_from(
        image
    )
    channels = _CHANNELS.get(colour)
    if (signature, length, name, depth, methods) != (_SIGNATURE, 13, b"IHDR", 8, [0, 0, 0]):
        return None
    if channels is None or not 0 < width * height * channels <= LARGEST:
        return None
    if zlib.crc32(image[12 : _HEADER.size - 4]) != checksum:
        return None
    return height, width, channels


def _inflated(image: bytes, header: bytes, size: int) -> bytes | None:
    """The filtered rows of an image whose only chunk between IHDR and IEND is one IDAT; None for
    other or damaged images.
    """
    start = len(header)
    if not image.startswith(header) or not image.endswith(_END):
        return None
    length, name = _CHUNK.unpack_from(image, start)
    end = start + 8 + length
    if name != b"IDAT" or len(image) != end + 4 + len(_END):
        return None
    if (zlib.crc32(image[start + 4 : end]),) != _CHECKSUM.unpack_from(image, end):
        return None
    inflater = zlib.decompressobj()
    try:
        # Read one more byte than expected, so that zlib reaches the end of the stream.
        rows = inflater.decompress(image[start + 8 : end], size + 1)
    except zlib.error:
        return None
    return rows if len(rows) == size and inflater.eof and not inflater.unused_data else None


Resizing: TypeAlias = Callable[[int, int], tuple[tuple[int, int], Sequence[int]]]
"""A function of the height and the width of an image. Returns the new height and width, and the
part of the image that is resized: top, left, height and width."""

_PIXELS_CHANNELS = {"L": "L", "LA": "LA", "RGB": "RGB", "RGBA": "RGBA", "1": "L", "F": "L"}
_DEEP = ("I", "I;16", "I;16B", "I;16L", "I;16N")
"""Modes of grey images of 16 bits."""


def decode_pixels(data: bytes) -> npt.NDArray[np.uint8]:
    """The pixels of an image, or of its first frame if it has several frames.

    Returns:
        An array of shape (height, width, channels), as from `tf.io.decode_image`: 1 channel for
        grey, 2 for grey with alpha, 3 or 4 for colours. Samples of 16 bits keep their upper 8 bits.

    Raises:
        ValueError: the image does not decode. The text is the reason, escaped.
        MissingExtraError: Pillow is not installed.
    """
    small = decode_alike([data])
    found: npt.NDArray[np.uint8]
    found = np.array(_decoded(data), np.uint8) if small is None else small[0]
    return found if found.ndim == 3 else found[:, :, np.newaxis]


def decode_resized(data: bytes, fit: Resizing) -> npt.NDArray[np.uint8]:
    """Decode and resize an image. The result is the same as from :func:`decode_pixels` and then
    :func:`resized`, but the pixels are not copied twice.

    Raises:
        ValueError, MissingExtraError: as :func:`decode_pixels`.
    """
    small = decode_alike([data])
    if small is not None:
        return resized(small[0], fit)
    image = _decoded(data)
    return _resized(image, len(image.getbands()), fit)


def _decoded(data: bytes) -> Any:
    """The decoded image as an object of Pillow, in a mode whose channels are bytes."""
    image_module = pillow("PIL.Image")
    try:
        with image_module.open(io.BytesIO(data)) as image:
            image.load()
            if image.mode in _DEEP:
                deep = np.asarray(image).astype(np.int64)
                return image_module.fromarray((deep >> 8).clip(0, 255).astype(np.uint8))
            see_through = image.mode in ("P", "PA") and "transparency" in image.info
            mode = _PIXELS_CHANNELS.get(image.mode, "RGBA" if see_through else "RGB")
            return image if image.mode == mode else image.convert(mode)
    except Exception as error:
        # Decoders raise many errors: OSError, SyntaxError, struct.error, KeyError …
        why = re.sub(r" at 0x[0-9a-f]+", "", str(error))
        raise ValueError(f"{type(error).__name__}: {safe(why, limit=300)}") from error


def resized(pixels: npt.NDArray[np.uint8], fit: Resizing) -> npt.NDArray[np.uint8]:
    """Resize a part of an image bilinearly. If it becomes smaller, it is filtered."""
    channels = pixels.shape[2]
    return _resized(
        pillow("PIL.Image").fromarray(pixels[:, :, 0] if channels == 1 else pixels), channels, fit
    )


def _resized(image: Any, channels: int, fit: Resizing) -> npt.NDArray[np.uint8]:
    size, (top, left, rows, columns) = fit(image.height, image.width)
    box = (left, top, left + columns, top + rows)
    image = image.resize(size[::-1], pillow("PIL.Image").Resampling.BILINEAR, box=box)
    return np.array(image, np.uint8).reshape(*size, channels)

"""Differences between TensorFlow's decoders and Pillow.

Source: `tensorflow/core/kernels/image/decode_image_op.cc` of TensorFlow 2.16; the tests decode an
image of every kind with it.
"""

from __future__ import annotations

from tfrecreg.core.images import bmp, jpeg
from tfrecreg.core.images.model import ImageHeader

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

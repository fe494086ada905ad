"""What is said of TensorFlow's decoders is what TensorFlow does."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import pytest
from image_support import bmp, gif, jpeg, png, webp

from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import is_truncated, read_header, why_undecodable


def palette(depth: int, *, grey: bool) -> bytes:
    """A BMP with a palette: of shades in their order, or of colours."""
    made = bytearray(bmp(8, 4, depth=depth))
    colours = b"".join(bytes((each, each, each if grey else 9, 0)) for each in range(1 << depth))
    start = 54 + len(colours)
    made[10:14] = struct.pack("<I", start)
    made[46:50] = struct.pack("<I", 1 << depth)
    return bytes(made[:54]) + colours + bytes(made[54:])


def packed() -> bytes:
    """A BMP of 8 bits a pixel, packed by run length."""
    plain = palette(8, grey=True)
    start = len(plain) - 32
    rows = b"".join(bytes((8, 10 * row, 0, 0)) for row in range(4)) + b"\0\1"
    made = bytearray(plain[:start] + rows)
    made[30:34] = struct.pack("<I", 1)
    made[34:38] = struct.pack("<I", len(rows))
    made[2:6] = struct.pack("<I", len(made))
    return bytes(made)


IMAGES = {
    "jpeg": (jpeg(9, 7), None),
    "png": (png(5, 4), None),
    "gif": (gif(), None),
    "webp": (webp(), "a WebP"),
    "bmp": (bmp(), None),
    "bmp from the top": (bmp(3, -2), None),
    "bmp 32": (bmp(depth=32), None),
    "bmp 16": (bmp(depth=16), "a BMP of 16 bits a pixel"),
    "bmp 1": (palette(1, grey=True), "a BMP of 1 bits a pixel"),
    "bmp grey": (palette(8, grey=True), None),
    "bmp colours": (
        palette(8, grey=False),
        "a BMP with a palette of colors, which TensorFlow decodes as indexes",
    ),
    "bmp os/2": (bmp(header=12), "a BMP with the header of OS/2"),
    "bmp packed": (packed(), "a BMP packed by run length"),
}


@pytest.mark.parametrize("name", IMAGES)
def test_every_kind_has_its_reason(name: str) -> None:
    data, reason = IMAGES[name]
    assert why_undecodable(data, read_header(data)) == reason


def test_a_jpeg_that_is_not_baseline_or_progressive_has_one() -> None:
    data = bytearray(jpeg())
    frame = data.index(b"\xff\xc0")
    for marker, reason in ((0xC2, None), (0xC3, "a lossless or hierarchical JPEG")):
        data[frame + 1] = marker
        assert why_undecodable(bytes(data), read_header(bytes(data))) == reason
    data[frame + 4] = 12
    assert why_undecodable(bytes(data), read_header(bytes(data))) == "a JPEG of 12 bits a sample"


def takes(tf: Any, data: bytes) -> bool:
    """Whether TensorFlow decodes it into the pixels that Pillow has."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    try:
        found = tf.io.decode_image(data, channels=3, expand_animations=False).numpy()
    except tf.errors.InvalidArgumentError:
        return False
    if data.startswith(b"\xff\xd8"):
        return True  # decoders differ in the last bit
    with image.open(io.BytesIO(data)) as opened:
        return bool((found == image.Image.convert(opened, "RGB")).all())


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")


@pytest.mark.parametrize("name", sorted(IMAGES.keys() - {"webp", "gif", "jpeg"}))
def test_tensorflow_does_so(tf: Any, name: str) -> None:
    data, reason = IMAGES[name]
    assert takes(tf, data) == (reason is None)


@pytest.mark.medium
@pytest.mark.realdata
def test_tensorflow_does_so_with_images_of_other_projects(tf: Any, realdata: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    looked = 0
    for path in sorted((realdata / "images-odd").rglob("*")):
        data = path.read_bytes() if path.is_file() and path.stat().st_size < 1 << 20 else b""
        try:
            header = read_header(data)
            if header.height * header.width > 1 << 24:
                continue
            image.open(io.BytesIO(data)).load()
        except (ImageError, OSError, SyntaxError, ValueError, image.DecompressionBombError):
            continue
        if header.format == "png" or is_truncated(data):
            continue
        if header.format == "webp" and hasattr(tf.io, "decode_webp"):
            continue  # TensorFlow 2.21 decodes some of them, 2.16 none
        looked += 1
        try:
            tf.io.decode_image(data, expand_animations=False)
            decodes = True
        except tf.errors.InvalidArgumentError:
            decodes = False
        reason = why_undecodable(data, header)
        numbers = reason is not None and "which TensorFlow decodes as indexes" in reason
        assert decodes == (reason is None or numbers), path
    assert looked > 20

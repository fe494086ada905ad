"""What the headers say is what Pillow decodes, of images that other encoders wrote."""

from __future__ import annotations

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.pixels import decode_pixels, decode_resized, resized
from tfrecreg.core.images.read import is_truncated, read_header

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
ImageOps = pytest.importorskip("PIL.ImageOps", reason="Pillow is not installed")

CASES = [
    ("JPEG", "L", 1, {}),
    ("JPEG", "RGB", 3, {}),
    ("JPEG", "RGB", 3, {"progressive": True}),
    ("JPEG", "CMYK", 4, {}),
    ("PNG", "1", 1, {}),
    ("PNG", "L", 1, {}),
    ("PNG", "LA", 2, {}),
    ("PNG", "P", 3, {}),
    ("PNG", "RGB", 3, {}),
    ("PNG", "RGBA", 4, {}),
    ("GIF", "P", 3, {}),
    ("WEBP", "RGB", 3, {}),
    ("WEBP", "RGB", 3, {"lossless": True}),
    ("WEBP", "RGBA", 4, {}),
    ("WEBP", "RGBA", 4, {"lossless": True}),
    ("BMP", "1", 3, {}),
    ("BMP", "L", 3, {}),
    ("BMP", "RGB", 3, {}),
    ("BMP", "RGBA", 4, {}),
]


@pytest.mark.parametrize(("kind", "mode", "channels", "options"), CASES)
@pytest.mark.parametrize("size", [(1, 1), (31, 17), (300, 5)])
def test_the_size_is_the_one_that_was_encoded(
    kind: str, mode: str, channels: int, options: dict[str, bool], size: tuple[int, int]
) -> None:
    made = io.BytesIO()
    Image.new(mode, size).save(made, kind, **options)
    found = read_header(made.getvalue())
    assert (found.format, found.width, found.height) == (kind.lower(), *size)
    if (kind, mode) != ("WEBP", "RGBA"):  # an encoder may drop alpha that is all opaque
        assert found.channels == channels
    assert not found.animated
    assert not is_truncated(made.getvalue())
    assert is_truncated(made.getvalue()[:-3])


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_an_animation_is_seen(kind: str) -> None:
    made = io.BytesIO()
    frames = [Image.new("RGB", (9, 7), (shade, 90, 0)) for shade in (10, 120, 250)]
    frames[0].save(made, kind, save_all=True, append_images=frames[1:])
    assert read_header(made.getvalue())[:3] == (kind.lower(), 7, 9)
    assert read_header(made.getvalue()).animated


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("order", [b"II*\0", b"MM\0*"])
def test_an_exif_orientation_is_read(kind: str, order: bytes) -> None:
    byte_order: Any = "little" if order[:1] == b"I" else "big"
    for orientation in (*range(10), 6 << 8):
        one = (0x0112, 2), (3, 2), (1, 4), (orientation, 2), (0, 2), (0, 4)
        numbers = (8, 4), (2, 2), (0x010F, 2), (2, 2), (1, 4), (0, 4), *one
        tiff = order + b"".join(value.to_bytes(size, byte_order) for value, size in numbers)
        made = io.BytesIO()
        image = Image.new("RGB", (9, 7))
        image.save(made, kind, exif=b"Exif\0\0" + tiff)
        found = read_header(made.getvalue())
        is_known = 1 <= orientation <= 8
        assert found.orientation == (orientation if is_known else 1)
        assert found[:3] == (kind.lower(), 7, 9)
        opened = Image.open(io.BytesIO(made.getvalue()))
        assert opened.getexif().get(0x0112, 1) == orientation
        if is_known:
            assert found.shown == ImageOps.exif_transpose(opened).size
        for cut in range(len(tiff)):
            image.save(again := io.BytesIO(), kind, exif=b"Exif\0\0" + tiff[:cut])
            assert read_header(again.getvalue()).orientation in (1, found.orientation)


@pytest.mark.realdata
def test_headers_agree_with_pillow_on_images_from_the_wild(realdata: Path) -> None:
    compared = 0
    for path in sorted(realdata.rglob("*")):
        if not path.is_file() or path.stat().st_size > 5_000_000 or path.suffix == ".json":
            continue
        data = path.read_bytes()
        try:
            found = read_header(data)
        except ImageError:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with Image.open(io.BytesIO(data), formats=[found.format.upper()]) as image:
                    size = image.size
        except (OSError, SyntaxError, Image.DecompressionBombError):
            continue
        assert (found.width, found.height) == size, path
        compared += 1
    assert compared > 700


@pytest.mark.medium
@pytest.mark.parametrize(
    ("kind", "mode"), [*((kind, mode) for kind, mode, *_ in CASES), ("PNG", "I;16")]
)
@pytest.mark.parametrize("size", [(9, 4), (300, 50)])
def test_a_size_on_the_way_is_that_of_the_pixels(
    kind: str, mode: str, size: tuple[int, int]
) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (size[1], size[0], 3), np.uint8)
    image = Image.fromarray(noise)
    if mode == "I;16":
        image = Image.fromarray(noise[:, :, 0].astype(np.uint16) * 256)
    stream = io.BytesIO()
    (image if mode == "I;16" else image.convert(mode)).save(stream, kind)

    def half(height: int, width: int) -> tuple[tuple[int, int], tuple[int, int, int, int]]:
        return (max(1, height // 2), width), (1, 2, height - 2, width - 3)

    data = stream.getvalue()
    found = decode_resized(data, half)
    assert found.tolist() == resized(decode_pixels(data), half).tolist()
    assert found.flags.writeable

"""Small PNGs that are decoded together have the pixels that other decoders give them."""

from __future__ import annotations

import io
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_support import chunk
from image_support import png as plain_png

from tfrecreg.core.images.pixels import LARGEST, decode_alike


def png(pixels: Any, *, interlace: int = 0) -> bytes:
    """Rows of pixels, each without a filter. PNG specification (third edition), 9.2."""
    height, width, channels = pixels.shape
    colour = {1: 0, 3: 2, 2: 4, 4: 6}[channels]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, interlace)),
            chunk(b"IDAT", zlib.compress(rows)),
            chunk(b"IEND", b""),
        )
    )


def drawn(chance: random.Random, height: int, width: int, channels: int) -> tuple[Any, bytes]:
    pixels = np.frombuffer(chance.randbytes(height * width * channels), np.uint8)
    pixels = pixels.reshape(height, width, channels)
    return pixels, png(pixels)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 9), (9, 1), (7, 5)])
def test_pixels_are_those_that_were_encoded(channels: int, height: int, width: int) -> None:
    chance = random.Random(1)
    pairs = [drawn(chance, height, width, channels) for _ in range(30)]
    found = decode_alike([data for _, data in pairs])
    assert found is not None
    assert np.array_equal(found, np.stack([pixels for pixels, _ in pairs]))
    found[0, 0, 0, 0] ^= 1  # it may be written to


SOUND = drawn(random.Random(3), 6, 5, 1)[1]
OTHERS = {
    "nothing": b"",
    "a JPEG": b"\xff\xd8\xff" + bytes(100),
    "another size": drawn(random.Random(3), 5, 6, 1)[1],
    "a palette": plain_png(5, 6, colour=3, before=[chunk(b"PLTE", bytes(768))]),
    "16 bits": plain_png(5, 6, depth=16, colour=0),
    "4 bits": plain_png(5, 6, depth=4, colour=0),
    "interlaced": png(np.zeros((6, 5, 1), np.uint8), interlace=1),
    "another chunk": plain_png(5, 6, colour=0, before=[chunk(b"gAMA", bytes(4))]),
    "two chunks of pixels": SOUND[:33] + chunk(b"IDAT", b"") + SOUND[33:],
    "bytes behind the end": SOUND + b"\0",
    "large": plain_png(LARGEST + 1, 1, colour=0),
}


@pytest.mark.parametrize("other", sorted(OTHERS))
def test_other_images_are_left_to_other_decoders(other: str) -> None:
    assert decode_alike([OTHERS[other]] * 2) is None or other == "another size"
    assert decode_alike([SOUND, OTHERS[other]]) is None
    assert decode_alike([]) is None


def test_other_filters_are_left_to_other_decoders() -> None:
    rows = bytearray(36)
    for kind in (1, 2, 3, 4, 255):
        rows[12] = kind
        data = SOUND[:33] + chunk(b"IDAT", zlib.compress(bytes(rows))) + chunk(b"IEND", b"")
        assert decode_alike([SOUND, data]) is None


@pytest.mark.parametrize("rows", [b"", bytes(35), bytes(37), bytes(1 << 20)])
def test_too_few_or_too_many_pixels(rows: bytes) -> None:
    data = SOUND[:33] + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    assert decode_alike([data]) is None


def test_no_damage_passes_as_pixels() -> None:
    """Every byte changed, and every length: what another decoder would refuse is refused."""
    expected = decode_alike([SOUND])
    assert expected is not None
    for at in range(len(SOUND)):
        for change in (1, 0x40, 0xFF):
            data = bytearray(SOUND)
            data[at] ^= change
            assert decode_alike([bytes(data)]) is None
            assert decode_alike([SOUND, bytes(data)]) is None
        assert decode_alike([SOUND[:at]]) is None


@pytest.mark.realdata
def test_images_from_the_wild(realdata: Path) -> None:
    image_module = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    found = 0
    for path in sorted((realdata / "images-odd" / "pngsuite").glob("*.png")):
        data = path.read_bytes()
        pixels = decode_alike([data])
        if pixels is not None:
            found += 1
            with image_module.open(io.BytesIO(data)) as image:
                assert np.array_equal(pixels[0].squeeze(), np.asarray(image)), path.name
    assert found > 1

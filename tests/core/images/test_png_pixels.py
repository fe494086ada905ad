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

CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


def filtered(pixels: Any, filters: list[int]) -> bytes:
    """Rows of pixels with their filters. PNG specification (third edition), 9.2."""
    height, width, channels = pixels.shape
    before = np.zeros(width * channels, np.uint8)
    rows = []
    for row, kind in zip(pixels.reshape(height, -1), filters, strict=True):
        left = np.concatenate((np.zeros(channels, np.uint8), row[:-channels]))
        rows.append(bytes([kind]) + (row - (np.zeros_like(row), left, before)[kind]).tobytes())
        before = row
    return b"".join(rows)


def png(pixels: Any, filters: list[int], *, depth: int = 8, interlace: int = 0) -> bytes:
    height, width, channels = pixels.shape
    colour = {count: kind for kind, count in CHANNELS.items()}[channels]
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)),
            chunk(b"IDAT", zlib.compress(filtered(pixels, filters))),
            chunk(b"IEND", b""),
        )
    )


def drawn(chance: random.Random, height: int, width: int, channels: int) -> tuple[Any, bytes]:
    pixels = np.frombuffer(chance.randbytes(height * width * channels), np.uint8)
    pixels = pixels.reshape(height, width, channels)
    return pixels, png(pixels, [chance.randrange(3) for _ in range(height)])


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 9), (9, 1), (7, 5)])
def test_pixels_are_those_that_were_encoded(channels: int, height: int, width: int) -> None:
    chance = random.Random(1)
    pairs = [drawn(chance, height, width, channels) for _ in range(30)]
    found = decode_alike([data for _, data in pairs])
    assert found is not None
    assert np.array_equal(found, np.stack([pixels for pixels, _ in pairs]))
    found[0, 0, 0, 0] ^= 1  # it may be written to


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pillow_decodes_the_same(channels: int) -> None:
    image_module = pytest.importorskip("PIL.Image", reason="the extra `images` is not installed")
    _, data = drawn(random.Random(2), 6, 5, channels)
    found = decode_alike([data])
    assert found is not None
    with image_module.open(io.BytesIO(data)) as image:
        assert np.array_equal(found[0].squeeze(), np.asarray(image))


SOUND = drawn(random.Random(3), 6, 5, 1)[1]
OTHERS = {
    "nothing": b"",
    "a JPEG": b"\xff\xd8\xff" + bytes(100),
    "another size": drawn(random.Random(3), 5, 6, 1)[1],
    "a palette": plain_png(5, 6, colour=3, before=[chunk(b"PLTE", bytes(768))]),
    "16 bits": plain_png(5, 6, depth=16, colour=0),
    "4 bits": plain_png(5, 6, depth=4, colour=0),
    "interlaced": png(np.zeros((6, 5, 1), np.uint8), [0] * 6, interlace=1),
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
    rows = bytearray(filtered(np.ones((6, 5, 1), np.uint8), [0] * 6))
    for kind in (3, 4, 5, 255):
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
    assert found > 3

"""PNG made here is what PNG readers read, and the same every time."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg_mnist.grey_png import MAX_SIDE, encode_png


def chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    assert data[:8] == bytes.fromhex("89504e470d0a1a0a")
    position = 8
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        kind = data[position + 4 : position + 8]
        body = data[position + 8 : position + 8 + length]
        (crc,) = struct.unpack_from(">I", data, position + 8 + length)
        assert crc == zlib.crc32(kind + body)
        yield kind, body
        position += 12 + length


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 40), st.randoms(use_true_random=False))
def test_holds_the_pixels_and_nothing_else(height: int, width: int, random: object) -> None:
    pixels = random.randbytes(height * width)  # type: ignore[attr-defined]
    (kind, header), (data_kind, data), (end, nothing) = chunks(encode_png(pixels, height, width))
    assert (kind, data_kind, end, nothing) == (b"IHDR", b"IDAT", b"IEND", b"")
    assert header == struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = zlib.decompress(data)
    assert len(lines) == height * (width + 1)
    assert set(lines[:: width + 1]) == {0}, "every scanline has filter 0"
    assert b"".join(lines[at + 1 : at + 1 + width] for at in range(0, len(lines), width + 1)) == (
        pixels
    )


@pytest.mark.skipif("ng" in zlib.ZLIB_RUNTIME_VERSION, reason="zlib-ng deflates in its own way")
def test_golden_vector() -> None:
    assert encode_png(bytes((0, 255, 128, 0, 0, 7)), 2, 3).hex() == (
        "89504e470d0a1a0a0000000d4948445200000003000000020800000000b81f39c6"
        "000000104944415428536360f8dfc0c0c0c00e0008890187dcce2f270000000049454e44ae426082"
    )


@pytest.mark.parametrize(("height", "width"), [(0, 3), (3, 0), (-1, 3), (MAX_SIDE + 1, 1)])
def test_refuses_sides_that_png_has_not(height: int, width: int) -> None:
    with pytest.raises(ValueError, match="a PNG has sides of 1 to 2147483647"):
        encode_png(b"", height, width)


@pytest.mark.parametrize("count", [0, 5, 7])
def test_refuses_pixels_that_do_not_fill_the_image(count: int) -> None:
    with pytest.raises(ValueError, match=f"2 × 3 pixels expected, {count} found"):
        encode_png(bytes(count), 2, 3)

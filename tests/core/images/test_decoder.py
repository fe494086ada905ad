"""Images that do not decode, or are too large for it, have a code and a reason."""

from __future__ import annotations

import io
import os
import struct
import zlib
from typing import Any

import pytest
from image_support import chunk, jpeg, png

from tfrecreg.core.images import decoder
from tfrecreg.core.images.decoder import (
    Conversion,
    Undecodable,
    convert_image,
    digest_pixels,
    pixel_bytes,
    verify_pixels,
)
from tfrecreg.core.images.read import read_header

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def verify(data: bytes, **header: Any) -> tuple[str, bool, str]:
    """Code, whether it is too costly, and detail; empty where it decodes."""
    try:
        verify_pixels(data, read_header(data)._replace(**header))
    except Undecodable as error:
        return error.code, error.costly, error.detail
    return "", False, ""


def test_numbers_become_pixels_from_black_to_white() -> None:
    assert list(pixel_bytes([-1, 0, 1])) == [0, 127, 255]
    assert list(pixel_bytes([0.25, 0.5])) == [0, 255]
    assert list(pixel_bytes([10, 200, 250])) == [10, 200, 250]


def bomb(width: int, height: int) -> bytes:
    """A grey PNG of a few kB that decodes to that many pixels, all black."""
    squeeze = zlib.compressobj(9)
    row = bytes(width + 1)
    body = b"".join(squeeze.compress(row) for _ in range(height)) + squeeze.flush()
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def animation() -> bytes:
    frames = [Image.effect_noise((64, 64), 90).convert("RGB") for _ in range(3)]
    data = io.BytesIO()
    frames[0].save(data, "GIF", save_all=True, append_images=frames[1:])
    return data.getvalue()


def test_what_is_damaged_says_so_and_the_same_in_every_run() -> None:
    whole = bytearray(png(30, 20))
    whole[-14] ^= 1  # the CRC of the pixels, which inflate does not know
    for data, reason in (
        (png(30, 20), ""),
        (bytes(whole), "checksum"),
        (png()[:-20], ""),
        (jpeg(marker=0xC3), "OSError"),
        (animation()[:-1500], ""),
    ):
        found = verify(data)
        assert found == verify(data)
        assert found[:2] == ("" if data == png(30, 20) else "SRC110", False)
        assert reason in found[2]
    assert verify(animation()) == ("", False, "")


def test_a_header_of_another_size_or_format_is_found() -> None:
    assert verify(png(30, 20), height=21) == (
        "SRC110",
        False,
        "it decodes to 30 × 20 pixels, but its header says 30 × 21",
    )
    assert verify(png(30, 20), format="gif")[:2] == ("SRC110", False)


@pytest.mark.medium
def test_a_bomb_of_pixels_is_refused_before_it_is_decoded() -> None:
    code, costly, detail = verify(bomb(20_000, 20_000))
    assert (code, costly) == ("SRC110", True)
    assert detail.partition(",")[0] == "20000 × 20000 pixels"


def test_a_conversion_keeps_the_pixels() -> None:
    noise = Image.frombytes("RGB", (300, 300), os.urandom(300 * 300 * 3))
    data = io.BytesIO()
    noise.save(data, "BMP")
    header = read_header(data.getvalue())
    made = convert_image(data.getvalue(), header, Conversion(0, 0, 0, "png", 0))
    assert Image.open(io.BytesIO(made)).tobytes() == noise.tobytes()


def test_a_digest_by_strips_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    data = png(30, 20)
    whole = digest_pixels(data, read_header(data))
    monkeypatch.setattr(decoder, "_STRIP", 70)
    assert digest_pixels(data, read_header(data)) == whole

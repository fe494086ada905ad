"""Headers say what TensorFlow will make of an image; whatever else comes raises nothing."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_support import chunk, segment

from tfrecreg.builtin.export.connectors import look_at_image


def png(width: int, height: int, depth: int, colour: int, *chunks: bytes) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunks) + chunk(b"IDAT", b"x")


def frame(marker: int, *, precision: int = 8, components: int = 3, height: int = 5) -> bytes:
    return segment(
        marker, struct.pack(">BHHB", precision, height, 7, components) + bytes(3 * components)
    )


def jpeg(*parts: bytes) -> bytes:
    return b"\xff\xd8" + b"".join(parts) + b"\xff\xda\0\x02pixels"


def bmp(width: int, height: int, bits: int, *, header: int = 40, compression: int = 0) -> bytes:
    info = struct.pack("<IiiHHI", header, width, height, 1, bits, compression)
    return b"BM" + b"\0" * 12 + info + b"\0" * 40


APP = segment(0xE0, b"JFIF\0 and more")
TABLES = segment(0xDB, b"t" * 65)


@pytest.mark.medium
@settings(max_examples=300)
@given(
    st.sampled_from(
        [
            png(3, 2, 8, 3, chunk(b"PLTE", b"rgb"), chunk(b"tRNS", b"a")),
            jpeg(APP, TABLES, frame(0xC0)),
            b"GIF89a\x07\0\x05\0" + b"\0" * 9,
            bmp(7, 5, 24),
        ]
    ),
    st.data(),
)
def test_damaged_headers_raise_nothing(whole: bytes, data: st.DataObject) -> None:
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            place = data.draw(st.integers(0, len(damaged) - 1))
            damaged[place] = data.draw(st.integers(0, 255))
    found = look_at_image(bytes(damaged))
    assert found is None or (found.height > 0 and found.width > 0)


@pytest.mark.slow
@pytest.mark.realdata
def test_headers_agree_with_tensorflow_on_real_images(realdata: Path) -> None:
    tf = pytest.importorskip("tensorflow")
    agreed = 0
    for path in sorted((realdata / "images-odd").rglob("*")):
        if not path.is_file() or path.stat().st_size > 20_000_000:
            continue
        data = path.read_bytes()
        found = look_at_image(data)
        try:
            decoded = tf.io.decode_image(data, dtype=tf.uint8).shape
        except tf.errors.InvalidArgumentError:
            continue  # what is damaged behind its header is not ours to tell
        if found is None:
            assert data.startswith(b"BM"), path
            continue
        assert tuple(decoded[-3:]) == (found.height, found.width, found.channels), path
        assert (len(decoded) == 4) == (found.format == "gif"), path
        agreed += 1
    assert agreed > 100

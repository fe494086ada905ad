"""All formats together: whatever the bytes, an answer or a `ImageError`, and nothing else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_support import bmp, gif, jpeg, png, webp

from tfrecreg.core.images.model import IMAGE_FORMATS, ImageError, ImageHeader
from tfrecreg.core.images.read import is_truncated, read_header
from tfrecreg.core.values.text import safe

MADE = [
    *(jpeg(marker=marker) for marker in (0xC0, 0xC2, 0xC3, 0xC9)),
    *(png(colour=colour) for colour in (0, 2, 3, 4, 6)),
    *(gif(frames=frames) for frames in (1, 3)),
    *(webp(kind=kind) for kind in ("VP8 ", "VP8L", "VP8X")),
    *(bmp(header=header) for header in (12, 40, 124)),
]


def header_of(data: bytes) -> ImageHeader | ImageError:
    try:
        return read_header(data)
    except ImageError as error:
        return error


def look(data: bytes) -> None:
    """What has to hold of any bytes."""
    cut = is_truncated(data)
    found = header_of(data)
    if isinstance(found, ImageError):
        assert found.detail == safe(found.detail, limit=200)
        assert found.detail == str(found)
        assert not cut
    else:
        assert found.format in IMAGE_FORMATS
        assert 1 <= found.height < 1 << 32
        assert 1 <= found.width < 1 << 32
        assert 1 <= found.channels <= 4
        assert 1 <= found.bits <= 16


def test_the_file_without_bytes_has_a_reason_of_its_own() -> None:
    with pytest.raises(ImageError) as caught:
        read_header(b"")
    assert caught.value.code == "SRC110"
    assert str(caught.value) == "the file has no bytes"


def test_what_is_no_image_is_named() -> None:
    with pytest.raises(ImageError, match="expected a JPEG, PNG, GIF, WebP or BMP, found a TIFF"):
        read_header(b"II*\0" + bytes(20))


@given(
    st.sampled_from(
        [b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"RIFF....WEBPVP8X", b"BM"]
    ),
    st.binary(max_size=300),
)
@settings(max_examples=300)
def test_any_bytes_with_or_without_a_magic_give_an_answer(magic: bytes, rest: bytes) -> None:
    look(magic + rest)


def test_every_cut_of_every_format_gives_an_answer() -> None:
    for whole in MADE:
        for end in range(len(whole)):
            look(whole[:end])


@pytest.mark.slow
def test_a_million_bytes_of_changes_give_answers() -> None:
    chance = random.Random(0)
    for _ in range(50_000):
        changed = bytearray(chance.choice(MADE))
        for _ in range(chance.randrange(1, 12)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        look(bytes(changed))

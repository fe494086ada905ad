from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.records.framing import (
    OVERHEAD,
    frame,
    masked_crc,
    unmask,
)

GOLDEN = {
    b"": ("000000000000000029039807", "d8ea82a2"),
    b"abc": ("0300000000000000b099490e", "6e57f121"),
    bytes(range(256)): ("00010000000000002fb308df", "60231ad3"),
}


def crc32c(data: bytes) -> int:
    """CRC-32C by the book, a bit at a time: the judge of the library and of us."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_crc_of_the_check_string_is_the_published_one() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert unmask(masked_crc(b"123456789")) == 0xE3069283


@pytest.mark.parametrize("payload", GOLDEN, ids=["empty", "abc", "all bytes"])
def test_frames_never_change(payload: bytes) -> None:
    header, footer = frame(payload)
    assert (header.hex(), footer.hex()) == GOLDEN[payload]
    assert len(header) + len(footer) == OVERHEAD


@given(st.binary(max_size=64))
def test_checksum_is_the_masked_one_of_the_book(data: bytes) -> None:
    crc = crc32c(data)
    rotated = (crc >> 15 | crc << 17) & 0xFFFFFFFF
    assert masked_crc(data) == (rotated + 0xA282EAD8) % 2**32

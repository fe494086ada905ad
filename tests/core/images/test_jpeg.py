from __future__ import annotations

import pytest
from image_support import jpeg, reason, segment

from tfrecreg.core.images.read import is_truncated, read_header


@pytest.mark.parametrize("marker", sorted(set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC} | {0xDE}))
@pytest.mark.parametrize(("bits", "channels"), [(8, 3), (12, 1), (16, 1), (8, 4)])
def test_every_kind_of_frame_says_its_size(marker: int, bits: int, channels: int) -> None:
    found = read_header(jpeg(640, 427, marker=marker, bits=bits, channels=channels))
    assert found == ("jpeg", 427, 640, channels, bits, False, 1)


def test_a_thumbnail_in_the_metadata_is_not_the_image() -> None:
    thumbnail = segment(0xE1, b"Exif\0\0" + jpeg(160, 120))
    assert read_header(jpeg(640, 427, before=thumbnail))[:3] == ("jpeg", 427, 640)


@pytest.mark.parametrize(
    "junk", [b"\0", b"junk", b"\xff\0", b"\xff\xff\xff", b"\xff\xd0", b"\xff\x01"]
)
def test_junk_and_filling_between_segments_is_passed_over(junk: bytes) -> None:
    assert read_header(jpeg(9, 8, before=junk))[:3] == ("jpeg", 8, 9)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xff\xd8\xff", "a JPEG that ends after 3 bytes, before its frame"),
        (jpeg()[:20], "a JPEG that ends after 20 bytes"),
        (jpeg()[:30], "a JPEG that ends after 30 bytes"),
        (
            b"\xff\xd8" + segment(0xDA, bytes(8)),
            "a JPEG without a frame header",
        ),
        (b"\xff\xd8\xff\xd9", "a JPEG without a frame header"),
        (
            b"\xff\xd8\xff\xe0\0\1",
            "a JPEG with a segment of length 1 at byte 2",
        ),
        (
            b"\xff\xd8\xff\xc0\0\7" + bytes(20),
            "a JPEG whose frame header has undefined values",
        ),
        (jpeg(channels=5), "a JPEG whose frame header has undefined values"),
        (jpeg(channels=0), "a JPEG whose frame header has undefined values"),
        (jpeg(bits=1), "a JPEG whose frame header has undefined values"),
        (jpeg(bits=17), "a JPEG whose frame header has undefined values"),
        (jpeg(width=0), "the header states a size of 0 × 2 pixels"),
        (jpeg(height=0), "the header states a size of 3 × 0 pixels"),
        (jpeg(marker=0xF7), "a JPEG without a frame header"),
    ],
)
def test_a_header_that_says_nothing_sound_is_refused(data: bytes, expected: str) -> None:
    assert reason(data).startswith(expected)


def test_an_image_is_whole_to_its_end_marker() -> None:
    assert not is_truncated(jpeg())
    assert not is_truncated(jpeg(end=b"\xff\xd9trailing bytes of a camera"))
    assert is_truncated(jpeg(end=b""))
    assert is_truncated(jpeg(end=b"\xff"))
    with_thumbnail = jpeg(before=segment(0xE1, b"Exif\0\0" + jpeg()), end=b"")
    assert is_truncated(with_thumbnail)
    assert is_truncated(with_thumbnail[: with_thumbnail.rindex(b"\xff\xda")])


def test_every_cut_in_the_pixels_is_seen() -> None:
    whole = jpeg(scan=bytes(100))
    start = len(whole) - 102
    assert all(is_truncated(whole[:end]) for end in range(start, len(whole)))

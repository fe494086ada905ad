from __future__ import annotations

import pytest
from image_support import bmp, reason

from tfrecreg.core.images.read import is_truncated, read_header

HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("depth", [1, 4, 8, 24, 32])
def test_every_header_says_its_size(header: int, depth: int) -> None:
    found = read_header(bmp(31, 17, header=header, depth=depth))
    assert found == ("bmp", 17, 31, 4 if depth == 32 else 3, 8, False, 1)


@pytest.mark.parametrize("header", HEADERS)
def test_a_cut_in_the_header_is_seen(header: int) -> None:
    whole = bmp(header=header)
    read_header(whole[: 14 + min(header, 40)])
    for end in range(18, 14 + min(header, 40)):
        assert reason(whole[:end]) == f"a BMP that ends after {end} bytes, inside its header"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bmp(depth=3), "a BMP 3 pixels wide, of 3 bits a pixel and compression 0"),
        (bmp(compression=7), "a BMP 3 pixels wide, of 24 bits a pixel and compression 7"),
        (
            bmp()[:18] + b"\xff\xff\xff\xff" + bmp()[22:],
            "a BMP -1 pixels wide, of 24 bits a pixel and compression 0",
        ),
        (bmp(0, 5), "the header states a size of 0 × 5 pixels"),
        (bmp(5, 0), "the header states a size of 5 × 0 pixels"),
    ],
)
def test_a_header_that_says_nothing_sound_is_refused(data: bytes, expected: str) -> None:
    assert reason(data) == expected


@pytest.mark.parametrize("height", [5, -5])
@pytest.mark.parametrize("depth", [1, 8, 24])
def test_an_image_is_whole_where_all_rows_are_there(height: int, depth: int) -> None:
    whole = bmp(7, height, depth=depth)
    assert not is_truncated(whole)
    assert is_truncated(whole[:-1])


def test_packed_rows_are_whole_where_all_announced_bytes_are_there() -> None:
    packed = bmp(7, 5, depth=8, compression=1)
    assert not is_truncated(packed)
    assert is_truncated(packed[:-1])

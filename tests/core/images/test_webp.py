from __future__ import annotations

import pytest
from image_support import reason, webp

from tfrecreg.core.images.read import is_truncated, read_header


@pytest.mark.parametrize("kind", ["VP8 ", "VP8L", "VP8X"])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (3, 2), (640, 427), (16383, 16383)])
def test_all_three_kinds_say_their_size(kind: str, width: int, height: int) -> None:
    found = read_header(webp(width, height, kind=kind))
    assert found == ("webp", height, width, 3, 8, False, 1)


@pytest.mark.parametrize("kind", ["VP8L", "VP8X"])
def test_alpha_is_a_fourth_channel(kind: str) -> None:
    assert read_header(webp(kind=kind, alpha=True)).channels == 4


def test_an_animation_says_so() -> None:
    assert read_header(webp(kind="VP8X", moves=True)).animated


@pytest.mark.parametrize(("kind", "needed"), [("VP8 ", 30), ("VP8L", 25), ("VP8X", 30)])
def test_a_cut_in_the_header_is_seen(kind: str, needed: int) -> None:
    whole = webp(kind=kind)
    read_header(whole[:needed])
    for end in range(12, needed):
        assert "bytes, inside its header" in reason(whole[:end])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (webp(kind="VP8 ").replace(b"\x9d\x01\x2a", b"\x9d\x01\x2b"), "a key frame"),
        (webp(kind="VP8 ").replace(b"\x10\0\0\x9d", b"\x11\0\0\x9d"), "a key frame"),
        (webp(kind="VP8L").replace(b"\x2f", b"\x2e"), "a wrong signature"),
        (webp(1 << 24, 1 << 24, kind="VP8X"), "a canvas of 16777216 × 16777216"),
        (webp().replace(b"VP8 ", b"ALPH"), "of no known kind"),
    ],
)
def test_a_header_that_says_nothing_sound_is_refused(data: bytes, words: str) -> None:
    assert words in reason(data)


def test_an_image_is_whole_where_all_announced_bytes_are_there() -> None:
    whole = webp()
    assert not is_truncated(whole)
    assert not is_truncated(whole + b"more")
    assert is_truncated(whole[:-1])

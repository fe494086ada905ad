from __future__ import annotations

import io

import pytest
from image_support import gif, reason

from tfrecreg.core.images.read import is_truncated, read_header


@pytest.mark.parametrize(("frames", "animated"), [(0, False), (1, False), (2, True), (5, True)])
def test_the_screen_is_the_size_and_a_second_frame_the_animation(
    frames: int, animated: bool
) -> None:
    assert read_header(gif(320, 240, frames=frames)) == ("gif", 240, 320, 3, 8, animated, 1)


@pytest.mark.parametrize("end", range(6, 13))
def test_a_cut_in_the_screen_descriptor_is_seen(end: int) -> None:
    assert reason(gif()[:end]) == f"a GIF that ends after {end} bytes, inside its header"


def test_a_screen_without_pixels_is_refused() -> None:
    assert reason(gif(0, 32)) == "the header states a size of 0 × 32 pixels"
    assert reason(gif(32, 0)) == "the header states a size of 32 × 0 pixels"


def test_an_image_is_whole_to_its_trailer() -> None:
    whole = gif(frames=2)
    assert not is_truncated(whole)
    assert not is_truncated(whole + b"more")
    assert all(is_truncated(whole[:end]) for end in range(13, len(whole)))


@pytest.mark.parametrize("broken", [b"\0;", b"\x99\x01\x02\0;", b"\x99\x01\x02"])
def test_what_is_no_block_behind_a_whole_frame_is_no_cut(broken: bytes) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    made = io.BytesIO()
    image.linear_gradient("L").resize((9, 7)).save(made, "GIF")
    data = made.getvalue().removesuffix(b";") + broken
    with image.open(io.BytesIO(data)) as opened:
        assert opened.convert("RGB").size == (9, 7)
    assert not is_truncated(data)
    tf = pytest.importorskip("tensorflow", "2.16")  # earlier ones refuse what follows the frame
    assert tf.io.decode_image(data, expand_animations=False).shape == (7, 9, 3)

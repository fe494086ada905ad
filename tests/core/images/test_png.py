from __future__ import annotations

import struct

import pytest
from image_support import chunk, png, reason

from tfrecreg.core.images.read import is_truncated, read_header

LEGAL = [(0, d) for d in (1, 2, 4, 8, 16)] + [(3, d) for d in (1, 2, 4, 8)]
LEGAL += [(c, d) for c in (2, 4, 6) for d in (8, 16)]
CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}


def with_header(*values: int) -> bytes:
    whole = png()
    return whole[:8] + chunk(b"IHDR", struct.pack(">IIBBBBB", *values)) + whole[33:]


@pytest.mark.parametrize(("colour", "depth"), LEGAL)
def test_every_legal_kind_is_read(colour: int, depth: int) -> None:
    found = read_header(png(31, 17, colour=colour, depth=depth))
    bits = 8 if colour == 3 else depth
    assert found == ("png", 17, 31, CHANNELS[colour], bits, False, 1)


@pytest.mark.parametrize("bit", range(13 * 8))
def test_any_flipped_bit_of_the_header_is_seen(bit: int) -> None:
    data = bytearray(png())
    data[16 + bit // 8] ^= 1 << bit % 8
    assert reason(bytes(data)) == "a PNG whose header has a wrong CRC"


@pytest.mark.parametrize(
    "values",
    [
        (3, 2, 8, 2, 1, 0, 0),
        (3, 2, 8, 2, 0, 1, 0),
        (3, 2, 8, 2, 0, 0, 2),
        (1 << 31, 2, 8, 2, 0, 0, 0),
    ],
)
def test_values_that_do_not_exist_are_refused(values: tuple[int, ...]) -> None:
    assert reason(with_header(*values)) == "a PNG whose header has undefined values"


def test_interlaced_images_are_read() -> None:
    assert read_header(with_header(3, 2, 8, 2, 0, 0, 1))[:3] == ("png", 2, 3)


@pytest.mark.parametrize("end", range(8, 33))
def test_a_cut_in_the_header_is_seen(end: int) -> None:
    assert reason(png()[:end]) == f"a PNG that ends after {end} bytes, inside its header"


def test_another_first_chunk_is_refused() -> None:
    whole = png()
    found = reason(whole[:8] + chunk(b"tEXt", b"x" * 13) + whole[8:])
    assert found == "a PNG that does not begin with the chunk IHDR"


@pytest.mark.parametrize(("frames", "animated"), [(1, False), (2, True), (40, True)])
def test_an_animation_is_announced_before_the_pixels(frames: int, animated: bool) -> None:
    control = chunk(b"acTL", struct.pack(">II", frames, 0))
    assert read_header(png(before=[control])).animated is animated


def test_what_comes_after_the_pixels_makes_no_animation() -> None:
    late = chunk(b"acTL", struct.pack(">II", 9, 0)) + chunk(b"IEND", b"")
    assert not read_header(png(end=late)).animated


def test_an_image_is_whole_to_its_last_chunk() -> None:
    whole = png(30, 20)
    assert not is_truncated(whole)
    assert not is_truncated(whole + b"whatever follows")
    assert all(is_truncated(whole[:end]) for end in range(33, len(whole)))

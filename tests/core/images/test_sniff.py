from __future__ import annotations

import pytest
from image_support import bmp, gif, jpeg, png, webp

from tfrecreg.core.images.model import IMAGE_FORMATS
from tfrecreg.core.images.read import guess, sniff

MADE = {"bmp": bmp(), "gif": gif(), "jpeg": jpeg(), "png": png(), "webp": webp()}


@pytest.mark.parametrize("name", IMAGE_FORMATS)
def test_a_format_is_told_by_its_first_bytes(name: str) -> None:
    assert sniff(MADE[name]) == name
    assert sniff(MADE[name][:18]) == name


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"\xff\xd8\xff\xdb", "jpeg"),
        (b"GIF89a", "gif"),
        (b"GIF87a", "gif"),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 ", "webp"),
        (b"BM\x46\x00\x00\x00" + bytes(8) + b"\x28\0\0\0", "bmp"),
        (b"BM\x46\x00\x00\x00" + bytes(8) + b"\x29\0\0\0", None),
        (b"BMW is a maker of motor cars", None),
        (b"BM", None),
        (b"RIFF\x10\x00\x00\x00WAVE", None),
        (b"GIF88a", None),
        (b"\xff\xd8", None),
        (b"\x89PNG\n\x1a\n", None),
        (b"", None),
    ],
)
def test_so_little_is_enough_and_so_little_is_not(data: bytes, name: str | None) -> None:
    assert sniff(data) == name


@pytest.mark.parametrize("name", IMAGE_FORMATS)
def test_no_format_is_known_by_a_part_of_its_magic(name: str) -> None:
    magic = {"bmp": 18, "gif": 6, "jpeg": 3, "png": 8, "webp": 12}[name]
    assert sniff(MADE[name][:magic]) == name
    assert [sniff(MADE[name][:end]) for end in range(magic)] == [None] * magic


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"II*\0....", "a TIFF"),
        (b"MM\0*....", "a TIFF"),
        (b"P6\n3 2\n255\n", "a PPM"),
        (b"P5 3 2", "a PGM"),
        (b"P61 is not", "text"),
        (b"\x89PNG\n\x1a\n", "a PNG whose signature a transfer as text has damaged"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of git-lfs"),
        (b"<!DOCTYPE html>", "an HTML page"),
        (b"\0\0\0\x1cftypavif", "an AVIF"),
        (b"\0\0\0\x1cftypheic", "a HEIC"),
        (b"\0\0\0\x1cftypisom", "an MP4"),
        (bytes(100), "zeros"),
        (b"some words\r\n", "text"),
        (b"\x01\x02\x03", "the bytes 01 02 03"),
    ],
)
def test_what_is_no_image_is_called_by_its_name(data: bytes, words: str) -> None:
    assert sniff(data) is None
    assert guess(data).startswith(words)

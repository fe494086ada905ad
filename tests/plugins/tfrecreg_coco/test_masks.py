"""Masks in each form: equal to what pycocotools makes, and bounded whatever is asked of them."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tfrecreg.core.build.sources.object_source import BadAnnotation
from tfrecreg.core.images.read import read_header
from tfrecreg_coco.source import Masks, decode_rle, encode_mask

pycoco = pytest.importorskip("pycocotools.mask", reason="the extra `coco` is not installed")


SQUARE = [10.0, 10.0, 30.0, 10.0, 30.0, 30.0, 10.0, 30.0]
TRIANGLE = [50.0, 40.0, 90.0, 40.0, 70.0, 70.0]
COUNTS = [80 * 10 + 5, 20, 60, 20, 80 * 100 - (80 * 10 + 105)]
TEXT = pycoco.frPyObjects({"size": [80, 100], "counts": COUNTS}, 80, 100)["counts"]


def added(form: Any, *segmentations: Any, sizes: Any = ((100, 80),)) -> tuple[dict, list]:
    """The values of the features, and what was said of each object; images are 100 × 80."""
    masks = Masks(form, *sizes)
    said = [masks.add(msgspec.Raw(json.dumps(each).encode())) for each in segmentations]
    return {name: feature.values for name, feature in masks.features().items()}, said


def drawn(segmentation: Any) -> np.ndarray:
    runs = pycoco.frPyObjects(segmentation, 80, 100)
    return pycoco.decode(pycoco.merge(runs) if isinstance(runs, list) else runs)


def pixels(data: bytes) -> np.ndarray:
    image = pytest.importorskip("PIL.Image")
    return np.asarray(image.open(io.BytesIO(data))).astype(np.uint8)


SEGMENTATIONS = [
    [SQUARE],
    [SQUARE, TRIANGLE],
    {"size": [80, 100], "counts": COUNTS},
    {"size": [80, 100], "counts": TEXT.decode()},
]


def test_png_and_rle_are_what_pycocotools_draws() -> None:
    pngs, said = added("png", *SEGMENTATIONS)
    runs, _ = added("rle", *SEGMENTATIONS)
    assert said == [""] * 4
    assert runs["image/object/rle/size"] == (80, 100) * 4
    for number, segmentation in enumerate(SEGMENTATIONS):
        plain = segmentation
        if isinstance(plain, dict):
            plain = {"size": [80, 100], "counts": COUNTS}
        expected = drawn(plain)
        assert expected.any()
        assert np.array_equal(pixels(pngs["image/object/mask"][number]), expected)
        text = {"size": [80, 100], "counts": runs["image/object/rle/counts"][number]}
        assert np.array_equal(pycoco.decode(text), expected)


def test_polygons_are_parts_of_the_sides_and_can_be_told_apart() -> None:
    found, said = added("polygons", [SQUARE, TRIANGLE], [TRIANGLE])
    assert said == ["", ""]
    assert found["image/object/polygon/parts"] == (2, 1)
    assert found["image/object/polygon/points"] == (4, 3, 3)
    assert found["image/object/polygon/x"] == pytest.approx(
        [0.1, 0.3, 0.3, 0.1, 0.5, 0.9, 0.7, 0.5, 0.9, 0.7]
    )
    assert found["image/object/polygon/y"][:4] == pytest.approx([0.125, 0.125, 0.375, 0.375])


BAD = [
    ([], "there is none"),
    (None, "neither polygons nor run lengths"),
    ("text", "neither polygons nor run lengths"),
    (SQUARE, "neither polygons nor run lengths"),
    ({"size": [80, 100]}, "neither polygons nor run lengths"),
    ({"size": [80, 100], "counts": [1.5]}, "neither polygons nor run lengths"),
    ([[1, 2, 3, 4]], "a polygon has 4 numbers"),
    ([[1, 2, 3, 4, 5, 6, 7]], "a polygon has 7 numbers"),
    ([[1, 2, 3, 4, 5, 1e9]], "far outside"),
    ([[-1e300, 2, 3, 4, 5, 6]], "far outside"),
    ({"size": [100, 80], "counts": COUNTS}, "it is for 80 × 100 pixels, expected 100 × 80"),
    ({"size": [1 << 20, 1 << 20], "counts": [1 << 40]}, "expected 100 × 80"),
    ({"size": [80, 100], "counts": [5]}, "its runs have 5 pixels, expected 8000"),
    ({"size": [80, 100], "counts": [1 << 40]}, "expected 8000"),
    ({"size": [80, 100], "counts": [8001, -1]}, "expected 8000"),
    ({"size": [80, 100], "counts": "0000"}, "its runs have 0 pixels, expected 8000"),
    ({"size": [80, 100], "counts": "o" * 100}, "its counts are not run lengths"),
    ({"size": [80, 100], "counts": "é"}, "its counts are not run lengths"),
]


@pytest.mark.parametrize(("segmentation", "says"), BAD)
@pytest.mark.parametrize("form", ["polygons", "rle", "png"])
def test_what_cannot_be_used_is_an_empty_mask_and_said(form: Any, segmentation, says) -> None:
    found, said = added(form, [SQUARE], segmentation, [TRIANGLE])
    if form == "polygons" and says.startswith(("it is for", "expected", "its ")):
        says = "it consists of run lengths, which cannot become polygons"
    assert said[0] == said[2] == ""
    assert said[1].startswith("is left empty: ")
    assert says in said[1]
    if form == "polygons":
        assert found["image/object/polygon/parts"] == (1, 0, 1)
    elif form == "rle":
        counts = found["image/object/rle/counts"]
        assert len(counts) == 3
        assert not pycoco.decode({"size": [80, 100], "counts": counts[1]}).any()
    else:
        assert [pixels(each).any() for each in found["image/object/mask"]] == [True, False, True]


def test_a_part_that_cannot_be_used_leaves_the_others() -> None:
    for form in ("polygons", "rle", "png"):
        found, said = added(form, [SQUARE, [1, 2, 3, 4], TRIANGLE])
        assert said == ["lacks a part: a polygon has 4 numbers, expected 6, 8, 10 …"]
        if form == "polygons":
            assert found["image/object/polygon/parts"] == (2,)
        if form == "png":
            assert np.array_equal(pixels(found["image/object/mask"][0]), drawn([SQUARE, TRIANGLE]))


NUMBER = rb"[P-o]{0,6}[0-O]"
"""A run in text form: up to six digits after which more follow, and the last one."""


def plain_rle(text: bytes) -> list[int] | None:
    """The run lengths of a text form, by its definition; None for other text."""
    if not re.fullmatch(rb"(%b)*" % NUMBER, text):
        return None
    counts: list[int] = []
    for digits in re.findall(NUMBER, text):
        bits = "".join(f"{(byte - 48) % 32:05b}" for byte in reversed(digits))
        value = int(bits, 2) - (int(bits[0]) << len(bits))  # two's complement
        counts.append(value + counts[-2] if len(counts) > 2 else value)
    return counts


def read_rle(text: bytes) -> list[int] | None:
    try:
        return decode_rle(text)
    except BadAnnotation:
        return None


@given(st.binary(max_size=30) | st.text("0?@OPlo", max_size=30).map(str.encode))
@example(b"o" * 6 + b"O")
@example(b"o" * 7 + b"O")
def test_any_bytes_are_read_as_the_form_defines_them(text: bytes) -> None:
    assert read_rle(text) == plain_rle(text)


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 8), (2, 9), (40, 33)])
def test_a_mask_is_what_others_decode(shape) -> None:
    image = pytest.importorskip("PIL.Image")
    mask = (np.random.default_rng(1).random(shape) < 0.5).astype(np.uint8)
    data = encode_mask(np.asfortranarray(mask))
    assert data == encode_mask(mask)
    assert np.array_equal(np.asarray(image.open(io.BytesIO(data))), mask.astype(bool))
    header = read_header(data)
    assert (header.height, header.width, header.channels, header.bits) == (*shape, 1, 1)


def test_run_lengths_may_have_the_size_of_the_header() -> None:
    turned = {"size": [100, 80], "counts": [8000]}
    found, said = added("rle", turned, sizes=((100, 80), (80, 100)))
    assert said == [""]
    assert found["image/object/rle/size"] == (100, 80)

"""Boxes: parts of the image, clipped by little, and refused where nothing can be made of them."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tfrecreg.core.build.sources.object_source import (
    BadAnnotation,
    ImageRemarks,
    ImageView,
    ObjectOptions,
    class_summary,
)
from tfrecreg.core.build.sources.shapes import Boxes, ObjectLabel, fit_box, unclipped_box
from tfrecreg.core.images.model import ImageHeader

HEADER = ImageHeader("png", height=80, width=100, channels=3, bits=8, animated=False)


def view_of(options: ObjectOptions) -> ImageView:
    return ImageView("a.png", ((100, 80), (100, 80)), options, ImageRemarks())


@pytest.mark.parametrize(
    ("bbox", "expected"),
    [
        ((-0.5, 0, 50, 80), (0, 0, 0.495, 1)),
        ((0, -1, 100, 41), (0, 0, 1, 0.5)),
        ((60, 0, 40.01, 80), (0.6, 0, 1, 1)),
        ((0, 40, 100, 41), (0, 0.5, 1, 1)),
        ((-1, -1, 102, 82), (0, 0, 1, 1)),
    ],
)
def test_what_sticks_out_a_little_is_cut_off_and_said(bbox, expected) -> None:
    box = fit_box(bbox, 100, 80, 1)
    assert box[:4] == pytest.approx(expected)
    assert box.clipped


numbers = st.floats(width=64) | st.floats(-200, 200)


def fits(bbox: list[float], width: int, height: int, clip: int) -> bool:
    """Whether a box has an area in an image, and sticks out of it by `clip` pixels at most."""
    if len(bbox) != 4 or not all(map(math.isfinite, bbox)):
        return False
    return all(
        -clip <= low < high <= side + clip
        and np.float32(max(low, 0) / side) < np.float32(min(high, side) / side)
        for low, high, side in (
            (bbox[0], bbox[0] + bbox[2], width),
            (bbox[1], bbox[1] + bbox[3], height),
        )
    )


sides = st.integers(1, 200) | st.integers(1, 1 << 16)


@pytest.mark.medium
@given(
    st.lists(numbers, max_size=5)
    | st.tuples(*[st.floats(-2, 150)] * 2, *[st.floats(-1, 160)] * 2).map(list),
    sides,
    sides,
)
@settings(max_examples=300)
def test_what_is_written_is_from_0_to_1_and_has_an_area(bbox, width, height) -> None:
    if not fits(bbox, width, height, 1):
        with pytest.raises(BadAnnotation):
            fit_box(bbox, width, height, 1)
        return
    box = fit_box(bbox, width, height, 1)
    for low, high in ((box.xmin, box.xmax), (box.ymin, box.ymax)):
        assert 0 <= low < high <= 1
    packed = struct.unpack("<4f", struct.pack("<4f", *box[:4]))
    assert all(0 <= value <= 1 for value in packed)


def test_a_box_that_is_kept_is_as_it_was() -> None:
    assert unclipped_box([50, -8, 100, 0], 100, 80) == (0.5, -0.1, 1.5, -0.1, False)
    assert unclipped_box([1, 2, 3], 100, 80) is None
    assert unclipped_box(None, 100, 80) is None
    left, right = (unclipped_box([0, 0, wide, 1], 1, 1) for wide in (1e300, -1e300))
    assert (left.xmax, right.xmax) == (math.inf, -math.inf)


NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1e-5, 0.3, 79.9, 80.0, 99.9, 100.0, 101.0, math.nan, math.inf]),
    st.floats(-10, 120),
)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 2), NUMBERS, NUMBERS, NUMBERS, NUMBERS), max_size=4))
@example([(0, 10.0, 10.0, 0.0, 5.0)])
@example([(0, 10.0, 10.0, 5.0, 0.0)])
@example([(1, 90.0, 10.0, 1e-9, 5.0)])
def test_usable_boxes_are_added_at_once_as_one_by_one(found: list[Any]) -> None:
    labels = {0: ObjectLabel(0, b"cat", 1), 1: ObjectLabel(200, b"d" * 200, 0)}
    options = ObjectOptions(dangling="drop")
    views = [view_of(options) for _ in range(2)]
    slow, fast = Boxes(labels, views[0]), Boxes(labels, views[1])
    added = [slow.add("one", category, bbox) for category, *bbox in found]
    if fast.add_usable(found):
        assert all(added)
        assert views[0].remarks.remarks("train", "a.png") == []
        assert fast.features() == slow.features()
        assert fast.things() == slow.things()
    else:
        assert len(fast) == 0
        assert not all(added) or views[0].remarks.remarks("train", "a.png") or _is_tiny(found)


def _is_tiny(found: list[Any]) -> bool:
    return any(width <= 1e-4 or height <= 8e-5 for _, _, _, width, height in found)


def test_boxes_inside_are_usable_and_others_are_not() -> None:
    view = view_of(ObjectOptions())
    boxes = Boxes({5: ObjectLabel(0, b"cat")}, view)
    assert not boxes.add_usable([(5, 0, 0, 100, 80), (5, 0, 0, 101, 80)])
    assert not boxes.add_usable([(5, 0, 0, 100, 80), (4, 0, 0, 100, 80)])
    assert len(boxes) == 0
    assert boxes.add_usable([(5, 0, 0, 100, 80), (5, 1, 2, 3, 4)])
    assert boxes.features()["image/object/area"].values == (8000.0, 12.0)


def test_five_classes_are_named_and_the_others_counted() -> None:
    assert class_summary("abcde") == "5 (a, b, c, d, e)"
    assert class_summary("abcdefg") == "7 (a, b, c, d, e and 2 more)"

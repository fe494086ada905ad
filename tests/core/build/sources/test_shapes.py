"""Keypoints and polygons of objects."""

from __future__ import annotations

import math

import pytest

from tfrecreg.core.build.sources.object_options import BadAnnotation
from tfrecreg.core.build.sources.shapes import Keypoints


def feature(points: Keypoints, name: str) -> list[float]:
    return list(points.features()[f"image/object/keypoint/{name}"].values)


def test_keypoints_are_parts_of_the_sides_and_as_many_an_object() -> None:
    points = Keypoints(2, 100, 80)
    points.add()
    points.add()
    points.set(1, [50, 40, 2, 0, 0, 0])
    assert feature(points, "x") == [0, 0, 0.5, 0]
    assert feature(points, "y") == [0, 0, 0.5, 0]
    assert feature(points, "visibility") == [0, 0, 2, 0]
    assert feature(points, "num") == [0, 1]


def test_an_object_with_fewer_keypoints_is_filled_up() -> None:
    points = Keypoints(3, 100, 80)
    points.add()
    points.set(0, [100, 80, 1])
    assert feature(points, "x") == [1, 0, 0]
    assert feature(points, "num") == [1]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1, 2], "2 numbers, expected 3 for each of 2"),
        ([1, 2, 1] * 3, "9 numbers, expected 3 for each of 2"),
        ([math.nan, 2, 1], "not finite"),
        ([1e300, 2, 1], "not finite"),
        ([1, 2, 3], "a visibility is not 0, 1 or 2"),
        ([1, 2, 0.5], "a visibility is not 0, 1 or 2"),
    ],
)
def test_bad_keypoints_leave_the_object_without(values, says) -> None:
    points = Keypoints(2, 100, 80)
    points.add()
    with pytest.raises(BadAnnotation, match=says):
        points.set(0, values)
    assert (feature(points, "x"), feature(points, "visibility"), feature(points, "num")) == (
        [0, 0],
        [0, 0],
        [0],
    )

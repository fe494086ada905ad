"""Keypoints and polygons of objects, as records have them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from tfrecreg.core.build.sources.objects.view import BadAnnotation
from tfrecreg.core.example.features import float_feature, int64_feature
from tfrecreg.core.example.model import Example

_LARGEST_KEYPOINT = 1e30


def box_around(polygons: Iterable[Sequence[float]]) -> tuple[float, float, float, float]:
    """Left, top, width and height of the box around polygons, whose x and y are in turn; NaN where
    a point is not finite.
    """
    points = [value for polygon in polygons for value in polygon]
    if not math.isfinite(sum(points)):
        return math.nan, math.nan, math.nan, math.nan
    xs, ys = points[::2], points[1::2]
    left, top = min(xs), min(ys)
    return left, top, max(xs) - left, max(ys) - top


class Keypoints:
    """The keypoints of the objects of one image of `width` × `height` pixels, `count` for each."""

    def __init__(self, count: int, width: int, height: int) -> None:
        self._count = count
        self._width = width
        self._height = height
        self._x: list[float] = []
        self._y: list[float] = []
        self._visibility: list[int] = []
        self._labelled: list[int] = []

    def add(self) -> None:
        """Another object, without keypoints: zeros, not labeled."""
        self._x += [0.0] * self._count
        self._y += [0.0] * self._count
        self._visibility += [0] * self._count
        self._labelled.append(0)

    def set(self, number: int, values: Sequence[float]) -> None:
        """Set the keypoints of the object `number`: x, y and visibility of each in turn.

        Raises:
            BadAnnotation: they are not such triples; the object stays without.
        """
        x, y, visibility = values[::3], values[1::3], values[2::3]
        if len(values) != 3 * len(x) or len(x) > self._count:
            raise BadAnnotation(f"{len(values)} numbers, expected 3 for each of {self._count}")
        if (
            not all(map(math.isfinite, values))
            or max(map(abs, values), default=0) > _LARGEST_KEYPOINT
        ):
            raise BadAnnotation("they are not finite")
        if not {0, 1, 2}.issuperset(visibility):
            raise BadAnnotation("a visibility is not 0, 1 or 2")
        begin = number * self._count
        end = begin + len(x)
        self._x[begin:end] = [value / self._width for value in x]
        self._y[begin:end] = [value / self._height for value in y]
        self._visibility[begin:end] = [int(value) for value in visibility]
        self._labelled[number] = sum(value > 0 for value in visibility)

    def features(self) -> Example:
        """Coordinates and visibility of each keypoint; the number of labeled ones per object."""
        return {
            "image/object/keypoint/x": float_feature(self._x),
            "image/object/keypoint/y": float_feature(self._y),
            "image/object/keypoint/visibility": int64_feature(self._visibility),
            "image/object/keypoint/num": int64_feature(self._labelled),
        }


class Polygons:
    """The polygons of the objects of one image of `width` × `height` pixels."""

    def __init__(self, width: int, height: int) -> None:
        self._sides = width, height
        self._x: list[float] = []
        self._y: list[float] = []
        self._points: list[int] = []
        self._parts: list[int] = []

    def add(self, polygons: Sequence[Sequence[float]]) -> None:
        """Another object, with the polygons that :meth:`usable` left, or none."""
        width, height = self._sides
        for polygon in polygons:
            self._x += [value / width for value in polygon[::2]]
            self._y += [value / height for value in polygon[1::2]]
            self._points.append(len(polygon) // 2)
        self._parts.append(len(polygons))

    def usable(self, polygons: Sequence[list[float]]) -> tuple[list[list[float]], str]:
        """Those of `polygons` (x and y in turn) that can be used, and why the first of the others
        cannot.

        Raises:
            BadAnnotation: there are none.
        """
        problems = [self._problem(polygon) for polygon in polygons]
        problem = next(filter(None, problems), "")
        kept = [polygon for polygon, bad in zip(polygons, problems, strict=True) if not bad]
        if not kept:
            raise BadAnnotation(problem)
        return kept, problem

    def features(self) -> Example:
        """Coordinates of the points; points of each polygon; polygons of each object."""
        return {
            "image/object/polygon/x": float_feature(self._x),
            "image/object/polygon/y": float_feature(self._y),
            "image/object/polygon/points": int64_feature(self._points),
            "image/object/polygon/parts": int64_feature(self._parts),
        }

    def _problem(self, polygon: list[float]) -> str:
        """Why a polygon cannot be used; empty where it can."""
        if len(polygon) < 6 or len(polygon) % 2:
            return f"a polygon has {len(polygon)} numbers, expected 6, 8, 10 …"
        # Drawing a polygon takes memory by its length: parts far outside are not drawn.
        for values, side in zip((polygon[::2], polygon[1::2]), self._sides, strict=True):
            if min(values) < -side or max(values) > 2 * side:
                return "a polygon lies far outside of the picture"
        return ""

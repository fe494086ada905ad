"""Boxes with their labels and areas, as records have them.

Keypoints and polygons of objects, as records have them.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from tfrecreg.core.build.sources.object_options import BadAnnotation, ImageView, SkipImage
from tfrecreg.core.example.model import Example, Feature
from tfrecreg.core.example.values import bytes_feature, float_feature, float_features, int64_feature
from tfrecreg.core.values.errors import RawDataError
from tfrecreg.core.values.text import safe

_INVISIBLE = 1e-7
"""Share of a side: float32 cannot distinguish a smaller distance from the border."""
_TINY = 1e-6
"""Share of a side: sides that are farther apart differ as float32, whose steps below 1 are 6e-8."""
_LARGEST = 3.4e38
"""Largest coordinate and area: about the largest float32."""
_SIDES = struct.Struct("<4f")
_FLOATS = ("bbox/xmin", "bbox/ymin", "bbox/xmax", "bbox/ymax", "area")
_NAMES = (*_FLOATS, "class/label", "class/text", "is_crowd")
"""The features of boxes, under the prefix of objects or of panoptic segments."""


class Box(NamedTuple):
    """A box as it is written: shares of the image's sides from the top left, 0 to 1."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float
    clipped: bool = False
    """Whether it was clipped by a visible amount."""


def fit_box(bbox: Sequence[float] | None, width: int, height: int, clip: float) -> Box:
    """The box of an annotation as shares of its image's sides."""
    if bbox is None or len(bbox) != 4:
        raise BadAnnotation(
            "has no box" if not bbox else f"has a box of {len(bbox)} numbers, not 4"
        )
    left, top, across, down = bbox
    right, bottom = left + across, top + down
    if left >= 0 and top >= 0 and across > 0 and down > 0 and right <= width and bottom <= height:
        box = Box(left / width, top / height, right / width, bottom / height)
        if (across > _TINY * width and down > _TINY * height) or _has_area(box):
            return box
    shown = "has the box [" + ", ".join(f"{value:.10g}" for value in bbox) + "]"
    if not all(map(math.isfinite, (left, top, right, bottom))):
        raise BadAnnotation(f"{shown}, which is not finite")
    if across <= 0 or down <= 0:
        raise BadAnnotation(f"{shown}, which has no area")
    if right <= 0 or bottom <= 0 or left >= width or top >= height:
        raise BadAnnotation(f"{shown}, outside of the {width} × {height} pixels")
    out = max(-left, -top, right - width, bottom - height)
    if out > clip:
        raise BadAnnotation(
            f"{shown}, which sticks out of the {width} × {height} pixels by {out:.6g}"
        )
    box = Box(
        max(left, 0.0) / width,
        max(top, 0.0) / height,
        min(right, width) / width,
        min(bottom, height) / height,
        clipped=max(-left, right - width) > _INVISIBLE * width
        or max(-top, bottom - height) > _INVISIBLE * height,
    )
    if not _has_area(box):
        raise BadAnnotation(f"{shown}, which has no area as float32")
    return box


def _has_area(box: Box) -> bool:
    """Whether a box in the image has an area as it is written."""
    xmin, ymin, xmax, ymax = _SIDES.unpack(_SIDES.pack(*box[:4]))
    return bool(xmin < xmax and ymin < ymax)


def unclipped_box(bbox: Sequence[float] | None, width: int, height: int) -> Box | None:
    """A bad box as it is, too large numbers as infinite; None where it is not four numbers."""
    if bbox is None or len(bbox) != 4:
        return None
    left, top, across, down = bbox
    shares = (left / width, top / height, (left + across) / width, (top + down) / height)
    xmin, ymin, xmax, ymax = (
        math.copysign(math.inf, each) if abs(each) > _LARGEST else each for each in shares
    )
    return Box(xmin, ymin, xmax, ymax)


class ObjectLabel(NamedTuple):
    """A class of objects as it is written."""

    label: int
    name: bytes
    """UTF-8."""
    thing: int | None = None
    """1 for things, 0 for stuff; None where not all categories say."""


class Boxes:
    """Boxes with label and area, of the objects of one image.

    Args:
        labels: the labels of the classes, by whatever annotations name a class by.
        view: the image.
    """

    def __init__(self, labels: Mapping[Any, ObjectLabel], view: ImageView) -> None:
        self._labels = labels
        self._view = view
        self._rows: list[tuple[Any, ...]] = []  # of the values of _NAMES
        self._things: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self,
        name: str,
        category: Any,
        bbox: Sequence[float] | None,
        area: float | None = None,
        crowd: int = 0,
        around: Callable[[], Sequence[float]] | None = None,
    ) -> bool:
        """Add one; False where it is left out for its box or its class.

        Args:
            name: of the annotation, for remarks: ``the annotation 5``.
            category: the class, a key of the labels.
            bbox: left, top, width and height in pixels.
            area: in pixels; None for that of the box.
            crowd: 1 for a crowd.
            around: gives the box around the object's mask, as `bbox` or empty. It takes the place
                of a box that is missing, or that would be dropped; with a remark (SRC032).

        Raises:
            SkipImage: a bad box, where the option says so.
            RawDataError: a bad box or an unlisted class, where the option says so.
        """
        label = self._labels.get(category)
        if label is None:
            self._reject_category(name, category)
            return False
        found = self._box(name, bbox, around)
        if found is None:
            return False
        box, bbox = found
        if area is None or not 0 <= area < _LARGEST:
            if area is not None:
                detail = f"{name} has the area {area:g}; that of its box is taken"
                self._view.remarks.add("SRC032", detail)
            area = _area_of_box(bbox)
        number, text, thing = label
        self._rows.append((*box[:4], area, number, text, crowd))
        if thing is not None:
            self._things.append(thing)
        return True

    def add_usable(self, found: Iterable[tuple[Any, float, float, float, float]]) -> bool:
        """Add boxes of which :meth:`add` would remark nothing; where there is any other, none.

        Most images have only such boxes, and all of them together take less time than one.

        Args:
            found: for each the class, and left, top, width and height in pixels.

        Returns:
            Whether they were added.
        """
        width, height = self._view.sizes[0]
        least, lowest = _TINY * width, _TINY * height
        rows, things = [], []
        for category, left, top, across, down in found:
            right, bottom = left + across, top + down
            label = self._labels.get(category)
            is_inside = left >= 0 and top >= 0 and right <= width and bottom <= height
            if label is None or not (is_inside and across > least and down > lowest):
                return False
            number, text, thing = label
            sides = left / width, top / height, right / width, bottom / height
            rows.append((*sides, across * down, number, text, 0))
            if thing is not None:
                things.append(thing)
        self._rows += rows
        self._things += things
        return True

    def features(self, prefix: str = "image/object") -> Example:
        """The features, all of one length, under `prefix`."""
        self._view.remarks.write(len(self._rows))
        columns = [*zip(*self._rows, strict=True)] if self._rows else [()] * len(_NAMES)
        *floats, labels, texts, crowds = columns
        names = _prefixed(prefix)
        return {
            **dict(zip(names, float_features(floats), strict=False)),
            names[-3]: int64_feature(labels),
            names[-2]: bytes_feature(texts),
            names[-1]: int64_feature(crowds) if any(crowds) else _zeros(len(crowds)),
        }

    def things(self) -> list[int]:
        """1 for things and 0 for stuff, where the labels say so."""
        return self._things

    def _box(
        self,
        name: str,
        bbox: Sequence[float] | None,
        around: Callable[[], Sequence[float]] | None,
    ) -> tuple[Box, Sequence[float] | None] | None:
        """The box as it is written and in pixels; None where the object is left out."""
        options, remarks = self._view.options, self._view.remarks
        width, height = self._view.sizes[0]
        try:
            box = fit_box(bbox, width, height, options.clip)
        except BadAnnotation as error:
            detail = f"{name} {error}"
        else:
            if box.clipped:
                remarks.add("SRC024", f"the box of {name} sticks out and was clipped")
            return box, bbox
        if around is not None and (not bbox or options.bad_boxes == "drop"):
            bbox = around() or bbox
            with suppress(BadAnnotation):
                box = fit_box(bbox, width, height, options.clip)
                remarks.add("SRC032", f"{detail}; that around its mask is taken")
                return box, bbox
        if options.bad_boxes == "fail":
            raise RawDataError(
                f"`{safe(self._view.path)}`: {detail}",
                hint="fix the file, or choose with --option bad_boxes=drop, keep or skip-image",
            )
        if options.bad_boxes == "skip-image":
            raise SkipImage("SRC023", f"{detail}; --option bad_boxes=drop keeps the picture")
        kept = unclipped_box(bbox, width, height) if options.bad_boxes == "keep" else None
        if kept is None:
            remarks.drop("SRC023", f"{detail}; it was dropped")
        else:
            remarks.add("SRC023", f"{detail}; it was kept")
        return None if kept is None else (kept, bbox)

    def _reject_category(self, name: str, category: Any) -> None:
        shown = safe(str(category))
        detail = f"{name} refers to a category that is not listed: {shown}"
        if self._view.options.dangling == "fail":
            raise RawDataError(
                f"`{safe(self._view.path)}`: {detail}",
                hint="fix the file, or leave them out: --option dangling=drop",
            )
        self._view.remarks.drop("SRC025", detail)


@lru_cache(maxsize=256)
def _zeros(count: int) -> Feature:
    return int64_feature((0,) * count)


@lru_cache(maxsize=8)
def _prefixed(prefix: str) -> Sequence[str]:
    return [f"{prefix}/{name}" for name in _NAMES]


def _area_of_box(bbox: Sequence[float] | None) -> float:
    """The area of a box, for an annotation without an area that could be written."""
    if bbox is None or not math.isfinite(sum(bbox)):
        return 0.0
    _, _, across, down = bbox
    return min(across * down, _LARGEST) if across > 0 and down > 0 else 0.0


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

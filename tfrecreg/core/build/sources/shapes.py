"""Turns boxes (with labels and areas), keypoints and polygons of objects into features."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tfrecreg.core.build.sources.object_source import BadAnnotation, ImageView
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.values.errors import RawDataError
from tfrecreg.core.values.text import safe

_INVISIBLE = 1e-7
"""Share of a side. float32 cannot represent a smaller distance from the border."""
_TINY = 1e-6
"""Share of a side. If box edges are farther apart than this, they differ in float32, which has
steps of 6e-8."""
_LARGEST = 3.4e38
"""Maximum value of a coordinate or an area, just below the largest float32."""
_SIDES = struct.Struct("<4f")
_NUMBERS = ("bbox/xmin", "bbox/ymin", "bbox/xmax", "bbox/ymax", "area")


class Box(NamedTuple):
    """A box in the form stored in records: fractions of the image's sides, from 0 (top left) to
    1."""

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
    tiny = across <= _TINY * width or down <= _TINY * height
    if left >= 0 and top >= 0 and right <= width and bottom <= height and not tiny:
        return Box(left / width, top / height, right / width, bottom / height)
    out = max(-left, -top, right - width, bottom - height)
    if not math.isfinite(left + top + right + bottom):
        problem = "is not finite"
    elif across <= 0 or down <= 0:
        problem = "has no area"
    elif out > clip:
        problem = f"sticks out of the {width} × {height} pixels by {out:.6g}"
    else:
        box = Box(
            max(left, 0.0) / width,
            max(top, 0.0) / height,
            min(right, width) / width,
            min(bottom, height) / height,
            clipped=max(-left, right - width) > _INVISIBLE * width
            or max(-top, bottom - height) > _INVISIBLE * height,
        )
        xmin, ymin, xmax, ymax = _SIDES.unpack(_SIDES.pack(*box[:4]))
        if xmin < xmax and ymin < ymax:
            return box
        problem = "has no area as float32"
    shown = ", ".join(f"{value:.10g}" for value in bbox)
    raise BadAnnotation(f"has the box [{shown}], which {problem}")


def unclipped_box(bbox: Sequence[float] | None, width: int, height: int) -> Box | None:
    """A bad box, not clipped; None unless it has four numbers. Huge numbers become infinity."""
    if bbox is None or len(bbox) != 4:
        return None
    left, top, across, down = bbox
    shares = (left / width, top / height, (left + across) / width, (top + down) / height)
    xmin, ymin, xmax, ymax = (
        math.copysign(math.inf, each) if abs(each) > _LARGEST else each for each in shares
    )
    return Box(xmin, ymin, xmax, ymax)


class ObjectLabel(NamedTuple):
    """A class of objects, in the form stored in records."""

    label: int
    name: bytes
    """UTF-8."""
    thing: int | None = None
    """1 for things, 0 for stuff; None if this is not known for all categories."""


class Boxes:
    """The boxes of the objects in one image, with labels and areas.

    Args:
        labels: maps each class, as annotations name it, to its label.
        view: the image.
    """

    def __init__(self, labels: Mapping[Any, ObjectLabel], view: ImageView) -> None:
        self._labels = labels
        self._view = view
        self._rows: list[tuple[Any, ...]] = []  # sides, area, label, text, crowd
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
        """Add an object. Returns False if it is left out because of its box or its class.

        Args:
            name: how remarks refer to the annotation, for example ``the annotation 5``.
            category: the class, a key of the labels.
            bbox: left, top, width and height in pixels.
            area: the area in pixels. If it is None, the area of the box is used.
            crowd: 1 for a crowd.
            around: a function that returns the box around the object's mask, in the form of `bbox`,
                or an empty sequence. This box is used, with a remark (SRC115), if `bbox` is missing
                or would be dropped.

        Raises:
            SkipImage: the box is bad, and the option says to skip the image.
            RawDataError: the box is bad or the class is not listed, and an option says to fail.
        """
        label = self._labels.get(category)
        if label is None:
            detail = f"{name} refers to a category that is not listed: {safe(str(category))}"
            if self._view.options.dangling == "fail":
                raise RawDataError(
                    f"`{self._view.path}`: {detail}",
                    hint="fix the file, or leave out such objects: --option dangling=drop",
                )
            self._view.remarks.drop("SRC115", detail, "category")
            return False
        found = self._box(name, bbox, around)
        if found is None:
            return False
        box, bbox = found
        if area is None or not 0 <= area < _LARGEST:
            if area is not None:
                detail = f"{name} has the area {area:g}; the area of its box is used"
                self._view.remarks.add("SRC115", detail, "value")
            area = 0.0  # then the area of the box, if it is usable
            if bbox is not None and math.isfinite(sum(bbox)) and bbox[2] > 0 and bbox[3] > 0:
                area = min(bbox[2] * bbox[3], _LARGEST)
        number, text, thing = label
        self._rows.append((*box[:4], area, number, text, crowd))
        if thing is not None:
            self._things.append(thing)
        return True

    def add_usable(self, found: Iterable[tuple[Any, float, float, float, float]]) -> bool:
        """Add all of these boxes if none of them needs a remark or clipping. Otherwise, add no box.

        Most images have only such boxes. One call is faster than a call of :meth:`add` per box.

        Args:
            found: for each box the class, and left, top, width and height in pixels.

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
        """The features under `prefix`. Each has one value per object."""
        self._view.remarks.write(len(self._rows))
        columns = [*zip(*self._rows, strict=True)] if self._rows else [()] * 8
        *floats, labels, texts, crowds = columns
        return {
            **{
                f"{prefix}/{name}": float_feature(column)
                for name, column in zip(_NUMBERS, floats, strict=True)
            },
            f"{prefix}/class/label": int64_feature(labels),
            f"{prefix}/class/text": bytes_feature(texts),
            f"{prefix}/is_crowd": int64_feature(crowds),
        }

    def things(self) -> list[int]:
        """For each object, 1 for a thing or 0 for stuff. Empty if the labels do not say which."""
        return self._things

    def _box(
        self,
        name: str,
        bbox: Sequence[float] | None,
        around: Callable[[], Sequence[float]] | None,
    ) -> tuple[Box, Sequence[float] | None] | None:
        """The box as a record has it, and the box in pixels. None if the object is left out."""
        options, remarks = self._view.options, self._view.remarks
        width, height = self._view.sizes[0]
        try:
            box = fit_box(bbox, width, height, options.clip)
        except BadAnnotation as error:
            detail = f"{name} {error}"
        else:
            if box.clipped:
                remarks.add("SRC116", f"the box of {name} sticks out and was clipped", "clipped")
            return box, bbox
        if around is not None and (not bbox or options.bad_boxes == "drop"):
            bbox = around() or bbox
            with suppress(BadAnnotation):
                box = fit_box(bbox, width, height, options.clip)
                remarks.add("SRC115", f"{detail}; the box around its mask is used", "value")
                return box, bbox
        kept = unclipped_box(bbox, width, height) if options.bad_boxes == "keep" else None
        if kept is None:
            self._view.leave_out(detail, "box")
            return None
        remarks.add("SRC115", f"{detail}; it was kept", "box")
        return kept, bbox


_LARGEST_KEYPOINT = 1e30


def box_around(polygons: Iterable[Sequence[float]]) -> tuple[float, float, float, float]:
    """Left, top, width and height of the box around polygons. A polygon is a list of alternating x
    and y. The result is NaN if a point is not finite.
    """
    points = [value for polygon in polygons for value in polygon]
    if not math.isfinite(sum(points)):
        return math.nan, math.nan, math.nan, math.nan
    xs, ys = points[::2], points[1::2]
    left, top = min(xs), min(ys)
    return left, top, max(xs) - left, max(ys) - top


class Keypoints:
    """The keypoints of an image of `width` × `height` pixels. Each object has `count` keypoints."""

    def __init__(self, count: int, width: int, height: int) -> None:
        self._count = count
        self._width = width
        self._height = height
        self._x: list[float] = []
        self._y: list[float] = []
        self._visibility: list[int] = []
        self._labelled: list[int] = []

    def add(self) -> None:
        """Add an object without keypoints. Its keypoints are zeros and count as not labeled."""
        self._x += [0.0] * self._count
        self._y += [0.0] * self._count
        self._visibility += [0] * self._count
        self._labelled.append(0)

    def set(self, number: int, values: Sequence[float]) -> None:
        """Set the keypoints of the object at index `number`, each as x, y and visibility.

        Raises:
            BadAnnotation: `values` are not such triples. The object stays without keypoints.
        """
        x, y, visibility = values[::3], values[1::3], values[2::3]
        if len(values) != 3 * len(x) or len(x) > self._count:
            raise BadAnnotation(
                f"{len(values)} numbers, expected 3 for each of at most {self._count} keypoints"
            )
        if not all(abs(value) <= _LARGEST_KEYPOINT for value in values):
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
        """Coordinates and visibility per keypoint, and number of labeled keypoints per object."""
        return {
            "image/object/keypoint/x": float_feature(self._x),
            "image/object/keypoint/y": float_feature(self._y),
            "image/object/keypoint/visibility": int64_feature(self._visibility),
            "image/object/keypoint/num": int64_feature(self._labelled),
        }


class Polygons:
    """The polygons of the objects in one image of `width` × `height` pixels."""

    def __init__(self, width: int, height: int) -> None:
        self._sides = width, height
        self._x: list[float] = []
        self._y: list[float] = []
        self._points: list[int] = []
        self._parts: list[int] = []

    def add(self, polygons: Sequence[Sequence[float]]) -> None:
        """Add an object, with the polygons from :meth:`usable`, or with none."""
        width, height = self._sides
        for polygon in polygons:
            self._x += [value / width for value in polygon[::2]]
            self._y += [value / height for value in polygon[1::2]]
            self._points.append(len(polygon) // 2)
        self._parts.append(len(polygons))

    def usable(self, polygons: Sequence[list[float]]) -> tuple[list[list[float]], str]:
        """The usable polygons (x and y alternate), and what is wrong with the first unusable
        polygon.

        Raises:
            BadAnnotation: no polygon is usable.
        """
        problems = [self._problem(polygon) for polygon in polygons]
        problem = next(filter(None, problems), "")
        kept = [polygon for polygon, bad in zip(polygons, problems, strict=True) if not bad]
        if not kept:
            raise BadAnnotation(problem or "there is none")
        return kept, problem

    def features(self) -> Example:
        """Coordinates of points, number of points per polygon, number of polygons per object."""
        return {
            "image/object/polygon/x": float_feature(self._x),
            "image/object/polygon/y": float_feature(self._y),
            "image/object/polygon/points": int64_feature(self._points),
            "image/object/polygon/parts": int64_feature(self._parts),
        }

    def _problem(self, polygon: list[float]) -> str:
        """Why a polygon cannot be used; empty if it can."""
        if len(polygon) < 6 or len(polygon) % 2:
            return f"a polygon has {len(polygon)} numbers, expected 6, 8, 10 …"
        if not math.isfinite(sum(polygon)):
            return "a polygon is not finite"
        # The memory to draw a polygon grows with its length: parts far outside are not drawn.
        for values, side in zip((polygon[::2], polygon[1::2]), self._sides, strict=True):
            if min(values) < -side or max(values) > 2 * side:
                return "a polygon lies far outside of the picture"
        return ""

"""The objects and the panoptic segments of one image: boxes, labels, keypoints, remarks."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tfrecreg.api import (
    Example,
    Feature,
    ImageError,
    RawDataError,
    Remark,
    bytes_feature,
    float_feature,
    int64_feature,
    read_header,
    safe,
)
from tfrecreg_coco.annotations import Annotation, BadAnnotation, PanopticSegment, SkipImage
from tfrecreg_coco.coco_options import CocoOptions
from tfrecreg_coco.dataset import CategoryLabels
from tfrecreg_coco.masks import Masks

_INVISIBLE = 1e-7
"""Share of a side: float32 cannot distinguish a smaller distance from the border."""
_LARGEST = 3.4e38
"""Largest coordinate and area: about the largest float32."""
_SIDES = struct.Struct("<4f")
_LARGEST_KEYPOINT = 1e30
_COLUMNS: dict[str, Callable[[Sequence[Any]], Feature]] = {
    "bbox/xmin": float_feature,
    "bbox/ymin": float_feature,
    "bbox/xmax": float_feature,
    "bbox/ymax": float_feature,
    "class/label": int64_feature,
    "class/text": bytes_feature,
    "is_crowd": int64_feature,
    "area": float_feature,
}
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
    """The box of an annotation as shares of its image's sides.

    Args:
        bbox: left, top, width and height in pixels.
        width: width of the image in pixels.
        height: height of the image in pixels.
        clip: pixels by which the box may stick out; it is clipped there.

    Raises:
        BadAnnotation: it is not four finite numbers, has no area, or sticks out further.
    """
    if bbox is None or len(bbox) != 4:
        raise BadAnnotation(
            "has no box" if not bbox else f"has a box of {len(bbox)} numbers, not 4"
        )
    left, top, across, down = bbox
    right, bottom = left + across, top + down
    if left >= 0 and top >= 0 and across > 0 and down > 0 and right <= width and bottom <= height:
        box = Box(left / width, top / height, right / width, bottom / height)
        if _has_area(box):
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


class ImageRemarks:
    """The remarks on one image: by code, how often, and the first one in words."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[str, int]] = {}

    def add(self, code: str, detail: str) -> None:
        """Count one more of `code`."""
        first, times = self._found.get(code, (detail, 0))
        self._found[code] = first, times + 1

    def remarks(self, split: str, key: str) -> list[Remark]:
        """One for each code, in order of the codes."""
        return [
            Remark(split, key, code, first if times == 1 else f"{first}; {times} such", times)
            for code, (first, times) in sorted(self._found.items())
        ]


class ImageView(NamedTuple):
    """One image as its annotations see it."""

    path: str
    """Its path, for messages."""
    sizes: tuple[tuple[int, int], tuple[int, int]]
    """Width and height in pixels: those that the annotations say, and those of its header. Boxes,
    keypoints and polygons are measured against the first."""
    options: CocoOptions
    remarks: ImageRemarks


class Boxes:
    """Boxes with label and area, of objects or of panoptic segments."""

    def __init__(self, labels: CategoryLabels, view: ImageView) -> None:
        self._labels = labels
        self._view = view
        self._rows: list[tuple[Any, ...]] = []  # of the values of _COLUMNS
        self._things: list[int] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, found: Annotation | PanopticSegment) -> bool:
        """Add one; False where it is left out for its box or its category.

        Raises:
            SkipImage: a bad box, where the option says so.
            RawDataError: a bad box or an unlisted category, where the option says so.
        """
        label = self._labels.get(found.category_id)
        if label is None:
            self._reject_category(found)
            return False
        box = self._box(found)
        if box is None:
            return False
        area = found.area
        if area is None or not 0 <= area < _LARGEST:
            area = self._area_of_box(found)
        self._rows.append((*box[:4], label.label, label.name, found.crowd, area))
        if label.thing is not None:
            self._things.append(label.thing)
        return True

    def features(self, prefix: str) -> Example:
        """The features, all of one length. `prefix` is ``image/object`` or the like."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(_COLUMNS)
        return {
            f"{prefix}/{name}": make(values)
            for (name, make), values in zip(_COLUMNS.items(), columns, strict=True)
        }

    def things(self) -> list[int]:
        """1 for things and 0 for stuff, where the categories say so."""
        return self._things

    def _area_of_box(self, found: Annotation | PanopticSegment) -> float:
        """The area of the box, for an annotation without an area that could be written."""
        if found.area is not None:
            detail = f"{found.name} has the area {found.area:g}; that of its box is taken"
            self._view.remarks.add("SRC032", detail)
        if found.bbox is None or not math.isfinite(sum(found.bbox)):
            return 0.0
        return min(max(0.0, found.bbox[2]) * max(0.0, found.bbox[3]), _LARGEST)

    def _box(self, found: Annotation | PanopticSegment) -> Box | None:
        """The box as it is written; None where the object is left out."""
        options, remarks = self._view.options, self._view.remarks
        width, height = self._view.sizes[0]
        try:
            box = fit_box(found.bbox, width, height, options.clip)
        except BadAnnotation as error:
            detail = f"{found.name} {error}"
        else:
            if box.clipped:
                remarks.add("SRC024", f"the box of {found.name} sticks out and was clipped")
            return box
        if options.bad_boxes == "fail":
            raise RawDataError(
                f"`{safe(self._view.path)}`: {detail}",
                hint="fix the file, or choose with --option bad_boxes=drop, keep or skip-image",
            )
        if options.bad_boxes == "skip-image":
            raise SkipImage("SRC023", f"{detail}; --option bad_boxes=drop keeps the picture")
        kept = unclipped_box(found.bbox, width, height) if options.bad_boxes == "keep" else None
        remarks.add("SRC023", f"{detail}; it was {'dropped' if kept is None else 'kept'}")
        return kept

    def _reject_category(self, found: Annotation | PanopticSegment) -> None:
        detail = f"{found.name} refers to a category that is not listed: {found.category_id}"
        if self._view.options.dangling == "fail":
            raise RawDataError(
                f"`{safe(self._view.path)}`: {detail}",
                hint="fix the file, or leave them out: --option dangling=drop",
            )
        self._view.remarks.add("SRC025", detail)


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
            raise BadAnnotation("a visibility is none of 0, 1 and 2")
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


class Objects:
    """The objects of one image, from all files that have some of them.

    Args:
        labels: labels of the categories of objects.
        keypoints: keypoints of each object; None where they are not read.

    Raises:
        SkipImage: masks as PNG are wanted, and the image is too large to draw any.
    """

    def __init__(self, labels: CategoryLabels, view: ImageView, keypoints: int | None) -> None:
        self._remarks = view.remarks
        self._boxes = Boxes(labels, view)
        self._masks = Masks(view.options.masks, *view.sizes)
        self._keypoints = None if keypoints is None else Keypoints(keypoints, *view.sizes[0])
        self._numbers: dict[tuple[int | float | None, int | float | None], int] = {}

    def add(self, annotations: Iterable[Annotation], task: str) -> None:
        """Add the annotations of one file.

        An annotation of a file of keypoints is the object that another file has under the same id
        and category, and adds its keypoints; without such an object it is one of its own.
        """
        numbers, points = self._numbers, self._keypoints
        earlier = dict(numbers) if task == "keypoints" else {}
        for each in annotations:
            number = earlier.pop((each.id, each.category_id), None) if earlier else None
            if number is None or each.id is None:
                if not self._boxes.add(each):
                    continue
                problem = self._masks.add(each.segmentation)
                if problem is not None:
                    self._remarks.add("SRC028", f"the mask of {each.name} {problem}")
                if points is None:
                    continue
                number = len(self._boxes) - 1
                numbers.setdefault((each.id, each.category_id), number)
                points.add()
            if points is not None and task == "keypoints" and each.keypoints is not None:
                try:
                    points.set(number, each.keypoints)
                except BadAnnotation as error:
                    detail = f"the keypoints of {each.name} were left out: {error}"
                    self._remarks.add("SRC029", detail)

    def features(self) -> Example:
        """All features of objects."""
        found = {**self._boxes.features("image/object"), **self._masks.features()}
        if self._keypoints is not None:
            found.update(self._keypoints.features())
        return found


class PanopticSegments:
    """The panoptic segments of one image, and the PNG that paints them."""

    def __init__(self, labels: CategoryLabels, view: ImageView) -> None:
        self._sizes = view.sizes
        self._boxes = Boxes(labels, view)
        self._ids: list[int] = []
        self._pngs: list[bytes] = []

    def add(self, annotations: Iterable[Annotation]) -> None:
        """Add the segments of the image's annotation; there is at most one.

        Raises:
            SkipImage: a segment has no id that a pixel of the PNG could have.
        """
        for annotation in annotations:
            if annotation.segments_info is None:
                raise SkipImage("SRC031", "its panoptic annotation has no list of segments")
            for segment in annotation.segments_info:
                number = segment.id
                if number is None or not 0 <= number < 1 << 24 or number != int(number):
                    detail = f"a segment has the id {number}, which no pixel has"
                    raise SkipImage("SRC031", detail)
                if self._boxes.add(segment):
                    self._ids.append(int(number))

    def add_png(self, data: bytes) -> None:
        """Add the PNG, byte for byte. The segment of a pixel is red + 256 × green + 256² × blue.

        Raises:
            SkipImage: it is not a PNG, or does not have the size of the image.
        """
        try:
            header = read_header(data)
        except ImageError as error:
            raise SkipImage("SRC031", f"the PNG of its segments: {error.detail}") from None
        if header.format != "png":
            raise SkipImage("SRC031", f"its segments are painted in a {header.format}, not a PNG")
        if (header.width, header.height) not in self._sizes:
            width, height = self._sizes[0]
            raise SkipImage(
                "SRC031",
                f"the PNG of its segments has {header.width} × {header.height} pixels, expected "
                f"{width} × {height}",
            )
        self._pngs.append(data)

    def features(self) -> Example:
        """The features; the lists are empty for an image without segments."""
        prefix = "image/panoptic"
        return {
            **self._boxes.features(f"{prefix}/segment"),
            f"{prefix}/segment/id": int64_feature(self._ids),
            f"{prefix}/segment/is_thing": int64_feature(self._boxes.things()),
            f"{prefix}/encoded": bytes_feature(self._pngs),
        }

"""Draws the objects of a record over its image: boxes, keypoints, polygons, and masks as strips.

Positions are fractions of the image's sides, so the drawing fits the image in any size. Positions
are measured from the image's upper left corner, and clipped to the image. The number of shapes is
limited. `safe` escapes names.

A class has the same color in every document: `number % 8`, or `crc32(name) % 8` if it has no
number. Colors repeat, so each is shown with a name. Any two colors differ by at least 20 in CIELAB,
even for people with any kind of color blindness, and :data:`INK` is readable on all of them.

Masks have two forms, which the source `coco` writes. The text form of run lengths follows COCO's
`maskApi.c`. It lists the lengths of runs, alternately of zeros and of ones. Pixels are ordered by
column from the left, and within a column from top to bottom. A number has base-32 digits, the
lowest first. A digit is written as the character with the code `digit + 48`, or `digit + 80` if
more digits follow. Bit 16 of the last digit is the sign. From the fourth number on, the text stores
`n[i] - n[i - 2]` instead of `n[i]`.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup, escape

from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.images.decoder import Conversion, Undecodable, convert_image
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import read_header
from tfrecreg.core.schema.labels import BOX, IMAGE_LABEL, KEYPOINTS, OBJECT_LABEL
from tfrecreg.core.values.errors import TfrecregError
from tfrecreg.core.values.text import safe, safe_value

COUNTS, SIZE = "image/object/rle/counts", "image/object/rle/size"
"""For each object, the run lengths of its mask in text form, and the mask's height and width."""
MASK = "image/object/mask"
"""An image per object, in which zero is background, as in TensorFlow."""

_LINES = 64
"""Maximum number of columns drawn for a mask in text form, and of pixels on the shorter side of a
mask image. A drawn column also covers the columns to its right that are not drawn."""
_STRIPS = 1000
"""Maximum number of strips drawn on an image."""
_DIGITS = 7
"""Maximum number of base-32 digits in a number below 2^31."""


class Strip(NamedTuple):
    """A rectangle in fractions of the image's sides: a box, or a part of an object's mask."""

    left: float
    top: float
    width: float
    height: float


def _strips(example: Example) -> list[tuple[Strip, ...]]:
    """The strips of each object's mask: for run lengths up to the first fault, and none for an
    image that does not decode."""
    runs, sizes = _values(example, COUNTS, Kind.BYTES), _values(example, SIZE, Kind.INT64)
    if runs and sizes:
        masks = map(_of_runs, runs, sizes[::2], sizes[1::2])
    else:
        masks = map(_of_image, _values(example, MASK, Kind.BYTES))
    found: list[tuple[Strip, ...]] = []
    left = _STRIPS
    for strips in islice(masks, OBJECTS):
        found.append(tuple(islice(strips, left)))
        left -= len(found[-1])
    return found


def _of_runs(text: bytes, height: int, width: int) -> Iterator[Strip]:
    """The strips of a mask. A run of mask pixels gives one strip in each drawn column it covers."""
    if min(height, width) < 1:
        return
    step = -(-width // _LINES)
    covered = 0
    for number, count in enumerate(_numbers(text)):
        start, end = covered, covered + count
        if count < 0 or end > height * width:
            return
        covered = end
        if number % 2 == 0 or not count:
            continue
        first = -(-(start // height) // step) * step
        for column in range(first, (end - 1) // height + 1, step):
            top = max(start - column * height, 0)
            bottom = min(end - column * height, height)
            right = min(column + step, width)
            yield Strip(
                column / width, top / height, (right - column) / width, (bottom - top) / height
            )


def _numbers(text: bytes) -> Iterator[int]:
    """The run lengths in text form, up to the first fault."""
    before: list[int] = []
    value = shift = 0
    for byte in text:
        digit = byte - 48
        if not 0 <= digit < 64 or shift >= 5 * _DIGITS:
            return
        value |= (digit & 31) << shift
        shift += 5
        if digit & 32:
            continue
        if digit & 16:
            value -= 1 << shift
        if len(before) > 2:
            value += before[-2]
        before = [*before[-2:], value]
        yield value
        value = shift = 0


def _of_image(data: bytes) -> Iterator[Strip]:
    """Reduce the mask. For each row of the result, yield one strip for each run of object
    pixels."""
    conversion = Conversion(
        shorter=_LINES, width=0, height=0, format="ppm", quality=0, upright=False
    )
    try:
        header = read_header(data)
        kind, size, _, pixels = convert_image(data, header, conversion).split(b"\n", 3)
    except (ImageError, Undecodable, TfrecregError):
        return
    if kind != b"P5":
        return  # an image in colours is not a mask
    width, height = map(int, size.split())
    rows = np.frombuffer(pixels, np.uint8).reshape(height, width)
    inside = np.zeros((height, width + 2), np.int8)
    inside[:, 1:-1] = rows > int(rows.max()) // 2
    edges = np.diff(inside, axis=1)
    starts, ends = np.argwhere(edges == 1), np.argwhere(edges == -1)
    for (row, left), (_, right) in zip(starts.tolist(), ends.tolist(), strict=True):
        yield Strip(left / width, row / height, (right - left) / width, 1 / height)


COLORS = (
    *("#49d8ff", "#ff8e00", "#149d78", "#bd64ac"),
    *("#feff17", "#8b8ffb", "#e45433", "#a9e5a7"),
)
"""Colors of classes in hex, by number."""
INK = "#101418"
"""The color of text on a background from :data:`COLORS`, and of edges around such backgrounds."""


def class_color(name: int | str) -> int:
    """The color of a class, as a position in :data:`COLORS`."""
    if isinstance(name, int):
        return name % len(COLORS)
    return zlib.crc32(name.encode("utf-8", "surrogatepass")) % len(COLORS)


Outline = tuple[tuple[float, float], ...]
"""Points, in fractions of the sides of the image."""

OBJECTS = 60
"""Maximum number of objects drawn on an image."""
_CORNERS = 2000
"""Maximum number of polygon corners drawn on an image."""
_POINTS = 400
"""Maximum number of keypoints drawn on an image."""
_CROWD = 6
"""If there are more objects than this, names are shown only on an enlarged image."""
_UNITS = 1000
"""Width and height of the coordinates in the SVG."""

POLYGON = tuple(f"image/object/polygon/{name}" for name in ("x", "y", "points", "parts"))
"""Corners of all polygons, number of corners per polygon, and number of polygons per object."""
OBJECT_TEXT = "image/object/class/text"


class ClassMark(NamedTuple):
    """A class with its color."""

    name: str
    """Escaped by `safe`, but not yet escaped for HTML; empty for an object without a class."""
    color: int
    """A position in :data:`~tfrecreg.core.images.drawing.COLORS`."""
    objects: int = 1
    """Number of objects of the class in the record; 1 for the class of the image itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnObject:
    """One object of a record."""

    mark: ClassMark
    box: Strip | None = None
    polygons: tuple[Outline, ...] = ()
    """Outlines of its mask."""
    strips: tuple[Strip, ...] = ()
    """Its mask, if the mask does not consist of polygons."""
    points: Outline = ()
    """Its visible keypoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """The drawn objects of one record."""

    objects: tuple[DrawnObject, ...] = ()
    more: int = 0
    """Number of objects that are not drawn."""


def drawing_of(example: Example, labels: Mapping[str, Sequence[str]]) -> Drawing:
    """The drawing for the image of a record."""
    marks = object_marks(example, labels)
    boxes, polygons, strips = list(_boxes(example)), _polygons(example), _strips(example)
    points = _points(example, len(marks))
    count = max(len(boxes), len(polygons), len(strips), len(points))
    shapes = islice(zip_longest(boxes, polygons, strips, points), OBJECTS)
    objects = tuple(
        DrawnObject(
            mark=marks[at] if at < len(marks) else ClassMark("", class_color(0)),
            box=box,
            polygons=outlines or (),
            strips=parts or (),
            points=keypoints or (),
        )
        for at, (box, outlines, parts, keypoints) in enumerate(shapes)
    )
    return Drawing(objects=objects, more=max(count - OBJECTS, 0))


def marks_of(example: Example, labels: Mapping[str, Sequence[str]]) -> tuple[ClassMark, ...]:
    """The class of a record, or the classes of its objects, the most frequent first."""
    for name in dict.fromkeys((IMAGE_LABEL, *sorted(labels))):
        feature = example.get(name)
        if feature is not None and feature.kind is Kind.INT64 and feature.count == 1:
            number = int(feature.values[0])
            text = name_of_class(name, number, labels, example)
            return (ClassMark(text, class_color(number)),)
    counts = Counter(mark for mark in object_marks(example, labels) if mark.name)
    return tuple(mark._replace(objects=number) for mark, number in counts.most_common())


def object_marks(example: Example, labels: Mapping[str, Sequence[str]]) -> list[ClassMark]:
    """The class of each object of a record. A class number determines the color."""
    numbers = _values(example, OBJECT_LABEL, Kind.INT64)
    texts = _values(example, OBJECT_TEXT, Kind.BYTES)
    marks = []
    for at in range(max(len(numbers), len(texts))):
        number = int(numbers[at]) if at < len(numbers) else None
        if at < len(texts):
            name = safe_value(texts[at])
        else:
            name = name_of_class(OBJECT_LABEL, number or 0, labels)
        marks.append(ClassMark(name, class_color(name if number is None else number)))
    return marks


def name_of_class(
    feature: str, number: int, labels: Mapping[str, Sequence[str]], example: Example | None = None
) -> str:
    """The name of a class, escaped; its number if it has none."""
    names = labels.get(feature, ())
    if 0 <= number < len(names) and names[number]:
        return safe(names[number], limit=60)
    text = example.get(text_of(feature)) if example else None
    if text is not None and text.kind is Kind.BYTES and text.count == 1:
        return safe_value(text.values[0])
    return str(number)


def text_of(feature: str) -> str:
    """The feature with the names of the classes whose numbers are in `feature`."""
    return feature.replace("class/label", "class/text")


def overlay(drawing: Drawing) -> Markup:
    """SVG that lies over the image, in the same size. It needs only a style for its position.

    Shapes are grouped by class. Each group has the class's name as its `data-name`, so a script can
    hide a class. Lines and texts keep their size when the image is enlarged.
    """
    if not drawing.objects:
        return Markup()
    by_class: dict[ClassMark, list[DrawnObject]] = {}
    for each in drawing.objects:
        by_class.setdefault(each.mark, []).append(each)
    shapes = Markup().join(_shapes(mark, objects) for mark, objects in by_class.items())
    names = Markup().join(_name(each) for each in drawing.objects if each.box and each.mark.name)
    crowded = " crowd" if len(drawing.objects) > _CROWD else ""
    return Markup(
        '<svg class="overlay{}" width="100%" height="100%" aria-hidden="true">'
        '<svg viewBox="0 0 {} {}" preserveAspectRatio="none" fill="none">{}</svg>{}</svg>'
    ).format(crowded, _UNITS, _UNITS, shapes, names)


def draw_over(example: Example | None, images: Iterable[str]) -> Iterator[str]:
    """The images of a record as HTML for a notebook. Objects are drawn over the first image."""
    drawing = drawing_of(example, {}) if example is not None else Drawing()
    for number, image in enumerate(images):
        if number or not drawing.objects:
            yield image
            continue
        yield (
            f'<div style="position:relative;display:inline-block;line-height:0">{image}'
            f'<div style="position:absolute;inset:0">{overlay(drawing)}</div></div>'
        )


def _shapes(mark: ClassMark, objects: Sequence[DrawnObject]) -> Markup:
    color = COLORS[mark.color]
    outlines = (
        f"M{'L'.join(_units(*corner) for corner in polygon)}z"
        for each in objects
        for polygon in each.polygons
        if len(polygon) > 1
    )
    strips = (_rectangle(strip) for each in objects for strip in each.strips)
    masks = "".join((*outlines, *strips))
    boxes = "".join(_rectangle(each.box) for each in objects if each.box)
    points = "".join(f"M{_units(*point)}h0" for each in objects for point in each.points)
    paths = f'<path d="{masks}" fill="{color}" fill-opacity=".45"/>' if masks else ""
    lines = ((boxes, INK, 4), (boxes, color, 2), (points, INK, 8), (points, color, 5))
    for path, stroke, width in lines:
        if path:
            paths += (
                f'<path d="{path}" stroke="{stroke}" stroke-width="{width}" '
                'stroke-linecap="round" vector-effect="non-scaling-stroke"/>'
            )
    return Markup('<g data-name="{0}"><title>{0}</title>{1}</g>').format(mark.name, Markup(paths))


def _rectangle(box: Strip) -> str:
    left, top, width, height = (_number(_UNITS * side) for side in box)
    return f"M{left} {top}h{width}v{height}H{left}z"


def _units(left: float, top: float) -> str:
    return f"{_number(_UNITS * left)} {_number(_UNITS * top)}"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _name(each: DrawnObject) -> Markup:
    """The name in the upper left corner of a box. If the box begins in the right part of the image,
    the name is in the upper right corner."""
    assert each.box is not None
    at_right = each.box.left > 0.6
    across = each.box.left + each.box.width if at_right else each.box.left
    place = f'x="{_number(100 * across)}%" y="{_number(100 * min(each.box.top, 0.94))}%"'
    shift, anchor = (-5, "end") if at_right else (5, "start")
    name = escape(each.mark.name)
    return Markup(
        f'<text data-name="{name}" {place} dx="{shift}" dy="13" text-anchor="{anchor}" '
        f'font-size="11" fill="{INK}" stroke="{COLORS[each.mark.color]}" stroke-width="5" '
        f'stroke-linejoin="round" paint-order="stroke">{name}</text>'
    )


def _values(example: Example, name: str, kind: Kind) -> Sequence[Any]:
    """The values of a feature; none if it is missing or of another kind."""
    feature = example.get(name)
    return feature.values if feature is not None and feature.kind is kind else ()


def _boxes(example: Example) -> Iterator[Strip]:
    sides = [_values(example, name, Kind.FLOAT) for name in BOX]
    if len(set(map(len, sides))) != 1:
        return
    for each in zip(*sides, strict=True):
        left, right, top, bottom = map(_clipped, each)
        yield Strip(left, top, max(right - left, 0), max(bottom - top, 0))


def _points(example: Example, objects: int) -> list[Outline]:
    """The visible keypoints of each object. Each object has the same number of list entries."""
    x, y = (_values(example, name, Kind.FLOAT) for name in KEYPOINTS[:2])
    if not x or not y:
        return []
    visible = _values(example, KEYPOINTS[2], Kind.INT64) or (1,) * len(x)
    each = max(len(x) // objects, 1) if objects and len(x) % objects == 0 else len(x)
    found: list[list[tuple[float, float]]] = [[] for _ in range(-(-len(x) // each))]
    for at, (left, top, how) in enumerate(zip(x[:_POINTS], y, visible, strict=False)):
        if how:
            found[at // each].append((_clipped(left), _clipped(top)))
    return [tuple(points) for points in found]


def _polygons(example: Example) -> list[tuple[Outline, ...]]:
    """The outlines of each object. If the record lacks the number of outlines per object, the first
    object gets all outlines."""
    x, y = (_values(example, name, Kind.FLOAT) for name in POLYGON[:2])
    counts = _values(example, POLYGON[2], Kind.INT64)
    if not x or not y or not counts:
        return []
    corners = [(_clipped(left), _clipped(top)) for left, top in zip(x, y, strict=False)]
    outlines, start = [], 0
    for count in counts:
        end = start + count
        if count < 0 or end > min(len(corners), _CORNERS):
            break
        outlines.append(tuple(corners[start:end]))
        start = end
    found, start = [], 0
    for count in _values(example, POLYGON[3], Kind.INT64) or (len(outlines),):
        if count < 0 or start > len(outlines):
            break
        found.append(tuple(outlines[start : start + count]))
        start += count
    return found


def _clipped(share: float) -> float:
    return min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0

"""What is wrong with the objects of one record."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from tfrecreg.codes import ANN001, ANN002, ANN003
from tfrecreg.example import Example, Feature, Kind
from tfrecreg.findings import Code
from tfrecreg.validators.annotations.names import BOX, KEYPOINTS, OBJECT_LABEL, PER_OBJECT

__all__ = ["Objects", "Problem", "look_at_objects"]

_NEAR = 1e-6
"""So far beyond the border a side may be: 1.0 as a float32 that was computed."""


class Problem(NamedTuple):
    """One thing that is wrong."""

    code: Code
    feature: str
    message: str
    """The same for all records."""
    detail: str


class Objects(NamedTuple):
    """What a record has."""

    number: int
    """Objects; of lists that differ, the first one's."""
    problems: list[Problem]


def look_at_objects(example: Example) -> Objects | None:
    """Look at boxes and the lists beside them; None where the record has none of them."""
    get = example.get
    sides = [get(name) for name in BOX]
    if not any(side is not None for side in sides):
        label = get(OBJECT_LABEL)
        if label is None:
            return None
        count = label.count
    else:
        count = next(side.count for side in sides if side is not None)
    problems = list(_ragged(example, sides, count))
    if not problems and count and all(side is not None for side in sides):
        problems = list(_wrong_boxes([side for side in sides if side is not None]))
    return Objects(count, problems)


def _ragged(example: Example, sides: list[Feature | None], count: int) -> Iterator[Problem]:
    """ANN001: lists that should have one value for each object."""
    boxes = any(side is not None for side in sides)
    for name, side in zip(BOX, sides, strict=True):
        found = 0 if side is None else side.count
        if boxes and found != count:
            yield _uneven(name, count, found)
    for name in PER_OBJECT:
        feature = example.get(name)
        if feature is None:
            continue
        # An optional list that is empty was not given; a label is no option.
        if feature.count != count and (feature.count or (name == OBJECT_LABEL and boxes)):
            yield _uneven(name, count, feature.count)
    counts = {name: each.count for name in KEYPOINTS if (each := example.get(name)) and each.count}
    first = next(iter(counts.values()), 0)
    for name, found in counts.items():
        if found != first:
            yield _uneven(name, first, found)
        elif not count or found % count:
            message = f"`{name}` should have as many values for every object"
            yield Problem(ANN001, name, message, f"found {found} values for {count} objects")


def _uneven(name: str, expected: int, found: int) -> Problem:
    message = f"`{name}` should have as many values as the lists beside it"
    return Problem(ANN001, name, message, f"expected {expected} values, found {found}")


def _wrong_boxes(sides: list[Feature]) -> Iterator[Problem]:
    """ANN002 and ANN003: boxes that leave the picture, and boxes without area."""
    if any(side.kind not in (Kind.FLOAT, Kind.INT64) for side in sides):
        return  # the schema's to say
    columns = [side.values for side in sides]
    for number, (left, right, top, bottom) in enumerate(zip(*columns, strict=True)):
        if 0 <= left < right <= 1 and 0 <= top < bottom <= 1:
            continue
        box = f"object {number}: x {left:.6g} to {right:.6g}, y {top:.6g} to {bottom:.6g}"
        values = (left, right, top, bottom)
        if not all(math.isfinite(each) for each in values):
            yield Problem(ANN002, BOX[0], "the sides of a box should be finite", box)
            continue
        if min(values) < -_NEAR or max(values) > 1 + _NEAR:
            message = "a box should be in its picture: sides from 0 to 1"
            yield Problem(ANN002, BOX[0], message, box)
        if right <= left or bottom <= top:
            message = "a box should have an area: `xmin` < `xmax` and `ymin` < `ymax`"
            yield Problem(ANN003, BOX[0], message, box)

"""Boxes of records, by the names of TensorFlow's object detection: one row per box."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tfrecreg.builtin.query.cells import texts
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.schema.roles.labels import BOX, OBJECT_LABEL, PER_OBJECT

_OBJECT = "image/object/"
_SIDES = tuple((name.rpartition("/")[2], name) for name in BOX)
_TEXT = f"{_OBJECT}class/text"
_MORE = tuple(
    (name.removeprefix(_OBJECT).replace("/", "_"), name)
    for name in PER_OBJECT
    if name not in (OBJECT_LABEL, _TEXT, f"{_OBJECT}view")
)
OBJECT_NUMBERS = ("label_number", *(column for column, _ in _MORE))
"""Columns of numbers of an object, whole ones or not."""
OBJECT_SIDES = tuple(side for side, _ in _SIDES)
"""Sides of boxes, as fractions of the sides of the image."""
_FEATURES = frozenset((*BOX, OBJECT_LABEL))


class BoxTotals(NamedTuple):
    """The boxes of one record."""

    boxes: int | None
    """Number; None for a record without features of boxes."""
    area: float | None
    """Sum of the areas, as a fraction of the image's; None where a side is missing."""
    smallest: float | None
    """The smallest area."""


def may_have_boxes(example: Example) -> bool:
    """Whether a record has a feature of boxes."""
    return not _FEATURES.isdisjoint(example)


class BoxRows:
    """Collects the objects of the records of a chunk."""

    def __init__(self) -> None:
        self._records: list[int] = []
        self._keys: list[str | None] = []
        self._numbers: list[int] = []
        self._texts: list[bytes | None] = []
        self._columns: dict[str, list[Any]] = {
            name: [] for name in (*OBJECT_SIDES, *OBJECT_NUMBERS)
        }

    def __len__(self) -> int:
        return len(self._records)

    def add(self, record: int, key: str | None, example: Example) -> BoxTotals:
        """Add the objects of one record.

        Lists of different lengths, which a check reports, are filled up with nulls.
        """
        sides = {name: _values(example, feature, Kind.FLOAT) for name, feature in _SIDES}
        labels = _values(example, OBJECT_LABEL, Kind.INT64)
        count = max(len(labels), *map(len, sides.values()))
        if not count:
            return BoxTotals(0, 0.0, None)
        for name, values in (*sides.items(), ("label_number", labels)):
            self._columns[name] += (*values, *[None] * (count - len(values)))
        for name, feature in _MORE:
            values = _values(example, feature, None)[:count]
            self._columns[name] += (*values, *[None] * (count - len(values)))
        names = _values(example, _TEXT, Kind.BYTES)[:count]
        self._texts += (*names, *[None] * (count - len(names)))
        self._records += [record] * count
        self._keys += [key] * count
        self._numbers += range(count)
        return _totals(count, sides)

    def to_arrow(self, pa: Any) -> Any:
        """The table."""
        # Whole numbers of other tools are floats at times: numbers of both kinds are floats here.
        numbers = {name: pa.array(self._columns[name], pa.float64()) for name in OBJECT_NUMBERS}
        numbers["label_number"] = pa.array(self._columns["label_number"], pa.int64())
        named = [each for each in self._texts if each is not None]
        order = np.cumsum([each is not None for each in self._texts]) - 1
        absent = np.array([each is None for each in self._texts], np.bool_)
        return pa.table(
            {
                "record": pa.array(self._records, pa.int64()),
                "key": pa.array(self._keys, pa.string()),
                "object": pa.array(self._numbers, pa.int64()),
                "text": texts(pa, pa.array(named, pa.binary())).take(pa.array(order, mask=absent)),
                **{name: pa.array(self._columns[name], pa.float32()) for name in OBJECT_SIDES},
                **numbers,
            }
        )


def _values(example: Example, name: str, kind: Kind | None) -> tuple[Any, ...]:
    """The values of a feature of that kind, or of numbers; none where it has others."""
    feature = example.get(name)
    if feature is None or not feature.count:
        return ()
    expected = (kind,) if kind is not None else (Kind.INT64, Kind.FLOAT)
    return feature.values if feature.kind in expected else ()


def _totals(count: int, sides: dict[str, tuple[Any, ...]]) -> BoxTotals:
    if any(len(each) != count for each in sides.values()):
        return BoxTotals(count, None, None)
    xmin, xmax, ymin, ymax = (np.array(sides[side], np.float64) for side in OBJECT_SIDES)
    areas = (xmax - xmin) * (ymax - ymin)
    return BoxTotals(count, float(areas.sum()), float(areas.min()))

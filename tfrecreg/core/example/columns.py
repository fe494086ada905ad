"""The layout of payloads, by which many payloads are read at once.

The records of one source mostly hold the same features in the same order, each with the same number
of values. After one record is decoded, the compiled scanner (`walk.c`) tests whether hundreds of
other records have the same layout: it compares all bytes except those of lengths and values. This
is fifty times as fast as decoding. A record with another layout may still be a valid example, so it
is decoded.

In a layout, a feature has a single BYTES or INT64 value, or any number of FLOAT values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.core.example.model import Example, Kind

_Ints = NDArray[np.int64]

MAX_SLOTS = 200
_MAX_NAME = 1 << 10
"""The maximum number of features in a layout, and the maximum number of characters in a name. The
cost of a trial grows with both."""


class Slot(NamedTuple):
    """One feature of a layout."""

    name: str
    kind: Kind
    values: int
    """Number of values: 1, except for FLOAT."""


Layout = tuple[Slot, ...]
"""The features of a layout, in their order in the payload."""


class Column(NamedTuple):
    """The values of one slot in the records that have the layout, one row per record."""

    start: _Ints
    """Offset of the value in memory; for FLOAT, of the first value."""
    stop: _Ints
    """Offset of the end of the value or values."""
    integers: _Ints
    """Values of an INT64 slot; empty for other kinds."""


def layout_of(example: Example) -> Layout | None:
    """The layout of a decoded example; None if the layout is not simple."""
    slots: list[Slot] = []
    for name, feature in example.items():
        kind, count = feature.kind, feature.count
        if kind is Kind.UNSET or not count or (count > 1 and kind is not Kind.FLOAT):
            return None
        if len(name) > _MAX_NAME:
            return None
        slots.append(Slot(name, kind, count))
    return tuple(slots) if 0 < len(slots) <= MAX_SLOTS else None


def message_bytes(values: _Ints) -> _Ints:
    """Size in bytes of encoded features, computed as in `Feature.wire_bytes`."""
    lists = 1 + _length_bytes(values) + values
    return 1 + _length_bytes(lists) + lists


def _length_bytes(lengths: _Ints) -> _Ints:
    found: _Ints = np.ones_like(lengths)
    for bits in (7, 14, 21, 28):
        found += lengths >= 1 << bits
    return found

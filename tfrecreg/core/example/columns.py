"""Reads many payloads of one layout at once, with NumPy.

The records of one source mostly hold the same features in the same order, each with the same number
of values. After one record is decoded, a few array operations test whether hundreds of other
records have the same layout. They compare all bytes except those of lengths and values. This is
fifty times as fast as decoding. A record with another layout may still be a valid example, so it is
decoded.

In a layout, a feature has a single BYTES or INT64 value, or any number of FLOAT values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.core.example.model import Example, Kind, varint

_Ints = NDArray[np.int64]
_Bools = NDArray[np.bool_]

MAX_SLOTS = 200
_MAX_NAME = 1 << 10
"""Maximum number of features in a layout, and of characters in a name, for quick trials."""


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


def read_columns(
    layout: Layout, memory: bytes, starts: Sequence[int] | _Ints, lengths: Sequence[int] | _Ints
) -> tuple[_Ints, list[Column]]:
    """The positions of the payloads that have `layout`, and a column of values for each slot."""
    reader = _Reader(memory)
    position = np.asarray(starts, dtype=np.int64)
    last = position + np.asarray(lengths, dtype=np.int64)
    good = reader.byte(position) == 0x0A
    size, position = reader.sizes(position + 1)
    good &= position + size == last
    columns = []
    for slot in layout:
        position, column = _read_entry(reader, slot, position, good)
        columns.append(column)
        if not good.any():
            break
    good &= position == last
    rows = np.flatnonzero(good)
    return rows, [
        Column(column.start[rows], column.stop[rows], column.integers[rows])
        for column in columns
        if rows.size
    ]


def entry_head(slot: Slot) -> bytes:
    """The content of a map entry before the length of its value."""
    key = slot.name.encode("utf-8", "surrogateescape")
    return b"\n" + varint(len(key)) + key + b"\x12"


def _read_entry(reader: _Reader, slot: Slot, position: _Ints, good: _Bools) -> tuple[_Ints, Column]:
    """Read a map entry of every payload. Clear `good` where the entry does not fit `slot`."""
    good &= reader.byte(position) == 0x0A
    size, position = reader.sizes(position + 1)
    end = position + size
    head = entry_head(slot)
    good &= reader.equal(position, head)
    size, position = reader.sizes(position + len(head))
    good &= position + size == end
    good &= reader.byte(position) == (slot.kind << 3 | 2)
    size, position = reader.sizes(position + 1)
    good &= position + size == end
    # The list has one value of BYTES, or packed numbers.
    good &= reader.byte(position) == 0x0A
    size, position = reader.sizes(position + 1)
    good &= position + size == end
    integers = position
    if slot.kind is Kind.FLOAT:
        good &= size == 4 * slot.values
    elif slot.kind is Kind.INT64:
        integers, stop, whole = reader.integers(position)
        good &= whole
        good &= stop == end
    return end, Column(position, end, integers)


class _Reader:
    """Reads a buffer at many offsets in parallel. Offsets after the end give the last bytes."""

    def __init__(self, memory: bytes) -> None:
        self._bytes = np.frombuffer(memory, np.uint8) if memory else np.zeros(1, np.uint8)
        self._last_word = len(memory) - 8
        # Every eight bytes in a row, wherever they start.
        self._words: NDArray[np.uint64] = np.ndarray(
            (max(self._last_word + 1, 0),), "<u8", memory, strides=(1,)
        )

    def byte(self, position: _Ints) -> NDArray[np.uint8]:
        """The byte at each offset."""
        return self._bytes.take(position, mode="clip")

    def equal(self, position: _Ints, expected: bytes) -> _Bools:
        """Whether the bytes at each offset are `expected`."""
        same = np.ones(len(position), np.bool_)
        if len(expected) < 8 or not self._words.size:
            for at, byte in enumerate(expected):
                same &= self.byte(position + at) == byte
            return same
        # A read past the end of the memory is also past the end of its payload, so the bytes
        # returned instead do not matter.
        for at in (*range(0, len(expected) - 8, 8), len(expected) - 8):
            word = int.from_bytes(expected[at : at + 8], "little")
            place = np.clip(position + at, 0, self._last_word)
            same &= self._words[place] == np.uint64(word)
        return same

    def sizes(self, position: _Ints) -> tuple[_Ints, _Ints]:
        """The length at each offset (negative if invalid), and the offset after the length."""
        byte = self.byte(position)
        size = byte.astype(np.int64)
        more = byte > 127
        position = position + 1
        if not more.any():
            return size, position
        size &= 127
        for shift in (7, 14, 21, 28):
            byte = self.byte(position)
            size += np.where(more, (byte & 127).astype(np.int64) << shift, 0)
            position += more
            more &= byte > 127
            if not more.any():
                return size, position
        size[more] = -(1 << 40)
        return size, position

    def integers(self, position: _Ints) -> tuple[_Ints, _Ints, _Bools]:
        """The int64 at each offset, the offset where it ends, and whether it is valid."""
        byte = self.byte(position)
        value = byte.astype(np.uint64)
        more = byte > 127
        position = position + 1
        if not more.any():
            return value.view(np.int64), position, ~more
        value &= np.uint64(127)
        for shift in range(7, 70, 7):
            byte = self.byte(position)
            part = (byte & 127).astype(np.uint64) << np.uint64(shift)
            value += np.where(more, part, np.uint64(0))
            position += more
            if shift == 63:
                more &= byte > 1  # the tenth byte holds only one of 64 bits
            else:
                more &= byte > 127
            if not more.any():
                break
        return value.view(np.int64), position, ~more


def message_bytes(values: _Ints) -> _Ints:
    """Size in bytes of encoded features, computed as in `Feature.wire_bytes`."""
    lists = 1 + _length_bytes(values) + values
    return 1 + _length_bytes(lists) + lists


def _length_bytes(lengths: _Ints) -> _Ints:
    found: _Ints = np.ones_like(lengths)
    for bits in (7, 14, 21, 28):
        found += lengths >= 1 << bits
    return found

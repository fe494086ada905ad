"""The values of one feature in many records, as Arrow columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.query.entries import (
    CLASS_BYTES,
    CLASS_NAMES,
    SHORT_BYTES,
    SHORT_VALUES,
    CellColumns,
    arrow_module,
)
from tfrecreg.core.example.columns import Column, Slot
from tfrecreg.core.example.model import Feature, Kind

_Ints = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]

CELL_BYTES = 24
"""Approximate memory that a value takes, without its text."""


class FeatureCells:
    """Collects the values of one feature of one kind."""

    def __init__(self, name: str, kind: Kind) -> None:
        self.kind = kind
        self._name = name
        self._names_class = name in CLASS_NAMES
        self._rows: list[_Ints] = []
        self._counts: list[_Ints] = []
        self._kept: list[_Bools] = []
        self._sizes: list[_Ints] = []
        self._flat: list[Any] = []
        self._loose: list[tuple[int, int, int, Sequence[Any] | None]] = []

    def add_column(self, rows: _Ints, slot: Slot, column: Column, memory: bytes) -> int:
        """Add the values of records with the same layout. Returns how much memory they take."""
        count = len(rows)
        kept = np.full(count, slot.values <= SHORT_VALUES)
        held = 0
        if self.kind is Kind.BYTES:
            sizes = column.stop - column.start
            kept = sizes <= SHORT_BYTES
            for place in np.flatnonzero(~kept) if self._names_class else ():
                kept[place] = _is_name(memory[column.start[place] : column.stop[place]])
            self._flat.append(_pieces(memory, column.start[kept], sizes[kept]))
            self._sizes.append(sizes)
            held = int(sizes[kept].sum())
        elif self.kind is Kind.INT64:
            self._flat.append(column.integers)
        elif slot.values <= SHORT_VALUES:
            places = column.start[:, None] + np.arange(4 * slot.values)
            found = np.frombuffer(memory, np.uint8)[places].view("<f4").reshape(-1)
            self._flat.append(found.astype("=f4", copy=False))
        self._rows.append(rows)
        self._counts.append(np.full(count, slot.values, np.int64))
        self._kept.append(kept)
        return held + CELL_BYTES * count * min(slot.values, SHORT_VALUES)

    def add(self, row: int, feature: Feature) -> int:
        """Add the values of one record. Returns how much memory they take."""
        count, size = feature.count, 0
        values: Sequence[Any] | None = None
        if self.kind is Kind.BYTES:
            size = sum(feature.sizes)
            if (size <= SHORT_BYTES and count <= SHORT_VALUES) or (
                self._names_class and count == 1 and _is_name(feature.values[0])
            ):
                values = feature.values
        elif count <= SHORT_VALUES:
            values = feature.first(count)
        self._loose.append((row, count, size, values))
        return CELL_BYTES * (1 + len(values or ())) + (size if values is not None else 0)

    def to_arrow(self, pa: Any, rows: int) -> tuple[CellColumns, dict[str, Any]]:
        """The columns: ``v`` is for the values, ``n`` for their number, ``s`` for their size in
        bytes.
        """
        self._gather()
        at, counts = np.concatenate(self._rows), np.concatenate(self._counts)
        kept = np.concatenate(self._kept)
        is_list = bool((counts != 1).any())
        columns: dict[str, Any] = {}
        if kept.any():
            columns["v"] = self._values(pa, counts, kept, is_list)
        if is_list:
            columns["n"] = pa.array(counts.astype(np.uint32))
        if self.kind is Kind.BYTES:
            columns["s"] = pa.array(np.concatenate(self._sizes))
        told = CellColumns(
            feature=self._name,
            kind=self.kind.name.lower(),
            is_list=is_list,
            is_many=bool((counts > 1).any()),
            has_values="v" in columns,
            is_cut=not kept.all(),
        )
        return told, {kind: _placed(pa, at, rows, each) for kind, each in columns.items()}

    def _gather(self) -> None:
        """Make arrays of the values that were added one by one."""
        loose, self._loose = self._loose, []
        if not loose:
            return
        rows, counts, sizes, values = zip(*loose, strict=True)
        self._rows.append(np.array(rows, np.int64))
        self._counts.append(np.array(counts, np.int64))
        self._kept.append(np.array([each is not None for each in values]))
        self._sizes.append(np.array(sizes, np.int64))
        flat = chain.from_iterable(each for each in values if each is not None)
        if self.kind is Kind.BYTES:
            self._flat.append(arrow_module().array(list(flat), arrow_module().binary()))
        else:
            self._flat.append(
                np.fromiter(flat, np.int64 if self.kind is Kind.INT64 else np.float32)
            )

    def _values(self, pa: Any, counts: _Ints, kept: _Bools, is_list: bool) -> Any:
        if self.kind is Kind.BYTES:
            flat = texts(pa, pa.concat_arrays(self._flat))
        else:
            flat = pa.array(np.concatenate(self._flat))
        if is_list:
            ends = np.cumsum(np.where(kept, counts, 0))
            starts = np.concatenate((np.zeros(1, np.int64), ends)).astype(np.int32)
            # A list with a null offset is null itself.
            return pa.ListArray.from_arrays(pa.array(starts, mask=np.append(~kept, False)), flat)
        if kept.all():
            return flat
        order = np.cumsum(kept) - 1
        return flat.take(pa.array(order, mask=~kept))


def _is_name(value: bytes) -> bool:
    """Whether a long value can be the name of a class, rather than an image or an array."""
    return len(value) <= CLASS_BYTES and b"\0" not in value


def _placed(pa: Any, at: _Ints, rows: int, array: Any) -> Any:
    """The values of some rows, expanded to all rows with nulls in the other rows."""
    if len(at) == rows and np.array_equal(at, np.arange(rows)):
        return array
    indices = np.full(rows, -1, np.int64)
    indices[at] = np.arange(len(at))
    return array.take(pa.array(indices, mask=indices < 0))


def _pieces(memory: bytes, starts: _Ints, sizes: _Ints) -> Any:
    """Pieces of memory as an Arrow array of bytes, without a Python object per piece."""
    pa = arrow_module()
    ends = np.cumsum(sizes)
    offsets = np.concatenate((np.zeros(1, np.int32), ends.astype(np.int32)))
    places = np.repeat(starts - ends + sizes, sizes) + np.arange(offsets[-1])
    data = np.frombuffer(memory, np.uint8)[places]
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


def texts(pa: Any, raw: Any) -> Any:
    r"""An array of bytes as text: invalid UTF-8 is escaped as ``\xff``."""
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        values = (each.decode("utf-8", "backslashreplace") for each in raw.to_pylist())
        return pa.array(values, pa.string())

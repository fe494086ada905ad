"""Payloads of one layout, read at once by the compiled scanner (`tfrecreg/core/records/walk.c`).

It returns what :func:`tfrecreg.core.example.columns.read_columns` does, which reads them with NumPy
where there is no compiled scanner.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tfrecreg.core.example import columns as with_numpy
from tfrecreg.core.example.columns import Column, Group, Layout, entry_head
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.scanner import load_scanner, scanner_kind

_Ints = npt.NDArray[np.int64]


def layout_columns(
    layout: Layout, memory: bytes, starts: Sequence[int] | _Ints, lengths: Sequence[int] | _Ints
) -> tuple[_Ints, list[Column]]:
    """As :func:`tfrecreg.core.example.columns.read_columns`."""
    if scanner_kind() == "python":
        return with_numpy.read_columns(layout, memory, starts, lengths)
    places, sizes = (np.ascontiguousarray(each, np.int64) for each in (starts, lengths))
    heads, slots = _compiled(layout)
    rows = np.empty(len(places), np.int64)
    values = np.empty((len(layout), 3, len(places)), np.int64)
    found = load_scanner().columns(
        memory,
        *(places.ctypes.data, sizes.ctypes.data, len(places)),
        *(heads, slots.ctypes.data, len(layout)),
        *(rows.ctypes.data, values.ctypes.data),
    )
    if not found:
        return rows[:0], []
    return rows[:found], [Column(*each[:, :found]) for each in values]


def divide_batch(batch: RecordBatch) -> tuple[list[Group], Sequence[int]]:
    """As :func:`tfrecreg.core.example.columns.divide`, of a batch whose payloads are in memory."""
    return with_numpy.divide(
        batch.memory, batch.starts, batch.lengths, batch.example, read=layout_columns
    )


@lru_cache(maxsize=64)
def _compiled(layout: Layout) -> tuple[bytes, _Ints]:
    """The bytes of all keys with their tags, and for each feature a ``struct slot``."""
    heads, slots = b"", []
    for slot in layout:
        heads += entry_head(slot)
        slots.append((len(heads), slot.kind << 3 | 2, slot.values))
    return heads, np.array(slots, np.int64)

"""Record batches straight from the bytes, where all records of a batch have the same layout.

What comes out is what `tfx_bsl` decodes, for a part of its cost: that is most of all there is to
do for small records. See :mod:`tfrecreg.example.columns`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfrecreg.example import Kind, decode_or_none
from tfrecreg.example.columns import Column, Layout, Slot, layout_of, read_columns
from tfrecreg.records.batch import RecordBatch
from tfrecreg.statistics.columns import Columns
from tfrecreg.statistics.tfdv import Tfdv

_PATIENCE = 8
"""Batches in a row that have no layout of theirs, after which nobody looks for one any more."""


class LayoutReader:
    """Reads batches whose records have one layout.

    Args:
        tfdv: what :func:`load_tfdv` returns.
        images: features of which the sizes will do.
    """

    def __init__(self, tfdv: Tfdv, images: Iterable[str]) -> None:
        self._pa = tfdv.pa
        self._images = frozenset(images)
        self._layout: Layout | None = None
        self._misses = 0

    def read(self, batch: RecordBatch) -> Columns | None:
        """The columns of a batch; None where its records differ in more than values."""
        if self._misses >= _PATIENCE or not len(batch):
            return None
        for layout in self._candidates(batch):
            rows, columns = read_columns(layout, batch.memory, batch.starts, batch.lengths)
            if len(rows) == len(batch):
                self._layout, self._misses = layout, 0
                return self._columns(layout, columns, batch.memory)
        self._misses += 1
        return None

    def _candidates(self, batch: RecordBatch) -> Iterator[Layout]:
        """The layout of the batch before, and then that of the first record."""
        if self._layout is not None:
            yield self._layout
        example = decode_or_none(batch.payload(0))
        layout = layout_of(example) if example else None
        if layout is not None and layout != self._layout:
            yield layout

    def _columns(self, layout: Layout, columns: list[Column], memory: bytes) -> Columns:
        pa = self._pa
        arrays: dict[str, Any] = {}
        sizes: dict[str, NDArray[np.int64]] = {}
        for slot, column in sorted(zip(layout, columns, strict=True), key=_name):
            lists = np.arange(len(column.start) + 1, dtype=np.int64) * slot.values
            if slot.name in self._images and slot.kind is Kind.BYTES:
                sizes[slot.name] = column.stop - column.start
            arrays[slot.name] = pa.LargeListArray.from_arrays(
                pa.array(lists), self._values(slot, column, memory)
            )
        return Columns(pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays)), sizes)

    def _values(self, slot: Slot, column: Column, memory: bytes) -> Any:
        pa = self._pa
        if slot.kind is Kind.INT64:
            return pa.array(column.integers)
        if slot.kind is Kind.FLOAT:
            places = column.start[:, None] + np.arange(4 * slot.values)
            return pa.array(np.frombuffer(memory, np.uint8)[places].view("<f4").reshape(-1))
        offsets = np.zeros(len(column.start) + 1, np.int64)
        data = b""
        if slot.name not in self._images:
            np.cumsum(column.stop - column.start, out=offsets[1:])
            spans = zip(column.start.tolist(), column.stop.tolist(), strict=True)
            data = b"".join([memory[start:stop] for start, stop in spans])
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), len(column.start), buffers)


def _name(pair: tuple[Slot, Column]) -> str:
    return pair[0].name

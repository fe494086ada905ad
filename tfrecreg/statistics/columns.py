"""Payloads to Arrow: record batches by `tfx_bsl`, images as sizes only."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.statistics.cut import Sizes
from tfrecreg.statistics.tfdv import Tfdv

_MAPPED = 128 << 20
"""Zeros that are mapped at first: more than the images of a batch take."""


class Columns(NamedTuple):
    """A decoded batch: the images' values are empty, their sizes beside it."""

    batch: Any
    """A pyarrow `RecordBatch`."""
    sizes: dict[str, NDArray[np.int64]]
    """Of each image feature that holds bytes, the bytes of every value, in order."""


def take_sizes(
    tfdv: Tfdv, batch: Any, cut: Sequence[Sizes | None], images: Sequence[str]
) -> Columns:
    """The batch with its images as sizes.

    Args:
        tfdv: what :func:`load_tfdv` returns.
        batch: as it was decoded.
        cut: of each row the sizes of the values that were cut out; None where nothing was.
        images: the names of the image features.
    """
    sizes: dict[str, NDArray[np.int64]] = {}
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name in images:
        column = arrays.get(name)
        if column is None or not _holds_bytes(tfdv, column):
            continue
        lengths = tfdv.arrays.GetElementLengths(column.values).to_numpy().astype(np.int64)
        known = [row[name] for row in cut if row is not None and name in row]
        if known:
            rows = np.asarray([row is not None for row in cut], np.bool_)
            values = np.repeat(rows, tfdv.arrays.ListLengthsFromListArray(column).to_numpy())
            lengths[values] = list(chain.from_iterable(known))
        sizes[name] = lengths
        arrays[name] = _with_sizes(tfdv, column, np.zeros(len(lengths), np.int64))
    if sizes:
        batch = tfdv.pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))
    return Columns(batch, sizes)


def merged(tfdv: Tfdv, pieces: Sequence[Columns]) -> Any:
    """All pieces as one `RecordBatch`, in which the images have their sizes again.

    Their bytes are zeros that nobody reads.
    """
    batches = [piece.batch for piece in pieces]
    batch = tfdv.tables.MergeRecordBatches(batches) if len(batches) > 1 else batches[0]
    sizes: dict[str, list[NDArray[np.int64]]] = {}
    for piece in pieces:
        for name, more in piece.sizes.items():
            sizes.setdefault(name, []).append(more)
    if not sizes:
        return batch
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    for name, parts in sizes.items():
        arrays[name] = _with_sizes(tfdv, arrays[name], np.concatenate(parts))
    return tfdv.pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays))


def _holds_bytes(tfdv: Tfdv, column: Any) -> bool:
    types = tfdv.pa.types
    return bool(types.is_large_list(column.type) and types.is_large_binary(column.type.value_type))


def _with_sizes(tfdv: Tfdv, column: Any, sizes: NDArray[np.int64]) -> Any:
    """The lists of `column`, with values of these sizes."""
    pa = tfdv.pa
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(_zeros(int(offsets[-1])))]
    values = pa.Array.from_buffers(pa.large_binary(), len(sizes), buffers)
    return pa.Array.from_buffers(
        column.type,
        len(column),
        column.buffers()[:2],
        null_count=column.null_count,
        offset=column.offset,
        children=[values],
    )


_mapped: list[memoryview] = []


def _zeros(size: int) -> memoryview:
    """So many zeros, always the same ones: pages that are mapped and that nobody writes to."""
    if not _mapped or len(_mapped[0]) < size:
        _mapped[:] = [memoryview(mmap.mmap(-1, max(size, _MAPPED)))]
    return _mapped[0][:size]

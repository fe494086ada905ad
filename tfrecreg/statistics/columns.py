"""From payloads to Arrow record batches, which are all that TFDV reads.

Where all records of a batch have the same layout, their columns are read straight from the bytes
(:class:`LayoutReader`, see :mod:`tfrecreg.example.columns`); otherwise `tfx_bsl` decodes them.
TFDV asks of a feature with an image domain how many values there are and how large they are. Both
are in the tags and lengths of the wire format, so :class:`Cutter` replaces each image by an empty
value before it is decoded, and the decoded column gets the sizes back.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.example.columns import Column, Layout, Slot, layout_of
from tfrecreg.example.decode import decode_or_none
from tfrecreg.example.encode import encode
from tfrecreg.example.features import bytes_feature
from tfrecreg.example.model import Example, Kind
from tfrecreg.example.wire import varint
from tfrecreg.records.batch import RecordBatch
from tfrecreg.records.payload_columns import layout_columns
from tfrecreg.statistics.tfdv import Tfdv

Sizes = dict[str, list[int]]
"""Sizes in bytes of the values that were cut out, by image feature, in order."""

_EMPTY = b"\n\x00"
"""An empty value of a `BytesList`."""
_MAX_STUBS = 64


class Cutter:
    """Cuts the values of some features out of Examples."""

    def __init__(self, features: Iterable[str]) -> None:
        self._names = {name.encode(): name for name in features}
        self._stubs: dict[tuple[str, int], bytes] = {}

    def cut(self, memory: bytes, start: int, length: int) -> tuple[bytes, Sizes] | None:
        """The Example at `start` with empty values in place of the images, and their sizes.

        Features without bytes are not changed, whatever their declaration.

        Returns:
            None if the payload is not canonical: then it may not be an Example.
        """
        try:
            return self._cut(memory, start, start + length)
        except IndexError:
            return None

    def cut_decoded(self, example: Example) -> tuple[bytes, Sizes]:
        """As :meth:`cut`, of an Example that was decoded."""
        features = dict(example)
        sizes: Sizes = {}
        for name in self._names.values():
            feature = features.get(name)
            if feature is not None and feature.kind is Kind.BYTES:
                sizes[name] = [len(value) for value in feature.values]
                features[name] = bytes_feature([b""] * feature.count)
        return encode(features), sizes

    def _cut(self, memory: bytes, start: int, end: int) -> tuple[bytes, Sizes] | None:
        if start == end:
            return b"", {}
        size, position = _length(memory, start + 1)
        if memory[start] != 0x0A or position + size != end:
            return None
        pieces: list[bytes] = []
        cut: Sizes = {}
        kept = position
        names = self._names
        while position < end:
            # Most lengths are of one byte, and a call takes longer than all else here.
            size = memory[position + 1]
            inside = position + 2
            if size > 127:
                size, inside = _length(memory, position + 1)
            behind = inside + size
            if memory[position] != 0x0A or memory[inside] != 0x0A or behind > end:
                return None
            size = memory[inside + 1]
            first = inside + 2
            if size > 127:
                size, first = _length(memory, inside + 1)
            value = first + size
            name = names.get(memory[first:value])
            if name is not None:
                values = _values(memory, value, behind)
                if values is None or name in cut:
                    return None
                cut[name] = values
                pieces += (memory[kept:position], self._stub(name, len(values)))
                kept = behind
            position = behind
        pieces.append(memory[kept:end])
        rest = b"".join(pieces)
        return b"".join((b"\n", varint(len(rest)), rest)), cut

    def _stub(self, name: str, count: int) -> bytes:
        """The map entry of a feature with this number of empty values."""
        stub = self._stubs.get((name, count))
        if stub is None:
            values = _field(0x0A, _EMPTY * count)
            stub = _field(0x0A, _field(0x0A, name.encode()) + _field(0x12, values))
            if len(self._stubs) < _MAX_STUBS:
                self._stubs[name, count] = stub
        return stub


def _values(memory: bytes, position: int, end: int) -> list[int] | None:
    """The sizes of the values of the `Feature` field at `position`, which reaches to `end`."""
    size, inside = _length(memory, position + 1)
    if memory[position] != 0x12 or inside + size != end or not size or memory[inside] != 0x0A:
        return None
    size, position = _length(memory, inside + 1)
    if position + size != end:
        return None
    sizes = []
    while position < end:
        if memory[position] != 0x0A:
            return None
        size, position = _length(memory, position + 1)
        sizes.append(size)
        position += size
    return sizes if position == end else None


def _length(memory: bytes, position: int) -> tuple[int, int]:
    """The length at `position`, and where it ends."""
    size = memory[position]
    position += 1
    if size < 128:
        return size, position
    size &= 127
    for shift in (7, 14, 21, 28):
        byte = memory[position]
        position += 1
        size |= (byte & 127) << shift
        if byte < 128:
            return size, position
    raise IndexError("a length of more than five bytes")


def _field(tag: int, content: bytes) -> bytes:
    return bytes((tag,)) + varint(len(content)) + content


_LONGEST = 5
"""Bytes of the length of a field that a payload can hold."""


def are_single_fields(batch: RecordBatch) -> bool:
    """Whether every payload is a single field 1 that holds bytes, as Examples are, or is empty.

    A SequenceExample with feature lists, an event and most other messages are not: protobuf would
    parse many of them as Examples all the same.
    """
    memory = np.frombuffer(batch.memory, np.uint8)
    starts = np.asarray(batch.starts, np.int64)
    lengths = np.asarray(batch.lengths, np.int64)
    starts, lengths = starts[lengths > 0], lengths[lengths > 0]
    if not len(starts):
        return True
    size = np.zeros(len(starts), np.int64)
    header = np.ones(len(starts), np.int64)
    more: NDArray[np.bool_] = np.ones(len(starts), np.bool_)
    for place in range(_LONGEST):
        # Bytes behind the end of the memory are arbitrary: the length excludes them.
        byte = memory[np.minimum(starts + 1 + place, len(memory) - 1)].astype(np.int64)
        size += np.where(more, (byte & 127) << (7 * place), 0)
        header += more
        more &= byte > 127
    single = (memory[starts] == 0x0A) & ~more & (header + size == lengths)
    return bool(single.all())


def has_empty_rows(batch: Any) -> bool:
    """Whether a row of a pyarrow `RecordBatch` has no feature: it may be no Example at all."""
    if not batch.num_rows:
        return False
    if any(column.null_count == 0 for column in batch.columns):
        return False
    empty: NDArray[np.bool_] = np.ones(batch.num_rows, np.bool_)
    for column in batch.columns:
        empty &= np.asarray(column.is_null())
    return bool(empty.any())


_MAPPED = 128 << 20
"""Zeros that are mapped at first: more than the images of a batch take."""


class Columns(NamedTuple):
    """A decoded batch: the images' values are empty, their sizes beside it."""

    batch: Any
    """A pyarrow `RecordBatch`."""
    sizes: dict[str, NDArray[np.int64]]
    """Sizes in bytes of all values, by image feature that holds bytes, in order."""


def take_sizes(
    tfdv: Tfdv, batch: Any, cut: Sequence[Sizes | None], images: Sequence[str]
) -> Columns:
    """The batch with its images as sizes.

    Args:
        tfdv: the result of :func:`load_tfdv`.
        cut: of each row the sizes of the values that were cut out; None where nothing was.
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

    Their bytes are zeros that are never read.
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
    """Shared zeros: mapped pages that are never written to."""
    if not _mapped or len(_mapped[0]) < size:
        _mapped[:] = [memoryview(mmap.mmap(-1, max(size, _MAPPED)))]
    return _mapped[0][:size]


_PATIENCE = 8
"""Batches in a row that have no layout of theirs, after which no more layouts are searched for."""


class LayoutReader:
    """Reads batches whose records have one layout.

    Args:
        images: features that need only sizes.
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
            rows, columns = layout_columns(layout, batch.memory, batch.starts, batch.lengths)
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

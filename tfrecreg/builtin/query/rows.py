"""Makes the catalog of one shard, with rows of records and boxes, during a scan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.query.catalog import (
    BOX_COLUMNS,
    CLASS_BYTES,
    CLASS_NAMES,
    COLUMN_FEATURES,
    IMAGE_COLUMNS,
    METADATA,
    MORE,
    OBJECT_NUMBERS,
    OBJECT_SIDES,
    OBJECT_TEXT,
    SHORT_BYTES,
    SHORT_VALUES,
    SIDES,
    CatalogEntry,
    CellColumns,
    arrow_module,
    parquet,
)
from tfrecreg.core.check.infer import LARGE_LIMIT, LargeRecords
from tfrecreg.core.check.scan.interface import Shard, Visitor
from tfrecreg.core.example.columns import Column, Slot
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.images.model import ImageError, ImageHeader
from tfrecreg.core.images.read import read_header
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.batch_columns import batch_digests, divide_batch
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.records.index import INDEX_LIMIT, Index, read_index
from tfrecreg.core.schema.image_features import ImageFeatures
from tfrecreg.core.schema.labels import BOX, OBJECT_LABEL
from tfrecreg.core.values.errors import TfrecregError

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
    """An array for all rows, with the values of some rows, and nulls in the other rows."""
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
        values = [
            each if each is None else each.decode("utf-8", "backslashreplace")
            for each in raw.to_pylist()
        ]
        return pa.array(values, pa.string())


_FEATURES = frozenset((*BOX, OBJECT_LABEL))


_BoxTotals = tuple[int, float | None, float | None]
"""The number of boxes of a record, the sum of their areas, as a fraction of the image's area, and
the smallest area. The areas are None if a box lacks a side."""


def may_have_boxes(example: Example) -> bool:
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

    def add(self, record: int, key: str | None, example: Example) -> _BoxTotals:
        """Add the objects of one record.

        Lists of different lengths, which a check reports, are padded with nulls.
        """
        sides = {name: _values(example, feature, Kind.FLOAT) for name, feature in SIDES}
        labels = _values(example, OBJECT_LABEL, Kind.INT64)
        count = max(len(labels), *map(len, sides.values()))
        if not count:
            return 0, 0.0, None
        for name, values in (*sides.items(), ("label_number", labels)):
            self._columns[name] += (*values, *[None] * (count - len(values)))
        for name, feature in MORE:
            values = _values(example, feature, None)[:count]
            self._columns[name] += (*values, *[None] * (count - len(values)))
        names = _values(example, OBJECT_TEXT, Kind.BYTES)[:count]
        self._texts += (*names, *[None] * (count - len(names)))
        self._records += [record] * count
        self._keys += [key] * count
        self._numbers += range(count)
        if any(len(each) != count for each in sides.values()):
            return count, None, None
        xmin, xmax, ymin, ymax = (np.array(sides[side], np.float64) for side in OBJECT_SIDES)
        areas = (xmax - xmin) * (ymax - ymin)
        return count, float(areas.sum()), float(areas.min())

    def to_arrow(self, pa: Any) -> Any:
        # Other tools sometimes store whole numbers as floats: both kinds become floats here.
        numbers = {name: pa.array(self._columns[name], pa.float64()) for name in OBJECT_NUMBERS}
        numbers["label_number"] = pa.array(self._columns["label_number"], pa.int64())
        return pa.table(
            {
                "record": pa.array(self._records, pa.int64()),
                "key": pa.array(self._keys, pa.string()),
                "object": pa.array(self._numbers, pa.int64()),
                "text": texts(pa, pa.array(self._texts, pa.binary())),
                **{name: pa.array(self._columns[name], pa.float32()) for name in OBJECT_SIDES},
                **numbers,
            }
        )


def _values(example: Example, name: str, kind: Kind | None) -> tuple[Any, ...]:
    """The values of a feature if it has this kind, otherwise empty. None means any numeric kind."""
    feature = example.get(name)
    if feature is None or not feature.count:
        return ()
    expected = (kind,) if kind is not None else (Kind.INT64, Kind.FLOAT)
    return feature.values if feature.kind in expected else ()


CHUNK_ROWS = 1 << 18
_CHUNK_BYTES = 64 << 20
"""Maximum memory for uncompressed rows and their values, in bytes."""
_ROW_BYTES = 100


class CatalogRows:
    """Collects the rows of one shard, and compresses them as Parquet if they need much memory."""

    def __init__(self) -> None:
        self.rows = 0
        """Number of uncompressed rows."""
        self._boxes = BoxRows()
        self._left_out: set[str] = set()
        self._numbers: dict[tuple[str, Kind], int] = {}
        self._names: set[str] = set()
        self._columns: dict[int, CellColumns] = {}
        self._fields: dict[str, Any] = {}
        self._waiting: list[bytes] = []
        self._objects: list[bytes] = []
        self._begin()

    def _begin(self) -> None:
        self._held = 0
        self._records: list[_Ints] = []
        self._offsets: list[_Ints] = []
        self._lengths: list[_Ints] = []
        self._digests: list[bytes] = []
        self._without_digest: list[int] = []
        self._keys: list[str | None] = []
        self._kinds: list[str | None] = []
        self._features: dict[int, FeatureCells] = {}
        self._images: dict[int, ImageHeader] = {}
        self._box_rows: dict[int, _BoxTotals] = {}

    def make_room(self) -> None:
        """Compress the rows if they take too much memory."""
        beyond = self._held + self.rows * _ROW_BYTES >= _CHUNK_BYTES
        if beyond or self.rows >= CHUNK_ROWS or len(self._boxes) >= CHUNK_ROWS:
            table = self._table()
            self._waiting.append(_parquet([table], table.schema))
            self._begin()
            self.rows = 0
            if len(self._boxes):
                objects = self._boxes.to_arrow(arrow_module())
                self._objects.append(_parquet([objects], objects.schema))
                self._boxes = BoxRows()

    def add_rows(
        self,
        first: int,
        offsets: Sequence[int],
        lengths: Sequence[int],
        digests: bytes | None,
        keys: Sequence[str | None],
        kinds: npt.NDArray[np.object_],
    ) -> int:
        """Add consecutive records. Returns the row number of the first record."""
        row, count = self.rows, len(lengths)
        self._records.append(np.arange(first, first + count))
        self._offsets.append(np.array(offsets, np.int64))
        self._lengths.append(np.array(lengths, np.int64))
        if digests is None:
            self._without_digest += range(row, row + count)
        self._digests.append(digests or bytes(DIGEST_BYTES * count))
        self._keys += keys
        self._kinds += kinds.tolist()
        self.rows += count
        return row

    def add_column(self, rows: _Ints, slot: Slot, column: Column, memory: bytes) -> None:
        """Add the values that one feature has in records with the same layout."""
        cells = self._cells(slot.name, slot.kind)
        if cells is not None:
            self._held += cells.add_column(rows, slot, column, memory)

    def add_feature(self, row: int, name: str, feature: Feature) -> None:
        """Add the values of one feature of one record, unless the feature has no kind."""
        cells = self._cells(name, feature.kind) if feature.kind else None
        if cells is not None:
            self._held += cells.add(row, feature)

    def add_image(self, row: int, value: bytes) -> None:
        """Add the :data:`IMAGE_COLUMNS` that the header of a record's image states."""
        with suppress(ImageError):  # then they are null, and a check reports the reason
            self._images[row] = read_header(value)
            self._held += _ROW_BYTES

    def add_boxes(self, row: int, record: int, key: str | None, example: Example) -> None:
        """Add the objects of a record, if it has a feature of boxes."""
        if may_have_boxes(example):
            self._box_rows[row] = self._boxes.add(record, key, example)
            self._held += _ROW_BYTES

    def to_parquet(self, shard: str, index: str, faults: int) -> tuple[CatalogEntry, bytes, bytes]:
        """The entry, the file of the records, and the file of objects (empty if none exist)."""
        pa, last = arrow_module(), self._table()
        objects = [*map(_table_of, self._objects)]
        if len(self._boxes):
            objects.append(self._boxes.to_arrow(pa))
        entry = CatalogEntry(
            shard=shard,
            index=index,
            faults=faults,
            left_out=tuple(sorted(self._left_out)),
            features=tuple(self._columns.values()),
            has_images=IMAGE_COLUMNS[0] in self._fields,
            has_boxes=BOX_COLUMNS[0] in self._fields,
            has_objects=bool(objects),
        )
        for number, told in self._columns.items():
            field = self._fields.get(f"v{number}")
            if told.is_list and field is not None and not pa.types.is_list(field.type):
                # The lists are in other chunks, and too long to be stored.
                self._fields[field.name] = field.with_type(pa.list_(field.type))
        schema = pa.schema(list(self._fields.values()), {METADATA: msgspec.json.encode(entry)})
        records = _parquet(chain(map(_table_of, self._waiting), [last]), schema)
        return entry, records, _parquet(objects, objects[0].schema) if objects else b""

    def _table(self) -> Any:
        """The uncompressed rows, as Arrow."""
        pa = arrow_module()
        none = np.empty(0, np.int64)
        columns: dict[str, Any] = {
            "record": pa.array(np.concatenate((none, *self._records))),
            "offset": pa.array(np.concatenate((none, *self._offsets))),
            "bytes": pa.array(np.concatenate((none, *self._lengths))),
            "digest": self._digest_column(pa),
            "key": pa.array(self._keys, pa.string()),
            "payload": pa.array(self._kinds, pa.string()),
        }
        if self._images:
            of_rows = [self._images.get(row) for row in range(self.rows)]
            for name in IMAGE_COLUMNS:
                values = [None if each is None else getattr(each, name) for each in of_rows]
                columns[name] = pa.array(values, pa.string() if name == "format" else pa.int64())
        if self._box_rows:
            totals = [self._box_rows.get(row) for row in range(self.rows)]
            for place, name in enumerate(BOX_COLUMNS):
                values = [None if each is None else each[place] for each in totals]
                columns[name] = pa.array(values, pa.float64() if place else pa.int64())
        for number, cells in self._features.items():
            told, found = cells.to_arrow(pa, self.rows)
            before = self._columns.get(number)
            self._columns[number] = told if before is None else before.joined(told)
            columns |= {f"{kind}{number}": array for kind, array in found.items()}
        table = pa.table(columns)
        for field in table.schema:
            if field.name not in self._fields or pa.types.is_list(field.type):
                self._fields[field.name] = field
        return table

    def _digest_column(self, pa: Any) -> Any:
        data = pa.py_buffer(b"".join(self._digests))
        column = pa.Array.from_buffers(pa.binary(DIGEST_BYTES), self.rows, [None, data])
        if not self._without_digest:
            return column
        absent = np.zeros(self.rows, np.bool_)
        absent[self._without_digest] = True
        return column.take(pa.array(np.arange(self.rows), mask=absent))

    def _cells(self, feature: str, kind: Kind) -> FeatureCells | None:
        """The cells of a feature; None if it is beyond the first :data:`COLUMN_FEATURES`."""
        number = self._numbers.get((feature, kind))
        if number is None:
            if feature not in self._names and len(self._names) >= COLUMN_FEATURES:
                if len(self._left_out) < COLUMN_FEATURES:
                    self._left_out.add(feature)
                return None
            self._names.add(feature)
            number = self._numbers[feature, kind] = len(self._numbers)
        known = self._features.get(number)
        if known is None:
            known = self._features[number] = FeatureCells(feature, kind)
        return known


def _table_of(data: bytes) -> Any:
    return parquet().read_table(arrow_module().BufferReader(data))


def _parquet(tables: Iterable[Any], schema: Any) -> bytes:
    """Join tables into one Parquet file. A table may lack some of the columns of `schema`."""
    pa, pq = arrow_module(), parquet()
    out = pa.BufferOutputStream()
    waiting = iter(tables)
    first = next(waiting)
    # Keys, digests and numbers rarely repeat, so a dictionary is useless for them.
    repeating = [
        name
        for name in first.column_names
        if name != "key" and pa.types.is_string(first.column(name).type)
    ]
    with pq.ParquetWriter(
        out,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=repeating,
        # Readers skip row groups by the smallest and largest number, which leave out NaN.
        write_statistics=False,
    ) as writer:
        for table in chain([first], waiting):
            columns = [_column(pa, table, field) for field in schema]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    return bytes(out.getvalue())


def _column(pa: Any, table: Any, field: Any) -> Any:
    """The column `field` of a table, converted to the type of `field`. Single values become lists
    if needed. If the table lacks the column, all values are null. But if a column of counts is
    missing, the count is 1 in each row with a single value.
    """
    kind, number = field.name[:1], field.name[1:]
    if field.name in table.column_names:
        column = table.column(field.name)
        if column.type == field.type:
            return column
        values = pa.concat_arrays(column.chunks)
        present = values.is_valid().to_numpy(zero_copy_only=False)
        # Arrow's lists run to the next valid offset, so the values must not contain the nulls.
        ends = np.cumsum(np.append(False, present), dtype=np.int32)
        offsets = pa.array(ends, mask=np.append(~present, False))
        return pa.ListArray.from_arrays(offsets, values.drop_null())
    single = next((each for each in (f"s{number}", f"v{number}") if each in table.column_names), "")
    if kind != "n" or not single:
        return pa.nulls(table.num_rows, field.type)
    absent = table.column(single).is_null().to_numpy()
    return pa.array(np.ones(table.num_rows, np.uint32), mask=absent)


class CatalogPart(NamedTuple):
    """The catalog of one shard. Picklable; it takes about 40 bytes per record."""

    entry: CatalogEntry
    records: bytes
    """The Parquet file of records."""
    objects: bytes
    """The Parquet file of their objects; empty without objects."""
    problem: str
    """Why the shard is not a TFRecord; empty if it is one."""


class CatalogVisitor(Visitor):
    """Makes the catalog of a shard. A record gets the key of the index entry with the same number,
    but only if their digests match.
    """

    def __init__(self, shard: Shard) -> None:
        self._rows = CatalogRows()
        self._images = ImageFeatures()
        self._large = LargeRecords(shard.storage, shard.path, shard.name)
        self._index, self._index_digest = _index_of(shard)
        self._faults = 0
        self._problem = ""

    def batch(self, batch: RecordBatch) -> None:
        self._rows.make_room()
        digests = self._digests(batch)
        keys = self._keys(batch.first, len(batch), digests)
        kinds = np.full(len(batch), None)
        if not batch.whole:
            self._rows.add_rows(batch.first, batch.offsets, batch.lengths, digests, keys, kinds)
            return
        first, memory = self._rows.rows, batch.memory
        groups, rest = divide_batch(batch)
        for positions, sample, columns in groups:
            rows = positions + first
            for slot, column in columns.values():
                self._rows.add_column(rows, slot, column, memory)
            kinds[positions] = PayloadKind.EXAMPLE.value
            for name in self._images.of(sample)[:1]:
                _, column = columns[name]
                spans = zip(column.start.tolist(), column.stop.tolist(), strict=True)
                values = (memory[start:stop] for start, stop in spans)
                for row, value in zip(rows.tolist(), values, strict=True):
                    self._rows.add_image(row, value)
            if may_have_boxes(sample):
                for place in positions.tolist():
                    example = batch.example(place)
                    if example is not None:
                        record = batch.first + place
                        self._rows.add_boxes(first + place, record, keys[place], example)
        for place in rest:
            example = batch.example(place)
            kind = kind_of(memory, batch.starts[place], batch.lengths[place], example)
            kinds[place] = kind.value
            if kind is PayloadKind.EXAMPLE and example is not None:
                self._example(first + place, batch.first + place, keys[place], example)
        self._rows.add_rows(batch.first, batch.offsets, batch.lengths, digests, keys, kinds)

    def fault(self, fault: Fault) -> None:
        self._faults += 1
        if fault.code == "CRC008":
            self._problem = fault.detail

    def close(self, end: StreamEnd) -> CatalogPart:
        self._large.close()
        made = self._rows.to_parquet(end.blake3 or "", self._index_digest, self._faults)
        return CatalogPart(*made, self._problem)

    def _example(self, row: int, record: int, key: str | None, example: Example) -> None:
        for name in sorted(example):
            self._rows.add_feature(row, name, example[name])
        for name in self._images.of(example)[:1]:
            self._rows.add_image(row, example[name].first(1)[0])
        self._rows.add_boxes(row, record, key, example)

    def _digests(self, batch: RecordBatch) -> bytes | None:
        """The record digests; None if a record is too large for memory."""
        if batch.whole:
            return batch_digests(batch)
        if batch.lengths[0] > LARGE_LIMIT:
            return None
        return record_digest(canonical(self._large.payload(batch)))

    def _keys(self, first: int, count: int, digests: bytes | None) -> list[str | None]:
        index = self._index
        if index is None or digests is None:
            return [None] * count
        found = np.frombuffer(digests, f"V{DIGEST_BYTES}")
        known = np.frombuffer(index.digests[first : first + count].tobytes(), found.dtype)
        same = np.zeros(count, np.bool_)
        same[: len(known)] = known == found[: len(known)]
        return [
            index.key(first + place)
            .encode("utf-8", "surrogateescape")
            .decode("utf-8", "backslashreplace")
            if is_same
            else None
            for place, is_same in enumerate(same.tolist())
        ]


def _index_of(shard: Shard) -> tuple[Index | None, str]:
    """The index of a shard, and the index's digest. A damaged index is ignored."""
    if shard.index is None:
        return None, ""
    try:
        data = shard.storage.read(shard.index, limit=INDEX_LIMIT)
        return read_index(data, shard.index), blake3(data).hexdigest()
    except TfrecregError:
        return None, ""

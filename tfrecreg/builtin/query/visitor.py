"""The catalog of one shard, made in the pass of a scan."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from blake3 import blake3

from tfrecreg.builtin.query.rows import CatalogEntry, CatalogRows, may_have_boxes
from tfrecreg.core.check.infer import LARGE_LIMIT, LargeRecords
from tfrecreg.core.check.scan.interface import Shard, Visitor
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example
from tfrecreg.core.images.model import ImageError
from tfrecreg.core.images.read import read_header
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.batch_columns import batch_digests, divide_batch
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.records.index import INDEX_LIMIT, Index, read_index
from tfrecreg.core.schema.image_features import ImageFeatures
from tfrecreg.core.values.errors import TfrecregError


class CatalogPart(NamedTuple):
    """The catalog of one shard. Picklable; it takes about 40 bytes per record."""

    entry: CatalogEntry
    records: bytes
    """The Parquet file of records."""
    objects: bytes
    """That of their objects; empty if there are none."""
    problem: str
    """Why it is not a TFRecord; empty if it is one."""


class CatalogVisitor(Visitor):
    """Makes the catalog of a shard. A key is taken from the index only for a record whose digest
    the index has there.
    """

    def __init__(self, shard: Shard) -> None:
        self._rows = CatalogRows()
        self._images = ImageFeatures()
        self._large = LargeRecords(shard, "check")
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
                    self._image(row, value)
            if may_have_boxes(sample):
                for place in positions.tolist():
                    example = batch.example(place)
                    if example is not None:
                        self._boxes(first + place, batch.first + place, keys[place], example)
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
            self._image(row, example[name].first(1)[0])
        self._boxes(row, record, key, example)

    def _image(self, row: int, value: bytes) -> None:
        try:
            self._rows.add_image(row, read_header(value))
        except ImageError:
            return  # the columns are null; a check says why

    def _boxes(self, row: int, record: int, key: str | None, example: Example) -> None:
        if may_have_boxes(example):
            self._rows.add_boxes(row, self._rows.boxes.add(record, key, example))

    def _digests(self, batch: RecordBatch) -> bytes | None:
        """The record digests; None for a record that is too large to be held."""
        if batch.whole:
            return batch_digests(batch)
        (offset,), (length,) = batch.offsets, batch.lengths
        payload = (
            self._large.payload(batch.first, offset, length) if length <= LARGE_LIMIT else None
        )
        return None if payload is None else record_digest(canonical(payload))

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
    """The index of a shard, and its digest; a damaged one is ignored."""
    if shard.index is None:
        return None, ""
    try:
        data = shard.storage.read(shard.index, limit=INDEX_LIMIT)
        return read_index(data, shard.index), blake3(data).hexdigest()
    except TfrecregError:
        return None, ""

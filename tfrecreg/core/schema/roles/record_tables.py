"""The records of a batch as tables of columns, without decoding each record.

Records of one source mostly have the same features in the same order. Validators read single
columns, and a few array operations find these in hundreds of records: see
:mod:`tfrecreg.core.example.columns`. The first validator that asks creates the tables and digests of a
batch, and all others share them.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.example.columns import Column, Slot, divide
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.digests import DIGEST_BYTES

_Ints = npt.NDArray[np.int64]


class Table(NamedTuple):
    """Records of a batch with the same layout.

    Each feature has a single value; lists of floats may have more, the same number in each record.
    """

    positions: _Ints
    """Positions in the batch, ascending."""
    sample: Example
    """One of the records, decoded."""
    columns: Mapping[str, tuple[Slot, Column]]
    """Columns by feature, one row per record."""


class Tables:
    """The records of a batch: tables, and the rest, which is decoded record by record."""

    def __init__(self, batch: RecordBatch) -> None:
        # The batch holds its tables. A cycle would keep its memory until the next collection.
        self._batch: RecordBatch = weakref.proxy(batch)
        self._digests: dict[tuple[int, str], list[bytes]] = {}
        groups, rest = divide(batch.memory, batch.starts, batch.lengths, batch.example)
        self.tables = [Table(*each) for each in groups]
        self.rest = rest
        """Positions of the records that are not in a table."""

    def examples(self) -> Iterator[tuple[int, Example | None]]:
        """Position and content of the records that are not in a table."""
        if len(self.rest) == len(self._batch):
            yield from enumerate(self._batch.examples)
            return
        for position in self.rest:
            yield position, self._batch.example(position)

    def values(self, table: Table, name: str) -> Iterator[bytes]:
        """The values of a feature of bytes in a table, row by row."""
        memory = self._batch.memory
        _, column = table.columns[name]
        for start, stop in zip(column.start.tolist(), column.stop.tolist(), strict=True):
            yield memory[start:stop]

    def digests(self, table: Table, name: str) -> list[bytes]:
        """16 bytes of blake3 of each of these values, computed once per batch."""
        key = id(table), name
        if key not in self._digests:
            self._digests[key] = [
                blake3(value).digest(DIGEST_BYTES) for value in self.values(table, name)
            ]
        return self._digests[key]


def value_digest(batch: RecordBatch, position: int, name: str, feature: Feature) -> bytes:
    """16 bytes of blake3 of the values of a feature of bytes, computed once per batch.

    The digest of a single value covers its bytes alone.
    """
    known: dict[int, bytes] = batch.shared.setdefault((value_digest, name), {})
    digest = known.get(position)
    if digest is None:
        digest = known[position] = _digest(feature)
    return digest


def _digest(feature: Feature) -> bytes:
    if feature.count == 1:
        return blake3(feature.values[0]).digest(DIGEST_BYTES)
    hasher = blake3()
    for value in feature.values:
        hasher.update(len(value).to_bytes(8, "little"))
        hasher.update(value)
    return hasher.digest(DIGEST_BYTES)


def tables_of(batch: RecordBatch) -> Tables:
    """The tables of a batch with its records in memory; always the same object."""
    known: Tables | None = batch.shared.get(tables_of)
    if known is None:
        known = batch.shared[tables_of] = Tables(batch)
    return known


def holds_bytes(table: Table, name: str) -> bool:
    """Whether a table has a feature of bytes with that name."""
    return name in table.columns and table.columns[name][0].kind is Kind.BYTES


def holds_integers(table: Table, name: str) -> bool:
    """Whether a table has a feature of integers with that name."""
    return name in table.columns and table.columns[name][0].kind is Kind.INT64

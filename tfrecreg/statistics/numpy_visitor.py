"""Statistics of a shard without TFDV: from payloads to columns, with NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tfrecreg.example.columns import Column, Slot, divide
from tfrecreg.example.kinds import PayloadKind, kind_of
from tfrecreg.example.model import Example, Feature, Kind
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.scan.interface import Visitor
from tfrecreg.statistics.frequent import value_key
from tfrecreg.statistics.numpy_accumulate import ExampleColumns, Values
from tfrecreg.statistics.options import StatisticsOptions
from tfrecreg.statistics.part import Conflict, StatisticsPart

_ROWS = 2_000
_VALUES = 1 << 18
"""Decoded examples, and values in them (words of 8 bytes), that become columns together."""


class NumpyVisitor(Visitor):
    """Makes the statistics of one shard. A :class:`tfrecreg.scan.interface.Visitor`."""

    def __init__(self, options: StatisticsOptions) -> None:
        self._images = frozenset(options.images())
        self._part = StatisticsPart(options)
        self._decoded = _Decoded(self._images)
        self.closed: StatisticsPart | None = None
        """The part, once there is one."""

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            self._part.left_out.large += len(batch)
            return
        groups, rest = divide(batch.memory, batch.starts, batch.lengths, batch.example)
        for positions, _, columns in groups:
            found = {
                name: self._values(slot, column, batch.memory)
                for name, (slot, column) in columns.items()
            }
            self._add(ExampleColumns(len(positions), found))
        for position in rest:
            example = batch.example(position)
            kind = kind_of(batch.memory, batch.starts[position], batch.lengths[position], example)
            if kind is not PayloadKind.EXAMPLE or example is None:
                self._part.left_out.count(kind)
                continue
            conflict = self._decoded.add(example)
            if conflict is not None:
                self._part.clash(conflict)
            if self._decoded.is_full:
                self._flush()

    def fault(self, fault: Fault) -> None:
        del fault  # `check` names it
        self._part.left_out.damaged += 1

    def close(self, end: StreamEnd) -> StatisticsPart:
        del end
        self._flush()
        self.closed = self._part
        return self._part

    def _flush(self) -> None:
        rows = self._decoded.rows()
        self._decoded = _Decoded(self._images)
        self._add(rows)

    def _add(self, rows: ExampleColumns) -> None:
        kinds = {name: values.kind for name, values in rows.columns.items()}
        self._part.meet({name: kind.name.lower() for name, kind in kinds.items() if kind})
        self._part.add(rows)

    def _values(self, slot: Slot, column: Column, memory: bytes) -> Values:
        counts = np.full(len(column.start), slot.values, np.int64)
        if slot.kind is Kind.INT64:
            return Values(slot.kind, counts, column.integers)
        if slot.kind is Kind.FLOAT:
            places = column.start[:, None] + np.arange(4 * slot.values)
            floats = np.frombuffer(memory, np.uint8)[places].view("<f4").reshape(-1)
            return Values(slot.kind, counts, floats)
        sizes = column.stop - column.start
        if slot.name in self._images:
            return Values(slot.kind, counts, sizes)
        spans = zip(column.start.tolist(), column.stop.tolist(), strict=True)
        keys = [value_key(memory[start:stop]) for start, stop in spans]
        return Values(slot.kind, counts, sizes, keys)


class _Decoded:
    """Examples that were decoded one by one, until they become columns.

    Args:
        images: features of which only sizes are kept.
    """

    def __init__(self, images: frozenset[str]) -> None:
        self._images = images
        self._count = self._values = 0
        self._features: dict[str, tuple[Kind, list[int], list[Any], list[bytes]]] = {}
        """Kind, numbers of values, numbers or sizes, keys."""

    @property
    def is_full(self) -> bool:
        """Whether it is worth it to make columns."""
        return self._count >= _ROWS or self._values >= _VALUES

    def add(self, example: Example) -> Conflict | None:
        """Take in an example; a feature of another kind than before is a conflict."""
        self._count += 1
        for name, feature in example.items():
            known = self._features.get(name)
            if known is None or not known[0]:
                known = self._features[name] = (feature.kind, [], [], [])
            if feature.kind is Kind.UNSET:
                continue
            kind, counts, numbers, keys = known
            if feature.kind is not kind:
                return Conflict.of(name, kind.name.lower(), feature.kind.name.lower())
            counts.append(feature.count)
            self._values += feature.count
            self._take(name, feature, numbers, keys)
        return None

    def rows(self) -> ExampleColumns:
        """All of them as columns."""
        columns = {}
        for name, (kind, counts, numbers, keys) in self._features.items():
            if kind is Kind.FLOAT:
                values = np.frombuffer(b"".join(numbers), "<f4")
            else:
                values = np.asarray(numbers, np.int64)
            columns[name] = Values(kind, np.asarray(counts, np.int64), values, keys)
        return ExampleColumns(self._count, columns)

    def _take(self, name: str, feature: Feature, numbers: list[Any], keys: list[bytes]) -> None:
        if feature.kind is Kind.FLOAT:
            numbers.append(bytes(feature.packed_floats))
        elif feature.kind is Kind.INT64:
            numbers += feature.values
        elif name in self._images:
            numbers += feature.sizes
        else:
            numbers += map(len, feature.values)
            taken = [value_key(value) for value in feature.values]
            keys += taken
            self._values += sum(map(len, taken)) >> 3

"""Statistics of a shard: from payloads to columns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import chain

import numpy as np

from tfrecreg.builtin.statistics.accumulate import ExampleColumns, Values
from tfrecreg.builtin.statistics.frequent import value_key
from tfrecreg.builtin.statistics.options import StatisticsOptions
from tfrecreg.builtin.statistics.part import Conflict, StatisticsPart
from tfrecreg.core.check.scan.interface import Visitor
from tfrecreg.core.example.columns import Column, Slot
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example, Feature, Kind
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.payload_columns import divide_batch

_ROWS = 2_000
_BYTES = 8 << 20
"""Decoded examples, and bytes of their payloads, that become columns together."""


class StatisticsVisitor(Visitor):
    """Makes the statistics of one shard. A :class:`tfrecreg.core.check.scan.interface.Visitor`."""

    def __init__(self, options: StatisticsOptions) -> None:
        self._images = frozenset(options.images())
        self._derives = bool(options.derived())
        self._part = StatisticsPart(options)
        self._decoded: list[Example] = []
        self._held = 0
        """Bytes of the payloads that decoded examples reference."""
        self.closed: StatisticsPart | None = None
        """The part, once there is one."""

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            self._part.left_out.large += len(batch)
            return
        groups, rest = divide_batch(batch)
        for positions, _, columns in groups:
            found = {
                name: self._values(slot, column, batch.memory)
                for name, (slot, column) in columns.items()
            }
            lengths = {name: slot.values for name, (slot, _) in columns.items()}
            shared = [(lengths, len(positions))] if self._derives else []
            self._add(ExampleColumns(len(positions), found, shared))
        for position in rest:
            example = batch.example(position)
            kind = kind_of(batch.memory, batch.starts[position], batch.lengths[position], example)
            if kind is not PayloadKind.EXAMPLE or example is None:
                self._part.left_out.count(kind)
                continue
            self._decoded.append(example)
            self._held += batch.lengths[position]
            if len(self._decoded) >= _ROWS or self._held >= _BYTES:
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
        examples, self._decoded, self._held = self._decoded, [], 0
        found = _columns(examples, self._images)
        if isinstance(found, Conflict):
            self._part.clash(found)
            found = ExampleColumns(len(examples), {})
        elif self._derives:
            found = found._replace(lengths=[(_lengths(each), 1) for each in examples])
        self._add(found)

    def _add(self, rows: ExampleColumns) -> None:
        kinds = {name: values.kind for name, values in rows.columns.items()}
        self._part.note_types({name: kind.name.lower() for name, kind in kinds.items() if kind})
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


def _lengths(example: Example) -> dict[str, int]:
    """The number of values of each feature with a kind."""
    return {name: feature.count for name, feature in example.items() if feature.kind}


def _columns(examples: Sequence[Example], images: frozenset[str]) -> ExampleColumns | Conflict:
    """Decoded examples as columns, or the first feature that has values of two types."""
    features: defaultdict[str, list[Feature]] = defaultdict(list)
    for example in examples:
        for name, feature in example.items():
            features[name].append(feature)
    columns = {}
    for name, found in features.items():
        kinds = {feature.kind for feature in found}
        if Kind.UNSET in kinds:
            found = [feature for feature in found if feature.kind]
            kinds.discard(Kind.UNSET)
        if len(kinds) > 1:
            one, other = sorted(kinds)[:2]
            return Conflict.of(name, one.name.lower(), other.name.lower())
        columns[name] = _column(max(kinds, default=Kind.UNSET), found, name in images)
    return ExampleColumns(len(examples), columns)


def _column(kind: Kind, features: Sequence[Feature], is_image: bool) -> Values:
    """The values of features of one kind."""
    counts = np.fromiter((feature.count for feature in features), np.int64, len(features))
    total = int(counts.sum())
    if kind is Kind.FLOAT:
        packed = b"".join([feature.packed_floats for feature in features])
        return Values(kind, counts, np.frombuffer(packed, "<f4"))
    if kind is Kind.BYTES and not is_image:
        values = [value for feature in features for value in feature.values]
        sizes = np.fromiter(map(len, values), np.int64, total)
        return Values(kind, counts, sizes, [value_key(value) for value in values])
    lists = (feature.sizes if is_image else feature.values for feature in features)
    return Values(kind, counts, np.fromiter(chain.from_iterable(lists), np.int64, total))

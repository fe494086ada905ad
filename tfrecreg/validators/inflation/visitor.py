"""Weighs one shard, and looks at some of its records."""

from __future__ import annotations

from collections import Counter

from tfrecreg.example import Example, Kind
from tfrecreg.example.kinds import PayloadKind, kind_of
from tfrecreg.findings import Location
from tfrecreg.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.scan.interface import Shard
from tfrecreg.validators.inflation.looks import Look
from tfrecreg.validators.inflation.numbers import message_bytes
from tfrecreg.validators.inflation.part import MOST_FEATURES, Sizes
from tfrecreg.validators.inflation.repeats import Repeats
from tfrecreg.validators.inflation.sampling import sampled
from tfrecreg.validators.inflation.shape import declared_sides
from tfrecreg.validators.tables import Table, Tables, tables_of
from tfrecreg.validators.values import value_digest

__all__ = ["Scale"]

_LARGE = 1024
"""Bytes of a feature from which on it is worth knowing whether they were there before."""
_MOST_REPEATED = 4
"""Features of which that is counted."""
_FRAME = 16


class Scale:
    """Weighs one shard and each of its features.

    Args:
        shard: the shard.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._features: Counter[str] = Counter()
        self._part = Sizes()

    def batch(self, batch: RecordBatch) -> None:
        if not batch.whole:
            return
        tables = tables_of(batch)
        lengths = batch.lengths
        for table in tables.tables:
            self._weigh(tables, table)
            self._part.examples_bytes += sum(
                lengths[position] + _FRAME for position in table.positions.tolist()
            )
        features = self._features
        for position, example in tables.examples():
            if example is not None and len(example):
                self._part.examples_bytes += lengths[position] + _FRAME
            for name, feature in example.items() if example is not None else ():
                size = feature.wire_bytes
                features[name] += size
                if size >= _LARGE and feature.kind is Kind.BYTES:
                    repeats = self._repeats(name)
                    if repeats is not None:
                        repeats.add(value_digest(batch, position, name, feature), size)
        for number in sampled(batch.first, batch.first + len(batch)):
            position = number - batch.first
            example = tables.example(position)
            start, length = batch.starts[position], batch.lengths[position]
            # A SequenceExample can be read as an Example without features.
            kind = kind_of(batch.memory, start, length, example)
            if example is not None and kind is PayloadKind.EXAMPLE:
                self._look(batch, position, example)

    def _weigh(self, tables: Tables, table: Table) -> None:
        """Count the features of records of one layout."""
        for name, (slot, column) in table.columns.items():
            sizes = message_bytes(column.stop - column.start)
            self._features[name] += int(sizes.sum())
            if slot.kind is not Kind.BYTES or not (sizes >= _LARGE).any():
                continue
            repeats = self._repeats(name)
            if repeats is not None:
                digests = tables.digests(table, name)
                for digest, size in zip(digests, sizes.tolist(), strict=True):
                    if size >= _LARGE:
                        repeats.add(digest, size)

    def fault(self, fault: Fault) -> None:
        """Damaged records weigh what they weigh: the file's size has them."""

    def close(self, end: StreamEnd) -> Sizes:
        part = self._part
        part.file_bytes, part.stream_bytes = end.file_bytes, end.stream_bytes
        part.records = end.records
        part.features = dict(self._features)
        for name, look in part.looks.items():
            look.spread(part.features.get(name, 0))
        return part

    def _repeats(self, name: str) -> Repeats | None:
        """Where large values of a feature are counted, if they are."""
        known = self._part.repeats
        if name not in known and len(known) < _MOST_REPEATED:
            known[name] = Repeats()
        return known.get(name)

    def _look(self, batch: RecordBatch, position: int, example: Example) -> None:
        part = self._part
        part.sampled += 1
        part.sampled_bytes += batch.lengths[position] + _FRAME
        declared = declared_sides(example)
        for name, feature in example.items():
            look = part.looks.get(name)
            if look is None:
                if len(part.looks) >= MOST_FEATURES:
                    continue
                look = part.looks[name] = Look()
                part.first[name] = self._place(batch, position, name)
            look.add(name, feature, declared)
            if look.values and name not in part.first_numbers:
                part.first_numbers[name] = self._place(batch, position, name)

    def _place(self, batch: RecordBatch, position: int, feature: str) -> Location:
        return Location(
            split=self._shard.split or None,
            shard=self._shard.name,
            record=batch.first + position,
            offset=batch.offsets[position],
            length=batch.lengths[position],
            feature=feature,
        )

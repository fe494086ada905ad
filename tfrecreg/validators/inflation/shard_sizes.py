"""Which records of a shard are looked at closely: the same ones in every run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tfrecreg.example import Example, Kind
from tfrecreg.example.kinds import PayloadKind, kind_of
from tfrecreg.findings import Location
from tfrecreg.records.batch import RecordBatch, StreamEnd
from tfrecreg.scan.interface import Shard, Visitor
from tfrecreg.validators.image_features import value_digest
from tfrecreg.validators.inflation.feature_sample import Look, message_bytes
from tfrecreg.validators.inflation.stored_numbers import declared_sides
from tfrecreg.validators.record_tables import Table, Tables, tables_of

__all__ = ["MOST", "MOST_FEATURES", "Repeats", "Scale", "Sizes", "sampled"]


_BITS = 3


def sampled(first: int, stop: int) -> Iterator[int]:
    """Those of the numbers from `first` to before `stop` whose records are looked at, rising.

    They are the first eight, and then four of each doubling: so few are looked at of any shard
    (49 of 10,000), and nobody has to know how many there are.
    """
    number = first
    while number < stop:
        step = 1 << max(0, number.bit_length() - _BITS)
        number += -number % step
        if number < stop:
            yield number
        number += 1


MOST = 1024
"""Different values that are counted, for each feature."""


class _Row(NamedTuple):
    digest: str
    times: int
    size: int


class Repeats:
    """Counts the values of one feature. Mergeable, small."""

    # It is msgspec's to pack: see tfrecreg.scan.tally.Plain.
    plain_type = list[_Row]

    def __init__(self) -> None:
        self._seen: dict[bytes, list[int]] = {}
        self._last = b"\xff" * 17  # behind every digest

    def add(self, digest: bytes, size: int, times: int = 1) -> None:
        """Count a value.

        Args:
            digest: 16 bytes that name it.
            size: its bytes.
            times: how often it is there.
        """
        known = self._seen.get(digest)
        if known is not None:
            known[0] += times
        elif digest < self._last:
            self._seen[digest] = [times, size]
            if len(self._seen) > 2 * MOST:
                self._forget()

    def merge(self, other: Repeats) -> None:
        """Take in what was counted elsewhere."""
        for digest, (times, size) in other._seen.items():
            self.add(digest, size, times)

    @property
    def share(self) -> float:
        """The part of the bytes, 0 to 1, that are values that were there before."""
        self._forget()
        every = sum(times * size for times, size in self._seen.values())
        once = sum(size for _, size in self._seen.values())
        return 1 - once / every if every else 0.0

    @property
    def times(self) -> float:
        """How often a value is there, on average."""
        self._forget()
        every = sum(times for times, _ in self._seen.values())
        return every / len(self._seen) if self._seen else 0.0

    def _forget(self) -> None:
        """Keep the smallest digests."""
        if len(self._seen) > MOST:
            kept = sorted(self._seen)[:MOST]
            self._seen = {digest: self._seen[digest] for digest in kept}
            self._last = kept[-1]

    def plain(self) -> list[_Row]:
        self._forget()
        return [_Row(digest.hex(), *counts) for digest, counts in sorted(self._seen.items())]

    @classmethod
    def of_plain(cls, plain: list[_Row]) -> Repeats:
        repeats = cls()
        for row in plain:
            repeats.add(bytes.fromhex(row.digest), row.size, row.times)
        return repeats


MOST_FEATURES = 200
"""So many features are looked at closely: names come from the data."""


@dataclass(slots=True)
class Sizes:
    """What one shard weighs, and what was seen of it; then what all of them do."""

    file_bytes: int = 0
    stream_bytes: int = 0
    """Without compression."""
    records: int = 0
    features: dict[str, int] = field(default_factory=dict)
    """Bytes of every feature, exactly."""
    examples_bytes: int = 0
    """Of the records that these are in, names, lengths and framing too."""
    sampled: int = 0
    """Records that were looked at closely."""
    sampled_bytes: int = 0
    """Their bytes in the stream, framing and all."""
    looks: dict[str, Look] = field(default_factory=dict)
    """Of the features in these."""
    first: dict[str, Location] = field(default_factory=dict)
    """The first of these that has a feature."""
    first_numbers: dict[str, Location] = field(default_factory=dict)
    """The first in which it holds numbers that could be stored otherwise."""
    repeats: dict[str, Repeats] = field(default_factory=dict)
    """Of features with large values."""

    def merge(self, other: Sizes) -> None:
        """Take in the next shard."""
        self.file_bytes += other.file_bytes
        self.stream_bytes += other.stream_bytes
        self.records += other.records
        self.examples_bytes += other.examples_bytes
        self.sampled += other.sampled
        self.sampled_bytes += other.sampled_bytes
        _add(self.features, other.features)
        for name, place in other.first.items():
            self.first.setdefault(name, place)
        for name, place in other.first_numbers.items():
            self.first_numbers.setdefault(name, place)
        for name, look in other.looks.items():
            if name in self.looks:
                self.looks[name].merge(look)
            else:
                self.looks[name] = look
        for name, repeats in other.repeats.items():
            self.repeats.setdefault(name, Repeats()).merge(repeats)


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


_LARGE = 1024
"""Bytes of a feature from which on it is worth knowing whether they were there before."""
_MOST_REPEATED = 4
"""Features of which that is counted."""
_FRAME = 16


class Scale(Visitor):
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
                part.first[name] = self._shard.locate(batch, position, feature=name)
            look.add(name, feature, declared)
            if look.values and name not in part.first_numbers:
                part.first_numbers[name] = self._shard.locate(batch, position, feature=name)

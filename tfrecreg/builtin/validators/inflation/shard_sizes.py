"""Measures one shard: the exact size of each feature, and the details of sampled records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from tfrecreg.builtin.validators.inflation.feature_sample import FeatureSample
from tfrecreg.builtin.validators.inflation.stored_numbers import declared_shapes
from tfrecreg.core.check.scan.interface import Shard, Visitor
from tfrecreg.core.example.columns import message_bytes
from tfrecreg.core.example.kinds import PayloadKind, decode_sequence, kind_of
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.records.batch import RecordBatch, StreamEnd
from tfrecreg.core.schema.payload_kinds import Table, Tables, tables_of, value_digest
from tfrecreg.core.values.findings import Location

_BITS = 3


def sampled(first: int, stop: int) -> Iterator[int]:
    """The numbers of the sampled records in ``range(first, stop)``, ascending.

    The first eight records are sampled, then four more each time the record number doubles. For
    example, 49 of 10,000 records are sampled. The sample is the same in every run, and does not
    depend on how many records follow.
    """
    number = first
    while number < stop:
        step = 1 << max(0, number.bit_length() - _BITS)
        number += -number % step
        if number < stop:
            yield number
        number += 1


MOST = 1024
"""This many distinct values are counted per feature."""


@dataclass(slots=True)
class Repeats:
    """Estimates the share of repeated values in a feature. Memory is bounded. Mergeable.

    The values with the smallest digests are counted exactly. Digests are uniformly distributed, so
    these values have the same share of repeats as all values. If a digest is among the smallest
    digests of all shards together, it is also among the smallest digests of each shard in which it
    occurs. So the counts of all shards can be added. The result is exact for up to :data:`MOST`
    distinct values.
    """

    seen: dict[bytes, list[int]] = field(default_factory=dict)
    """Number of occurrences and size of each value. The key is its digest."""
    last: bytes = b"\xff" * 17
    """The greatest counted digest. At first it is greater than every digest."""

    def add(self, digest: bytes, size: int, times: int = 1) -> None:
        """Count a value."""
        known = self.seen.get(digest)
        if known is not None:
            known[0] += times
        elif digest < self.last:
            self.seen[digest] = [times, size]
            if len(self.seen) > 2 * MOST:
                self._forget()

    def merge(self, other: Repeats) -> None:
        for digest, (times, size) in other.seen.items():
            self.add(digest, size, times)

    def measured(self) -> tuple[float, float]:
        """Two numbers: how often a value occurs on average, and the share of all bytes (0 to 1)
        that repeats an earlier value.
        """
        self._forget()
        if not self.seen:
            return 0.0, 0.0
        every = sum(times * size for times, size in self.seen.values())
        once = sum(size for _, size in self.seen.values())
        return sum(times for times, _ in self.seen.values()) / len(self.seen), 1 - once / every

    def _forget(self) -> None:
        """Keep only the smallest digests."""
        if len(self.seen) > MOST:
            kept = sorted(self.seen)[:MOST]
            self.seen = {digest: self.seen[digest] for digest in kept}
            self.last = kept[-1]


MOST_FEATURES = 200
"""Maximum number of sampled features. Their names come from the data, so they need a limit."""


@dataclass(slots=True)
class ShardSizes:
    """Sizes in bytes of one shard, or of all shards after merging."""

    file_bytes: int = 0
    stream_bytes: int = 0
    """Size without compression."""
    records: int = 0
    features: dict[str, int] = field(default_factory=dict)
    """Exact size of each feature in bytes."""
    examples_bytes: int = 0
    """Size in bytes of all Examples, with names, lengths and framing."""
    sampled: int = 0
    """Number of sampled records."""
    sampled_bytes: int = 0
    """Size of the sampled records in the stream, with framing."""
    samples: dict[str, FeatureSample] = field(default_factory=dict)
    """Samples by feature."""
    first: dict[str, Location] = field(default_factory=dict)
    """Location of the first sampled record that has a feature."""
    first_numbers: dict[str, Location] = field(default_factory=dict)
    """For each feature, the first record with numbers that could be stored in another form."""
    repeats: dict[str, Repeats] = field(default_factory=dict)
    """Repeats of the features with large values."""


_LARGE = 1024
"""Only values with at least this many bytes are checked for repeats."""
_MOST_REPEATED = 4
"""Repeats are counted for at most this many features."""
_FRAME = 16


class SizesVisitor(Visitor):
    """Measures one shard and each of its features."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        self._features: Counter[str] = Counter()
        self._part = ShardSizes()

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
            kind = kind_of(batch.memory, batch.starts[position], lengths[position], example)
            if kind is PayloadKind.SEQUENCE_EXAMPLE:  # its context was counted as an Example
                if not example:
                    self._part.examples_bytes += lengths[position] + _FRAME
                sequence = decode_sequence(batch.payload(position))
                for name, steps in sequence.lists.items() if sequence is not None else ():
                    features[name] += sum(step.wire_bytes for step in steps)
        for number in sampled(batch.first, batch.first + len(batch)):
            position = number - batch.first
            example = batch.example(position)
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

    def close(self, end: StreamEnd) -> ShardSizes:
        part = self._part
        part.file_bytes, part.stream_bytes = end.file_bytes, end.stream_bytes
        part.records = end.records
        part.features = dict(self._features)
        for name, sample in part.samples.items():
            sample.spread(part.features.get(name, 0))
        return part

    def _repeats(self, name: str) -> Repeats | None:
        """The counter of a feature's large values, if they are counted."""
        known = self._part.repeats
        if name not in known and len(known) < _MOST_REPEATED:
            known[name] = Repeats()
        return known.get(name)

    def _look(self, batch: RecordBatch, position: int, example: Example) -> None:
        part = self._part
        part.sampled += 1
        part.sampled_bytes += batch.lengths[position] + _FRAME
        declared = declared_shapes(example)
        for name, feature in example.items():
            sample = part.samples.get(name)
            if sample is None:
                if len(part.samples) >= MOST_FEATURES:
                    continue
                sample = part.samples[name] = FeatureSample()
                part.first[name] = self._shard.locate(batch, position, feature=name)
            sample.add(name, feature, declared)
            if sample.values and name not in part.first_numbers:
                part.first_numbers[name] = self._shard.locate(batch, position, feature=name)

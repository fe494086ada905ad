"""Estimates quantiles and frequencies of many values in bounded memory.

Quantiles are deterministic and mergeable. If a feature has at most 4,096 distinct numbers, each
distinct number is counted, and the quantiles are exact. If a feature has more distinct numbers, the
numbers are stored in levels. Each number in level i represents 2^i numbers. When a level is full,
it is sorted, and every second number moves up a level: numbers 1, 3, 5 … one time, numbers 2, 4, 6
… the next time. A move up from level i changes a rank by at most 2^i. N numbers cause at most
N / (4095 · 2^i) such moves. So the rank of a quantile is off by at most (1 + log2(N / 4096)) / 4095
of all numbers: 0.3 % for a million, 0.5 % for a billion.

The module also finds the most frequent values of features, and counts distinct values.

As long as the counts of all features fit in memory, the counts are exact. If the counts no longer
fit, the largest feature switches to two deterministic, mergeable sketches:

* Misra and Gries' counters estimate frequencies. Each counter is too low, by less than 1/1024 of
  the number of values.
* The 16,384 smallest hashes estimate the number of distinct values. The standard error is 0.8 %.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

CAPACITY = 4096
"""Maximum number of distinct numbers to count exactly, and maximum size of a level."""


class Quantiles:
    """The distribution of numbers except NaN. Picklable. Quantiles that are not exact depend on the
    order in which numbers are added.
    """

    def __init__(self) -> None:
        self._new: list[_Floats] = []
        """Numbers that were added but are not counted yet."""
        self._waiting = 0
        self._values: _Floats = np.zeros(0)
        """The distinct numbers in ascending order; empty once levels are used."""
        self._counts: _Ints = np.zeros(0, np.int64)
        self._levels: list[_Floats] = []
        """The levels; empty as long as numbers are counted exactly."""
        self._from_second: list[bool] = []

    def add(self, numbers: _Floats) -> None:
        """Add numbers other than NaN."""
        self._new.append(numbers)
        self._waiting += len(numbers)
        if self._waiting >= CAPACITY:
            self._settle()

    def merge(self, other: Quantiles) -> None:
        other._settle()
        self._settle()
        self._count(other._values, other._counts)
        for level, numbers in enumerate(other._levels):
            self._use_levels()
            self._push(level, numbers)

    def counts(self) -> tuple[_Floats, _Ints]:
        """The stored numbers in ascending order, and how many numbers each represents."""
        self._settle()
        if not self._levels:
            return self._values, self._counts
        weights = [
            np.full(len(each), 1 << level, np.int64) for level, each in enumerate(self._levels)
        ]
        return _counted(np.concatenate(self._levels), np.concatenate(weights))

    def _settle(self) -> None:
        new, self._new, self._waiting = self._new, [], 0
        if not new:
            return
        numbers = np.concatenate(new)
        if self._levels:
            self._push(0, numbers)
        else:
            self._count(*np.unique(numbers, return_counts=True))

    def _count(self, values: _Floats, counts: _Ints) -> None:
        """Add numbers with their frequencies."""
        if not self._levels:
            values, counts = _counted(
                np.concatenate((self._values, values)), np.concatenate((self._counts, counts))
            )
            self._values, self._counts = values, counts
            if len(values) > CAPACITY:
                self._use_levels()
            return
        for level in range(int(counts.max(initial=0)).bit_length()):
            self._push(level, values[(counts >> level) & 1 == 1])

    def _use_levels(self) -> None:
        """Switch from counts to levels. The switch itself loses nothing."""
        if not self._levels:
            values, counts = self._values, self._counts
            self._values, self._counts = values[:0], counts[:0]
            self._levels, self._from_second = [values[:0]], [False]
            self._count(values, counts)

    def _push(self, level: int, numbers: _Floats) -> None:
        """Add numbers to a level. If the level is full, move half of the level's numbers up."""
        while level >= len(self._levels):
            self._levels.append(np.zeros(0))
            self._from_second.append(False)
        held = np.concatenate((self._levels[level], numbers))
        if len(held) < CAPACITY:
            self._levels[level] = held
            return
        held.sort()
        even = len(held) & ~1
        self._levels[level] = held[even:]
        start = int(self._from_second[level])
        self._from_second[level] = not start
        self._push(level + 1, held[start:even:2])


def _counted(values: _Floats, counts: _Ints) -> tuple[_Floats, _Ints]:
    """The distinct values in ascending order, with their total counts."""
    distinct, place = np.unique(values, return_inverse=True)
    summed = np.zeros(len(distinct), np.int64)
    np.add.at(summed, place.reshape(-1), counts)
    return distinct, summed


def ranked(values: _Floats, counts: _Ints, buckets: int) -> _Floats:
    """The bounds of buckets that each have an equal share of the numbers, shape (buckets + 1,).

    The N numbers are sorted in ascending order. Bound k is at index ``N * k // buckets``, as in
    TFDV.
    """
    behind = np.cumsum(counts)
    places = np.minimum(behind[-1] * np.arange(buckets + 1) // buckets, behind[-1] - 1)
    bounds: _Floats = values[np.searchsorted(behind, places, "right")]
    return bounds


MAX_BYTES = 32 << 20
"""Approximate maximum memory of all counts. If they need more, the largest feature is sketched."""

_EACH = 128
"""Memory overhead of a value, in bytes."""

_LONG = 256
_HEAD = 64

RANKS = 1000
"""Maximum number of frequent values to list per feature."""
_COUNTERS = 1024
_HASHES = 16384
_LARGE = 1024
_LARGE_LABEL = b"__LARGE_BYTES__"
# The numbers of TFDV's `stats_impl` and of its `TopKUniquesSketchStatsGenerator`.

CountedValue = bytes | int


class Frequent(NamedTuple):
    top: list[tuple[int, CountedValue]]
    """The most frequent values with their counts, in descending order of count, then of value."""
    unique: int
    """Number of distinct values."""


class ValueCounts:
    """How often each value of each feature occurs. Picklable, mergeable."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._counts: dict[str, dict[CountedValue, int]] = {}
        self._bytes: dict[str, int] = {}
        self._total = 0
        self._sketches: dict[str, _Sketch] = {}
        """Sketches of the features with too many values."""

    @property
    def sketched(self) -> tuple[str, ...]:
        """The features whose values are sketched, sorted by name."""
        return tuple(sorted(self._sketches))

    def add(self, feature: str, pairs: Iterable[tuple[CountedValue, int]]) -> None:
        """Add values with their frequencies. Pass bytes through :func:`value_key`."""
        if feature in self._sketches:
            self._sketches[feature].add(dict(pairs))
            return
        counts = self._counts.setdefault(feature, {})
        size = size_before = self._bytes.get(feature, 0)
        for value, count in pairs:
            before = counts.get(value)
            if before is None:
                counts[value] = count
                size += _EACH + (len(value) if isinstance(value, bytes) else 0)
            else:
                counts[value] = before + count
        self._bytes[feature] = size
        self._total += size - size_before
        while self._total > self._max_bytes:
            self._sketch(max(self._bytes, key=lambda name: (self._bytes[name], name)))

    def merge(self, other: ValueCounts) -> None:
        """Add the counts of another object. Do not use that object afterwards."""
        for feature, sketch in other._sketches.items():
            if feature not in self._sketches:
                self._sketch(feature)
            self._sketches[feature].merge(sketch)
        for feature, counts in other._counts.items():
            self.add(feature, counts.items())

    def features(self) -> Iterator[tuple[str, Frequent]]:
        """The features that have values, sorted by name."""
        for feature in sorted({*self._counts, *self._sketches}):
            sketch = self._sketches.get(feature)
            counts = sketch.counts if sketch is not None else self._counts[feature]
            if counts:
                unique = sketch.unique() if sketch is not None else len(counts)
                pairs = ((count, value) for value, count in counts.items())
                yield feature, Frequent(heapq.nlargest(RANKS, pairs), unique)

    def _sketch(self, feature: str) -> None:
        """Switch from counts to a sketch."""
        self._total -= self._bytes.pop(feature, 0)
        sketch = self._sketches[feature] = _Sketch()
        sketch.add(self._counts.pop(feature, {}))


class _Sketch:
    """Misra and Gries' counters of values, and the smallest hashes of values."""

    def __init__(self) -> None:
        self.counts: dict[CountedValue, int] = {}
        """The most frequent values. All counts may be too low, by at most the same amount."""
        self._hashes: NDArray[np.uint64] = np.zeros(0, np.uint64)

    def add(self, counts: Mapping[CountedValue, int]) -> None:
        for value, count in counts.items():
            large = isinstance(value, bytes) and len(value) > _LARGE
            self._count(_LARGE_LABEL if large else value, count)
        self._reduce()
        digests = (
            blake3(value if isinstance(value, bytes) else b"%d" % value).digest(8)
            for value in counts
        )
        self._keep(np.frombuffer(b"".join(digests), np.uint64))

    def merge(self, other: _Sketch) -> None:
        for value, count in other.counts.items():
            self._count(value, count)
        self._reduce()
        self._keep(other._hashes)

    def unique(self) -> int:
        """Number of distinct values. It is exact below 16,384, and an estimate above."""
        if len(self._hashes) < _HASHES:
            return len(self._hashes)
        return round((_HASHES - 1) * 2.0**64 / float(self._hashes[-1]))

    def _count(self, value: CountedValue, count: int) -> None:
        self.counts[value] = self.counts.get(value, 0) + count

    def _reduce(self) -> None:
        """Drop the smallest counts, and subtract the largest dropped count from all others."""
        if len(self.counts) > _COUNTERS:
            least = heapq.nlargest(_COUNTERS + 1, self.counts.values())[-1]
            self.counts = {
                value: count - least for value, count in self.counts.items() if count > least
            }

    def _keep(self, hashes: NDArray[np.uint64]) -> None:
        self._hashes = np.unique(np.concatenate((self._hashes, hashes)))[:_HASHES]


def value_key(value: bytes) -> bytes:
    """The key under which a value is counted: the value itself, unless it is long and not UTF-8.

    A long value that is not UTF-8 is never shown, so its start and its digest suffice. The start
    of the value determines the place of the value among equally frequent values. UTF-8 never
    contains 0xFF.
    """
    if len(value) <= _LONG:
        return value
    try:
        value.decode()
    except UnicodeDecodeError:
        return value[:_HEAD] + b"\xff" + blake3(value).digest(16)
    return value

"""The most frequent values of features, and the number of distinct ones, in bounded memory.

Values are counted exactly while the counts of all features fit; then the feature that takes most
goes over to two mergeable sketches, which are deterministic:

* Misra and Gries' counters, for frequencies: each is too low by less than 1/1024 of all values
* the 16,384 smallest hashes, for the number of distinct values: its standard error is 0.8 %
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from tfrecreg.builtin.statistics.options import StatisticsOptions

MAX_BYTES = 32 << 20
"""Approximate maximum memory of all counted values; above it the largest feature is sketched."""

_EACH = 128
"""Overhead of a value in bytes."""

_LONG = 256
_HEAD = 64

_COUNTERS = 1024
_HASHES = 16384
_LARGE = 1024
_LARGE_LABEL = b"__LARGE_BYTES__"
# The numbers of TFDV's `stats_impl` and of its `TopKUniquesSketchStatsGenerator`.

CountedValue = bytes | int


class Frequent(NamedTuple):
    """The values of a feature."""

    top: list[tuple[int, CountedValue]]
    """The most frequent values and how often they occur, the most frequent first; of equal ones
    the largest."""
    unique: int
    """Number of distinct values."""


class ValueCounts:
    """How often each value of each feature occurs. Picklable, mergeable."""

    def __init__(self, options: StatisticsOptions, max_bytes: int = MAX_BYTES) -> None:
        self._most = max(options.num_top_values, options.num_rank_histogram_buckets)
        self._max_bytes = max_bytes
        self._counts: dict[str, dict[CountedValue, int]] = {}
        self._bytes: dict[str, int] = {}
        self._total = 0
        self._sketches: dict[str, _Sketch] = {}
        """Of features with too many values."""

    @property
    def sketched(self) -> tuple[str, ...]:
        """The features whose values are counted by sketches, in order of their names."""
        return tuple(sorted(self._sketches))

    def add(self, feature: str, pairs: Iterable[tuple[CountedValue, int]]) -> None:
        """Count values, bytes as :func:`value_key` has them, with the number of occurrences."""
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
        """Merge the counts of another one, which is unusable afterwards."""
        for feature, sketch in other._sketches.items():
            if feature not in self._sketches:
                self._sketch(feature)
            self._sketches[feature].merge(sketch)
        for feature, counts in other._counts.items():
            self.add(feature, counts.items())

    def features(self) -> Iterator[tuple[str, Frequent]]:
        """The features with a value, in order of their names."""
        for feature in sorted({*self._counts, *self._sketches}):
            sketch = self._sketches.get(feature)
            counts = sketch.counts if sketch is not None else self._counts[feature]
            if counts:
                unique = sketch.unique() if sketch is not None else len(counts)
                pairs = ((count, value) for value, count in counts.items())
                yield feature, Frequent(heapq.nlargest(self._most, pairs), unique)

    def _sketch(self, feature: str) -> None:
        """Go over from counts to a sketch."""
        self._total -= self._bytes.pop(feature, 0)
        sketch = self._sketches[feature] = _Sketch(max(_COUNTERS, self._most))
        sketch.add(self._counts.pop(feature, {}))


class _Sketch:
    """Counters of Misra and Gries, and the smallest hashes of all values."""

    def __init__(self, counters: int) -> None:
        self._counters = counters
        self.counts: dict[CountedValue, int] = {}
        """The most frequent values, each count too low by at most the same amount."""
        self._hashes: NDArray[np.uint64] = np.zeros(0, np.uint64)

    def add(self, counts: Mapping[CountedValue, int]) -> None:
        """Count values."""
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
        """Merge the counts of another one."""
        for value, count in other.counts.items():
            self._count(value, count)
        self._reduce()
        self._keep(other._hashes)

    def unique(self) -> int:
        """Number of distinct values: exact below 16,384, else an estimate."""
        if len(self._hashes) < _HASHES:
            return len(self._hashes)
        return round((_HASHES - 1) * 2.0**64 / float(self._hashes[-1]))

    def _count(self, value: CountedValue, count: int) -> None:
        self.counts[value] = self.counts.get(value, 0) + count

    def _reduce(self) -> None:
        """Subtract the first count that has no counter from all that have one."""
        if len(self.counts) > self._counters:
            least = heapq.nlargest(self._counters + 1, self.counts.values())[-1]
            self.counts = {
                value: count - least for value, count in self.counts.items() if count > least
            }

    def _keep(self, hashes: NDArray[np.uint64]) -> None:
        self._hashes = np.unique(np.concatenate((self._hashes, hashes)))[:_HASHES]


def value_key(value: bytes) -> bytes:
    """The counted form of a value: itself, unless it is long and not text.

    A long value that is not UTF-8 is never shown, so that its start, which places it among values
    that are as frequent, and its digest do. 0xFF is in no UTF-8.
    """
    if len(value) <= _LONG:
        return value
    try:
        value.decode()
    except UnicodeDecodeError:
        return value[:_HEAD] + b"\xff" + blake3(value).digest(16)
    return value

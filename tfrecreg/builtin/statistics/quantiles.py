"""Quantiles of many numbers in bounded memory, deterministic and mergeable.

Up to 4,096 distinct numbers are counted, so that quantiles are exact. Beyond, numbers are kept in
levels: one of level i stands for 2^i numbers. A level that is full is sorted, and every other
number moves up a level, from the first or from the second one in turn. Moving up from level i
changes a rank by at most 2^i, and happens at most N / (4095 · 2^i) times for N numbers, so the rank
of a quantile is off by at most (1 + log2(N / 4096)) / 4095 of all numbers: 0.3 % for a million,
0.5 % for a billion.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

CAPACITY = 4096
"""Distinct numbers that are counted exactly; then, numbers of a level."""


class Quantiles:
    """The distribution of numbers, NaN excluded. Picklable; the result depends on the order."""

    def __init__(self) -> None:
        self._new: list[_Floats] = []
        """Numbers that were added and are not counted yet."""
        self._waiting = 0
        self._values: _Floats = np.zeros(0)
        """Distinct numbers, ascending, as long as they are counted exactly."""
        self._counts: _Ints = np.zeros(0, np.int64)
        self._levels: list[_Floats] = []
        """Empty as long as numbers are counted exactly."""
        self._from_second: list[bool] = []

    def add(self, numbers: _Floats) -> None:
        """Add numbers other than NaN."""
        self._new.append(numbers)
        self._waiting += len(numbers)
        if self._waiting >= CAPACITY:
            self._settle()

    def merge(self, other: Quantiles) -> None:
        """Take in the numbers of another one."""
        other._settle()
        self._settle()
        self._count(other._values, other._counts)
        for level, numbers in enumerate(other._levels):
            self._use_levels()
            self._push(level, numbers)

    def counts(self) -> tuple[_Floats, _Ints]:
        """Numbers in ascending order, and how many each stands for."""
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
        """Take in numbers with their frequencies."""
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
        """Go over from counts to levels, which loses nothing yet."""
        if not self._levels:
            values, counts = self._values, self._counts
            self._values, self._counts = values[:0], counts[:0]
            self._levels, self._from_second = [values[:0]], [False]
            self._count(values, counts)

    def _push(self, level: int, numbers: _Floats) -> None:
        """Add numbers to a level, and move half of them up if it is full."""
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
    """Distinct values in ascending order, with the sums of their counts."""
    distinct, place = np.unique(values, return_inverse=True)
    summed = np.zeros(len(distinct), np.int64)
    np.add.at(summed, place.reshape(-1), counts)
    return distinct, summed


def ranked(values: _Floats, counts: _Ints, buckets: int) -> _Floats:
    """The bounds of buckets that hold as many numbers each, shape (buckets + 1,).

    Bound k is the number at index N k // buckets of all N numbers in ascending order, as in TFDV.
    """
    behind = np.cumsum(counts)
    places = np.minimum(behind[-1] * np.arange(buckets + 1) // buckets, behind[-1] - 1)
    bounds: _Floats = values[np.searchsorted(behind, places, "right")]
    return bounds

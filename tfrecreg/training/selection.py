"""The records of a source as ranges of numbers: slices and parts of splits, without a list."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt


class Selection:
    """A sequence of numbers that consists of ranges.

    Args:
        ranges: one after the other; empty ones are left out.
    """

    def __init__(self, ranges: Sequence[range]) -> None:
        self.ranges = tuple(each for each in ranges if len(each))
        self._starts = [0, *accumulate(map(len, self.ranges))]
        self._table = np.array(
            [
                [each.start for each in self.ranges],
                [each.step for each in self.ranges],
                self._starts[:-1],
            ],
            np.int64,
        )

    def __len__(self) -> int:
        return self._starts[-1]

    def number(self, position: int) -> int:
        """The number at a position, which is from 0 to ``len(self) - 1``."""
        part = bisect_right(self._starts, position) - 1
        return self.ranges[part][position - self._starts[part]]

    def numbers(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers at several positions, each of which is from 0 to ``len(self) - 1``."""
        parts = np.searchsorted(self._starts, positions, side="right") - 1
        first, step, start = self._table[:, parts]
        found: npt.NDArray[np.int64] = first + (positions - start) * step
        return found

    def part(self, positions: slice) -> Selection:
        """The numbers in a slice of the sequence."""
        wanted = range(len(self))[positions]
        if wanted.step < 0:
            parts = self._part(wanted[::-1])
            return Selection([each[::-1] for each in reversed(parts)])
        return Selection(self._part(wanted))

    def _part(self, wanted: range) -> list[range]:
        found: list[range] = []
        for start, numbers in zip(self._starts, self.ranges, strict=False):
            first = max(0, -(-(start - wanted.start) // wanted.step))
            last = max(0, -(-(start + len(numbers) - wanted.start) // wanted.step))
            inside = wanted[first:last]
            if inside:
                found.append(numbers[inside[0] - start : inside[-1] - start + 1 : wanted.step])
        return found

"""The records of a source as ranges of numbers: slices and parts of splits, without a list.

Only those that a condition selects are a list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from blake3 import blake3


class ChosenNumbers(NamedTuple):
    """The numbers of the records that a condition selects."""

    where: str
    """The condition."""
    numbers: npt.NDArray[np.int64]


class Selection:
    """A sequence of numbers that consists of ranges."""

    def __init__(self, ranges: Sequence[range], chosen: ChosenNumbers | None = None) -> None:
        self.ranges = tuple(each for each in ranges if len(each))
        self.chosen = chosen
        self._starts = [0, *accumulate(map(len, self.ranges))]
        self._table = np.array(
            [
                [each.start for each in self.ranges],
                [each.step for each in self.ranges],
                self._starts[:-1],
            ],
            np.int64,
        )

    @classmethod
    def of_chosen(cls, parts: Sequence[npt.NDArray[np.int64]], where: str) -> Selection:
        """Lists of numbers, one after the other, that a condition selects."""
        starts = [0, *accumulate(map(len, parts))]
        numbers = np.concatenate([np.empty(0, np.int64), *parts])
        return cls([range(*each) for each in pairwise(starts)], ChosenNumbers(where, numbers))

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def where(self) -> str | None:
        """The condition; None without one."""
        return None if self.chosen is None else self.chosen.where

    @cached_property
    def chosen_digest(self) -> str:
        """Hex digest of the list of numbers that the ranges are places of; empty without one."""
        if self.chosen is None:
            return ""
        return blake3(self.chosen.numbers.astype("<i8").tobytes()).hexdigest(16)

    def parts(self) -> Iterator[range | npt.NDArray[np.int64]]:
        """The numbers, range by range."""
        for each in self.ranges:
            yield each if self.chosen is None else self.chosen.numbers[np.array(each, np.int64)]

    def number(self, position: int) -> int:
        """The number at a position, which is from 0 to ``len(self) - 1``."""
        part = bisect_right(self._starts, position) - 1
        found = self.ranges[part][position - self._starts[part]]
        return found if self.chosen is None else int(self.chosen.numbers[found])

    def numbers(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers at several positions, each of which is from 0 to ``len(self) - 1``."""
        parts = np.searchsorted(self._starts, positions, side="right") - 1
        first, step, start = self._table[:, parts]
        found: npt.NDArray[np.int64] = first + (positions - start) * step
        return found if self.chosen is None else self.chosen.numbers[found]

    def part(self, positions: slice) -> Selection:
        """The numbers in a slice of the sequence."""
        wanted = range(len(self))[positions]
        if wanted.step < 0:
            parts = self._part(wanted[::-1])
            return Selection([each[::-1] for each in reversed(parts)], self.chosen)
        return Selection(self._part(wanted), self.chosen)

    def _part(self, wanted: range) -> list[range]:
        found: list[range] = []
        for start, numbers in zip(self._starts, self.ranges, strict=False):
            first = max(0, -(-(start - wanted.start) // wanted.step))
            last = max(0, -(-(start + len(numbers) - wanted.start) // wanted.step))
            inside = wanted[first:last]
            if inside:
                found.append(numbers[inside[0] - start : inside[-1] - start + 1 : wanted.step])
        return found

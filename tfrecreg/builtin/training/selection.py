"""The records of a source as ranges of numbers, and the damaged records that were left out.

The list of damaged records is a temporary file that worker processes share. Each record is appended
as a line, in a single write. A source that is unpickled on another machine starts its own list.
"""

from __future__ import annotations

import json
import os
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.values.errors import StorageError


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
        """Join lists of record numbers. These records were selected by a condition."""
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
        """Hex digest of the numbers that the condition selects; empty without a condition."""
        if self.chosen is None:
            return ""
        return blake3(self.chosen.numbers.astype("<i8").tobytes()).hexdigest(16)

    def parts(self) -> Iterator[range | npt.NDArray[np.int64]]:
        """The numbers, range by range."""
        for each in self.ranges:
            yield each if self.chosen is None else self.chosen.numbers[np.array(each, np.int64)]

    def number(self, position: int) -> int:
        """The number at a position from 0 to ``len(self) - 1``."""
        part = bisect_right(self._starts, position) - 1
        found = self.ranges[part][position - self._starts[part]]
        return found if self.chosen is None else int(self.chosen.numbers[found])

    def numbers(self, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers at several positions from 0 to ``len(self) - 1``."""
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


_READ_BYTES = 1 << 16


class SkippedRecord(NamedTuple):
    """A damaged record that was left out. Strings are escaped."""

    shard: str
    record: int
    """Number of the record in the shard."""
    reason: str
    """The fault with its byte and key, such as ``CRC002: data checksum should be …``."""


class SkippedRecords:
    """The records that all processes have left out so far."""

    def __init__(self, path: str = "") -> None:
        self._known: dict[int, SkippedRecord] = {}
        found = _opened(path)
        if found is None:
            found, path = _made()
            weakref.finalize(self, _remove, path, os.getpid())
        self._file, self.path = found, path
        """The path of the temporary file. Processes started by `spawn` open this path."""
        self._read = 0
        weakref.finalize(self, os.close, found)

    def add(self, number: int, record: SkippedRecord) -> int:
        """Add a record, and return how many records the list has."""
        if number not in self._known:
            line = (json.dumps([number, *record]) + "\n").encode("ascii")
            try:
                written = os.write(self._file, line)
            except OSError as error:
                raise _failed(self.path, error.strerror) from None
            if written < len(line):
                raise _failed(self.path, "No space left on device")
        return len(self._all())

    def records(self) -> tuple[SkippedRecord, ...]:
        """All records that were left out, in order of their numbers."""
        return tuple(record for _, record in sorted(self._all().items()))

    def _all(self) -> dict[int, SkippedRecord]:
        """All records by number. Records that were added since the last call are read first."""
        data = b""
        try:
            while more := os.pread(self._file, _READ_BYTES, self._read + len(data)):
                data += more
        except OSError as error:
            raise _failed(self.path, error.strerror) from None
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            number, *record = json.loads(line)
            self._known[number] = SkippedRecord(*record)
        self._read += len(whole)
        return self._known


def _failed(path: str, reason: str | None) -> StorageError:
    return StorageError(
        f"the list of damaged records in `{path}` cannot be read or written: {reason}",
        hint="`TMPDIR` names another folder for temporary files",
    )


_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


def _made() -> tuple[int, str]:
    try:
        handle, path = tempfile.mkstemp(prefix="tfrecreg-skipped-")
        os.close(handle)
        return os.open(path, _FLAGS), path
    except OSError as error:
        raise _failed(tempfile.gettempdir(), error.strerror) from None


def _opened(path: str) -> int | None:
    """Open the file that another process made; None if there is no such file."""
    with suppress(OSError):
        return os.open(path, _FLAGS)
    return None


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a process that was forked
        with suppress(OSError):
            os.remove(path)  # noqa: PTH107 - it runs while the process ends

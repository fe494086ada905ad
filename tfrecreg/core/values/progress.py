"""The progress of long work. Operations report it, and the user interface decides what to show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_PORTION, _PORTION_BYTES = 100, 1 << 20


class Progress(Protocol):
    """Receives reports of progress. Its methods are called in the parent process only."""

    def start(self, what: str, total: int, unit: str = "records") -> None:
        """Start work on `total` records (0 if unknown). `what` names it: "building mnist"."""

    def advance(self, records: int, size: int) -> None:
        """Report finished work: the number of records and their total size in bytes."""

    def stop(self) -> None:
        """End the piece of work, after success or failure."""

    def note(self, message: str) -> None:
        """Show a message of one line."""


class Silent:
    """A progress that ignores all reports."""

    def start(self, what: str, total: int, unit: str = "records") -> None:
        pass

    def advance(self, records: int, size: int) -> None:
        pass

    def stop(self) -> None:
        pass

    def note(self, message: str) -> None:
        pass


SILENT: Progress = Silent()


class Ticker:
    """Adds up counts and reports them in batches, which is faster than single reports."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._count = self._size = 0

    def add(self, count: int, size: int) -> None:
        self._count += count
        self._size += size
        if self._count >= _PORTION or self._size >= _PORTION_BYTES:
            self.flush()

    def flush(self) -> None:
        self._progress.advance(self._count, self._size)
        self._count = self._size = 0


@contextmanager
def working(progress: Progress, what: str, total: int, unit: str = "records") -> Iterator[None]:
    """Call :meth:`Progress.start` before the ``with`` block, and :meth:`Progress.stop` after it."""
    progress.start(what, total, unit)
    try:
        yield
    finally:
        progress.stop()


@contextmanager
def counting(progress: Progress, what: str, unit: str) -> Iterator[Ticker]:
    """Like :func:`working`, for work of unknown size. Yields a ticker. The code in the ``with``
    block adds counts to this ticker.
    """
    with working(progress, what, 0, unit):
        ticker = Ticker(progress)
        try:
            yield ticker
        finally:
            ticker.flush()

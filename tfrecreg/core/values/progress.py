"""Progress of long work. Operations report it; the user interface decides what to show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_PORTION, _PORTION_BYTES = 100, 1 << 20


class Progress(Protocol):
    """Receives reports of progress. Called in the parent process only."""

    def start(self, what: str, total: int, unit: str = "records") -> None:
        """Start a piece of work: `what` ("building mnist"), of `total` records (0: unknown)."""

    def advance(self, records: int, size: int) -> None:
        """Report `records` more records, of `size` bytes."""

    def stop(self) -> None:
        """End the piece of work, after success or failure."""

    def note(self, message: str) -> None:
        """Show a message of one line."""


class _Silent:
    def start(self, what: str, total: int, unit: str = "records") -> None:
        pass

    def advance(self, records: int, size: int) -> None:
        pass

    def stop(self) -> None:
        pass

    def note(self, message: str) -> None:
        pass


SILENT: Progress = _Silent()
"""A progress that ignores all reports."""


class Ticker:
    """Reports single counts in batches, which is faster."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._count = self._size = 0

    def add(self, count: int, size: int) -> None:
        """Add `count` more, of `size` bytes."""
        self._count += count
        self._size += size
        if self._count >= _PORTION or self._size >= _PORTION_BYTES:
            self.flush()

    def flush(self) -> None:
        """Report the counts so far."""
        self._progress.advance(self._count, self._size)
        self._count = self._size = 0


@contextmanager
def working(progress: Progress, what: str, total: int, unit: str = "records") -> Iterator[None]:
    """A piece of work, from :meth:`Progress.start` to :meth:`Progress.stop`."""
    progress.start(what, total, unit)
    try:
        yield
    finally:
        progress.stop()


@contextmanager
def counting(progress: Progress, what: str, unit: str) -> Iterator[Ticker]:
    """A piece of work of unknown size: a running count."""
    with working(progress, what, 0, unit):
        ticker = Ticker(progress)
        try:
            yield ticker
        finally:
            ticker.flush()

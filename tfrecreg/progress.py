"""How long work tells somebody how far it is. The operations call; a face decides what to show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_PORTION, _PORTION_BYTES = 100, 1 << 20


class Progress(Protocol):
    """Somebody who watches. Called in the parent process only."""

    def start(self, what: str, total: int, unit: str = "records") -> None:
        """A piece of work begins: `what` ("building mnist"), of `total` records (0: unknown).

        Args:
            what: is done.
            total: records, or whatever `unit` names in the plural.
            unit: the counted things.
        """

    def advance(self, records: int, size: int) -> None:
        """So many more records, of `size` bytes, are done."""

    def stop(self) -> None:
        """The piece of work is over, well or not."""

    def note(self, message: str) -> None:
        """Something a person should know, one line."""


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
"""Nobody watches."""


class Ticker:
    """Passes on single counts in batches, which cost little."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._count = self._size = 0

    def add(self, count: int, size: int) -> None:
        """So many more, of `size` bytes."""
        self._count += count
        self._size += size
        if self._count >= _PORTION or self._size >= _PORTION_BYTES:
            self.flush()

    def flush(self) -> None:
        """Pass on what was counted up to now."""
        self._progress.advance(self._count, self._size)
        self._count = self._size = 0


@contextmanager
def counting(progress: Progress, what: str, unit: str) -> Iterator[Ticker]:
    """A piece of work whose end nobody knows: a running count.

    Args:
        progress: who watches.
        what: is done.
        unit: the counted things, in the plural.
    """
    progress.start(what, 0, unit)
    ticker = Ticker(progress)
    try:
        yield ticker
    finally:
        ticker.flush()
        progress.stop()

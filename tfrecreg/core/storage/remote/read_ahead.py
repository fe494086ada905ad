"""Whole objects of a store, fetched before they are asked for, in bounded memory.

Whoever reads many of them knows their sizes from a listing. So each costs one request, and several
are on their way at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar

from tfrecreg.core.storage.interface import Reader, RereadableReader
from tfrecreg.core.storage.remote.daemon_threads import AT_ONCE, awaited, shared_threads
from tfrecreg.core.storage.remote.remote_reader import BLOCK_BYTES, transfer_error

_AHEAD = 2 * AT_ONCE
"""Maximum number of objects that are requested before they are read."""
_HELD_BYTES = 4 * BLOCK_BYTES
"""Maximum size of these objects together."""


class ReadAhead:
    """Objects that are read about in this order.

    Those above :data:`~tfrecreg.core.storage.remote.remote_reader.BLOCK_BYTES` are left out: they are read in
    blocks.
    """

    def __init__(
        self, root: str, fetch: Callable[[str, int], bytes], sized: Iterable[tuple[str, int]]
    ) -> None:
        self.root = root
        self._fetch = fetch
        # In place of a path that occurs again, its first place counts.
        sizes = {path: size for path, size in sized if size <= BLOCK_BYTES}
        self._objects = list(sizes.items())
        self._numbers = {path: number for number, path in enumerate(sizes)}
        self._first = 0
        """Number of the first object that was not taken."""
        self._next = 0
        """Number of the first object that was not requested."""
        self._requested: dict[int, Future[bytes]] = {}
        self._bytes = 0
        """Size of the objects in `_requested`."""

    def take(self, path: str) -> bytes | None:
        """The bytes of an object, once; None if it is not among the objects to read."""
        number = self._numbers.get(path, -1)
        if number < self._first:
            return None
        for skipped in range(self._first, number):
            self._drop(skipped)
        self._first, self._next = number, max(number, self._next)
        self._fill()
        try:
            return awaited(self._requested[number])
        finally:
            self._drop(number)
            self._first = number + 1
            self._fill()

    def close(self) -> None:
        """Forget everything."""
        for number in list(self._requested):
            self._drop(number)
        self._next = self._first = len(self._objects)

    def _fill(self) -> None:
        while self._next < min(len(self._objects), self._first + _AHEAD):
            path, size = self._objects[self._next]
            if self._requested and self._bytes + size > _HELD_BYTES:
                return
            self._requested[self._next] = shared_threads().submit(self._fetch, path, size)
            self._bytes += size
            self._next += 1

    def _drop(self, number: int) -> None:
        future = self._requested.pop(number, None)
        if future is not None:
            future.cancel()
            self._bytes -= self._objects[number][1]


_active: ContextVar[tuple[ReadAhead, ...]] = ContextVar("read_ahead", default=())


@contextmanager
def active(ahead: ReadAhead) -> Iterator[None]:
    """Have :func:`taken` use these objects, too, in this thread."""
    token = _active.set((ahead, *_active.get()))
    try:
        yield
    finally:
        _active.reset(token)
        ahead.close()


def taken(root: str, path: str) -> bytes | None:
    """The bytes of an object that was fetched ahead; None if it was not."""
    for ahead in _active.get():
        data = ahead.take(path) if ahead.root == root else None
        if data is not None:
            return data
    return None


class HeldReader(RereadableReader):
    """A file in memory. See :class:`tfrecreg.core.storage.interface.RereadableReader`."""

    def __init__(self, shown: str, data: bytes, opened: Callable[[], Reader]) -> None:
        self._shown, self._data, self._opened = shown, data, opened
        self.size = len(data)

    def read_at(self, start: int, length: int) -> bytes:
        if start == 0 and length >= self.size:
            return self._data
        return self._data[start : start + max(length, 0)]

    def confirm(self, start: int, stop: int) -> bool:
        del start, stop  # all of it was delivered
        with self._opened() as reader:
            if reader.size != self.size or reader.read_at(0, self.size) != self._data:
                raise transfer_error(self._shown)
        return True

    def close(self) -> None:
        self._data = b""

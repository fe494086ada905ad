"""Reads one file of a store. Fetches ranges in parallel before they are used, in bounded memory.

A reader that reads from front to back fetches blocks of :data:`BLOCK_BYTES`, several at once. A
reader that jumps fetches only the requested bytes. All readers of a process share :data:`_THREADS`
threads and the memory of :data:`_HELD` blocks.

If a file changes while it is read, or a range arrives with the wrong length, the reader raises an
error. Neither is reported as damage.

Code that reads many objects knows their sizes from a listing, so whole objects can be fetched
ahead. Then each object costs one request, and several requests run at once.
"""

from __future__ import annotations

import io
import itertools
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from blake3 import blake3

from tfrecreg.core.storage.file_systems import (
    AT_ONCE,
    awaited,
    invoke,
    kind_of_error,
    patiently,
    shared_threads,
)
from tfrecreg.core.storage.interface import Reader
from tfrecreg.core.storage.paths import locate
from tfrecreg.core.values.errors import StorageError, TransferError

if TYPE_CHECKING:
    from tfrecreg.core.storage.remote import RemoteStorage

BLOCK_BYTES = 8 << 20
_THREADS = 4
_AHEAD = 4
_HELD = 7
_NEAR = 1 << 20
"""A read counts as a jump if it begins farther than this from the end of the previous read."""
_LEAST = 1 << 16
"""Minimum size of a request in bytes, because fewer bytes would not arrive sooner."""
_REMEMBERED = 256
"""Number of reads after jumps whose digests are kept for :meth:`RemoteReader.confirm`."""


class _LengthError(OSError):
    """A range is shorter or longer than requested."""


class _Blocks:
    """The threads and blocks of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: OrderedDict[tuple[int, int], Future[bytes]] = OrderedDict()

    def get(self, reader: int, block: int, fetch: Callable[[int], bytes]) -> Future[bytes]:
        """The future of a block. The block may not have arrived yet. A new block may replace the
        least recently used block.
        """
        key = (reader, block)
        with self._lock:
            found = self._held.get(key)
            if found is None:
                threads = shared_threads("tfrecreg-remote", _THREADS)
                found = self._held[key] = threads.submit(fetch, block)
            self._held.move_to_end(key)
            while len(self._held) > _HELD:
                self._held.popitem(last=False)[1].cancel()
        return found

    def drop(self, reader: int) -> None:
        with self._lock:
            for key in [key for key in self._held if key[0] == reader]:
                self._held.pop(key).cancel()


_serials = itertools.count()


@cache
def _blocks_of(process: int) -> _Blocks:
    del process  # threads and locks do not survive a fork
    return _Blocks()


class RemoteReader(Reader):
    """A file of a store. Safe for threads and after a fork."""

    def __init__(self, store: RemoteStorage, path: str, size: int, version: str) -> None:
        self.size = size
        self._serial = next(_serials)
        self._store = store
        self._path = path
        self._shown = locate(store.root, path)
        self._version = version
        """If it is empty, the version is unknown, and only a change of size is noticed."""
        self._position = 0
        self._depth = 0
        """Number of blocks to request ahead; it grows with each block that is read in order."""
        self._last = -2
        self._delivered: dict[int, bytes] = {}
        """Digest of each block as the store first delivered it."""
        self._elsewhere: deque[tuple[int, int, bytes]] = deque(maxlen=_REMEMBERED)
        self._confirmed: set[int] = set()
        self._is_checked = size <= BLOCK_BYTES
        """Whether the last block has arrived and a later check found the file unchanged."""

    def read_at(self, start: int, length: int) -> bytes:
        length = min(length, self.size - start)
        if length <= 0:
            return b""
        is_near = abs(start - self._position) <= _NEAR
        self._position = start + length
        if not is_near:
            data = self.read_range(start, min(max(length, _LEAST), self.size - start))
            self._elsewhere.append((start, len(data), blake3(data).digest(16)))
            return data[:length]
        pieces = []
        while length:
            block, offset = divmod(start, BLOCK_BYTES)
            piece = self._block(block)[offset : offset + length]
            pieces.append(piece)
            start += len(piece)
            length -= len(piece)
        if start == self.size and not self._is_checked:
            self.expect_unchanged()
            self._is_checked = True
        return b"".join(pieces)

    def forget(self, start: int, stop: int) -> bool:
        del start, stop
        _blocks_of(os.getpid()).drop(self._serial)
        return True

    def confirm(self, start: int, stop: int) -> bool:
        self.expect_unchanged()
        is_known = False
        for block in range(start // BLOCK_BYTES, -(-min(stop, self.size) // BLOCK_BYTES)):
            known = self._delivered.get(block)
            if known is None:
                continue
            is_known = True
            if block not in self._confirmed:
                self._expect_same(known, self._fetch(block))
                self._confirmed.add(block)
        for at, length, known in list(self._elsewhere):
            if at < stop and start < at + length:
                is_known = True
                self._expect_same(known, self.read_range(at, length))
        return is_known

    def expect_unchanged(self) -> None:
        size, version = self._store.state(self._path) or (-1, "")
        if size != self.size or (self._version and version != self._version):
            raise StorageError(f"`{self._shown}` was changed while it was read")

    def expect_ranges(self) -> None:
        """Refuse a web server that sends whole files when a range is asked for."""
        if self.size <= BLOCK_BYTES or not self._shown.startswith(("http:", "https:")):
            return
        try:
            # `open` checks the headers before it reads the response; `cat_file` does not.
            system, name, _ = self._store.place(self._path)
            with system.open(name, "rb", cache_type="none") as file:
                file.seek(1)
                file.read(1)
        except (ValueError, NotImplementedError) as error:
            raise StorageError(
                f"cannot read `{self._shown}`, because its server sends no ranges: download the "
                "file first"
            ) from error
        except Exception:
            return  # the error may be temporary: reading tries again

    def close(self) -> None:
        _blocks_of(os.getpid()).drop(self._serial)

    def _block(self, block: int) -> bytes:
        shared = _blocks_of(os.getpid())
        found = shared.get(self._serial, block, self._fetch)
        if block != self._last:
            self._depth = min(self._depth + 1, _AHEAD) if block == self._last + 1 else 0
            self._last = block
        for ahead in range(block + 1, block + 1 + self._depth):
            if ahead * BLOCK_BYTES < self.size:
                shared.get(self._serial, ahead, self._fetch)
        try:
            data = awaited(found)
        except CancelledError:
            data = self._fetch(block)  # blocks of other readers replaced this block
        except BaseException:
            shared.drop(self._serial)  # the next read requests the block again
            raise
        if block not in self._delivered:
            self._delivered[block] = blake3(data).digest(16)
        return data

    def _fetch(self, block: int) -> bytes:
        start = block * BLOCK_BYTES
        return self.read_range(start, min(BLOCK_BYTES, self.size - start))

    def read_range(self, start: int, length: int) -> bytes:
        """Read exactly these bytes of the file with one request. Nothing is read ahead."""
        if not length:
            return b""
        try:
            return patiently(
                "read", self._shown, lambda timeout: self._fetch_once(timeout, start, length)
            )
        except StorageError as error:
            cause = error.__cause__
            if cause is not None and kind_of_error(cause) != "passing":
                self.expect_unchanged()
            raise

    def _fetch_once(self, timeout: float, start: int, length: int) -> bytes:
        system, name, _ = self._store.place(self._path)
        data: bytes = invoke(timeout, system, "cat_file", name, start=start, end=start + length)
        if len(data) == self.size > length:
            return data[start : start + length]  # a small file from a server without ranges
        if len(data) != length:
            self.expect_unchanged()
            raise _LengthError(f"expected {length} bytes, received {len(data)}")
        return data

    def _expect_same(self, known: bytes, again: bytes) -> None:
        if blake3(again).digest(16) != known:
            _blocks_of(os.getpid()).drop(self._serial)
            raise transfer_error(self._shown)


def transfer_error(shown: str) -> TransferError:
    """The error for a file whose bytes differed on a second read."""
    return TransferError(f"`{shown}` had different bytes on a second read")


class ReadingFile(io.RawIOBase):
    """Reads a file of a storage at any offset. Does not close the `reader`: its owner does."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader = reader
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        data = self._reader.read_at(self._position, len(view))
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        start = {io.SEEK_CUR: self._position, io.SEEK_END: self._reader.size}.get(whence, 0)
        self._position = max(start + offset, 0)
        return self._position

    def tell(self) -> int:
        return self._position


_READ_AHEAD_AHEAD = 2 * AT_ONCE
_HELD_BYTES = 4 * BLOCK_BYTES


class ReadAhead:
    """Fetches objects before they are read, roughly in the order of `sized`. Objects larger than a
    block are left out.
    """

    def __init__(
        self, root: str, fetch: Callable[[str, int], bytes], sized: Iterable[tuple[str, int]]
    ) -> None:
        self.root = root
        self._fetch = fetch
        # If a path occurs again, its first place counts.
        sizes = {path: size for path, size in sized if size <= BLOCK_BYTES}
        self._objects = list(sizes.items())
        self._numbers = {path: number for number, path in enumerate(sizes)}
        self._first = 0
        self._next = 0
        self._requested: dict[int, Future[bytes]] = {}
        self._bytes = 0

    def take(self, path: str) -> bytes | None:
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
        for number in list(self._requested):
            self._drop(number)
        self._next = self._first = len(self._objects)

    def _fill(self) -> None:
        while self._next < min(len(self._objects), self._first + _READ_AHEAD_AHEAD):
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
    """Inside the ``with`` block, :func:`taken` returns these objects in this thread."""
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


class HeldReader(Reader):
    """Reads a file of a store from bytes that are already in memory."""

    def __init__(self, shown: str, data: bytes, opened: Callable[[], Reader]) -> None:
        self._shown, self._data, self._opened = shown, data, opened
        self.size = len(data)

    def read_at(self, start: int, length: int) -> bytes:
        return self._data[start : start + max(length, 0)]

    def confirm(self, start: int, stop: int) -> bool:
        del start, stop  # the whole file was delivered
        with self._opened() as reader:
            if reader.size != self.size or reader.read_at(0, self.size) != self._data:
                raise transfer_error(self._shown)
        return True

    def forget(self, start: int, stop: int) -> bool:
        del start, stop
        return True

    def close(self) -> None:
        self._data = b""

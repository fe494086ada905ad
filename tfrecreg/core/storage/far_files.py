"""Files behind URLs, read through a cache of blocks; missing blocks are fetched side by side.

A block that is missing is fetched whole and kept, if there is room, or if much of it is wanted
soon. Else only what is asked for is fetched: so a random order over more than fits reads some
records from the cache and each of the others by a request of its own, and not by a block for each.

A block is kept only if the file is found unchanged after it arrived.

Ranges of files in memory, fetched ahead for records whose blocks are not kept. Bounded.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.storage.block_cache import BlockCache, open_cache
from tfrecreg.core.storage.file_systems import DaemonThreads, at_once, awaited
from tfrecreg.core.storage.interface import Entry, Follow, Readable, Reader, RereadableReader
from tfrecreg.core.storage.paths import locate, path_text
from tfrecreg.core.storage.remote import RemoteStorage
from tfrecreg.core.storage.remote_reader import RemoteReader, transfer_error
from tfrecreg.core.values.errors import StorageError

_MOST_BYTES = 64 << 20
"""Maximum size of the ranges in memory; the first ones are dropped for others."""
_GAP_BYTES = 1 << 12
"""Ranges that lie no farther apart are fetched together,"""
_JOINED_BYTES = 1 << 18
"""as long as that takes no more memory than this."""


class _Range(NamedTuple):
    start: int
    stop: int
    data: Future[bytes]


class Staging:
    """Ranges by the name of the block that they are in. Safe for threads."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._lock = Lock()
        self._ranges: OrderedDict[str, list[_Range]] = OrderedDict()
        self._bytes = 0

    def expect(self, name: str, start: int, stop: int) -> Future[bytes] | None:
        """The future that the caller sets to the bytes of a range; None if it is here."""
        with self._lock:
            ranges = self._ranges.setdefault(name, [])
            self._ranges.move_to_end(name)
            if any(each.start <= start and stop <= each.stop for each in ranges):
                return None
            mine: Future[bytes] = Future()
            ranges.append(_Range(start, stop, mine))
            self._bytes += stop - start
            while self._bytes > self._most_bytes and len(self._ranges) > 1:
                for dropped in self._ranges.popitem(last=False)[1]:
                    self._bytes -= dropped.stop - dropped.start
        return mine

    def take(self, name: str, start: int, length: int) -> bytes | None:
        """Bytes of a range, if it was fetched; it is dropped when its end is taken."""
        for each in self._ranges.get(name, ()):
            if each.start <= start and start + length <= each.stop:
                data = awaited(each.data)
                if start + length == each.stop:
                    self.drop(name, each.start)
                return data[start - each.start : start - each.start + length]
        return None

    def drop(self, name: str, start: int) -> None:
        """Forget the range that starts there."""
        with self._lock:
            ranges = self._ranges.get(name, [])
            left = [each for each in ranges if each.start != start]
            self._bytes -= sum(each.stop - each.start for each in ranges if each.start == start)
            if left:
                self._ranges[name] = left
            else:
                self._ranges.pop(name, None)


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges, start and stop, where those that are near each other are one."""
    first = last = -1
    for start, stop in sorted(ranges):
        if first >= 0 and start - last <= _GAP_BYTES and stop - first <= _JOINED_BYTES:
            last = max(last, stop)
            continue
        if first >= 0:
            yield first, last
        first, last = start, stop
    if first >= 0:
        yield first, last


THREADS = 16
"""Requests of a process at the same time: as many blocks are in memory at most."""
_WORTH = 2
"""Blocks that were used go for one of which at least a half is wanted."""
_SNIFF = 64
"""Bytes at the beginning of a file that are no record yet: its block is not fetched for them."""

_Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FarFile:
    """A file of a store, as it was when its data source was made."""

    root: str
    path: str
    size: int
    mtime_ns: int
    """Not 0: with bits of its ETag, it differs after every change."""

    @cached_property
    def key(self) -> str:
        """Of its blocks: of this file in this state."""
        text = f"{self.root}\n{self.path}\n{self.size}\n{self.mtime_ns}"
        return blake3(text.encode("utf-8", "surrogateescape")).hexdigest(16)


def far_files(folder: str | os.PathLike[str] | None, limit: int | str | None) -> FarFiles | None:
    """Files of stores through the cache that `cache` and `cache_limit` name; None without them."""
    cache = open_cache(folder, limit)
    return None if cache is None else FarFiles(cache)


class FarFiles:
    """Files of stores, read through one cache. Picklable, safe for threads and after a fork."""

    def __init__(self, cache: BlockCache) -> None:
        self.cache = cache
        self._process = 0
        self._known: dict[str, set[int]] = {}
        """Blocks by the key of their file that were here when they were looked for last."""
        self.staging = Staging()

    @property
    def place(self) -> tuple[str, int]:
        """The arguments of :func:`far_files`."""
        return self.cache.folder, self.cache.limit

    def __reduce__(self) -> tuple[Any, ...]:
        return FarFiles, (self.cache,)

    def _here(self) -> None:
        # Threads, locks and connections do not survive a fork.
        if self._process == os.getpid():
            return
        self._lock = Lock()
        self._threads: DaemonThreads[Any] = DaemonThreads(THREADS, "tfrecreg-far")
        self._coming: dict[str, Future[bytes | None]] = {}
        self._stores: dict[str, RemoteReader] = {}
        self.staging = Staging()
        self._process = os.getpid()

    def file(self, root: str, path: str, size: int, mtime_ns: int) -> FarFile:
        """A file of a store, in one state of it."""
        return FarFile(root, path, size, mtime_ns)

    def fits(self, size: float) -> bool:
        """Whether so many bytes are kept until they are used, with others on their way."""
        return 2 * size <= self.cache.limit

    def expect(self, requests: Iterable[Future[bytes | None]]) -> None:
        """Wait for requests. Whoever reads what failed gets its error."""
        for each in requests:
            with suppress(StorageError):
                awaited(each)

    def storage(self, file: FarFile) -> Readable:
        """A storage with this file alone."""
        return _OneFile(self, file)

    def storage_of(self, root: str, path: str) -> Readable:
        """A storage with a file of a store as it is now; without the cache, if it has no state."""
        storage = RemoteStorage(root)
        entry = storage.stat(path)
        if entry is None or entry.kind != "file" or not entry.mtime_ns:
            return storage
        return self.storage(FarFile(root, path, entry.size, entry.mtime_ns))

    def at_once(self, function: Callable[[int], object], tasks: Iterable[int]) -> None:
        """Call a function that makes requests, for several tasks at the same time."""
        for _ in at_once(function, tasks):
            pass

    def store(self, file: FarFile) -> RemoteReader:
        """The file in its store, past the cache."""
        self._here()
        found = self._stores.get(file.key)
        if found is None:
            storage = RemoteStorage(file.root)
            opened = storage.open(file.path)
            assert isinstance(opened, RemoteReader)
            entry = storage.stat(file.path)
            if entry is None or (opened.size, entry.mtime_ns) != (file.size, file.mtime_ns):
                raise StorageError(
                    f"`{path_text(locate(file.root, file.path))}` was changed since its data "
                    "source was made",
                    hint="make a new data source",
                )
            found = self._stores.setdefault(file.key, opened)
        return found

    def block(self, file: FarFile, number: int) -> bytes | None:
        """A missing block, which this thread or another one fetches."""
        self._here()
        name = self.cache.name(file.key, number)
        self._known.get(file.key, set()).discard(number)
        with self._lock:
            coming = self._coming.get(name)
            mine: Future[bytes | None] | None = None
            if coming is None:
                mine = self._coming[name] = Future()
        if coming is not None:
            return awaited(coming)
        assert mine is not None
        self._bring(mine, file, number, False, ())
        return mine.result()

    def is_known(self, file: FarFile) -> bool:
        """Whether all blocks of a file were here when they were looked for last."""
        known = self._known.get(file.key)
        return known is not None and len(known) * self.cache.block_bytes >= file.size

    def request(
        self, file: FarFile, starts: _Numbers, stops: _Numbers, *, soon: bool = False
    ) -> list[Future[bytes | None]]:
        """Begin to fetch what is missing of some ranges of a file."""
        self._here()
        size, key = self.cache.block_bytes, file.key
        firsts, lasts = starts // size, (stops - 1) // size
        most = int((lasts - firsts).max(initial=0))
        touched = {
            number
            for step in range(most + 1)
            for number in np.minimum(firsts + step, lasts).tolist()
        }
        known = self._known.setdefault(key, set())
        found: list[Future[bytes | None]] = []
        for number in sorted(touched - known):
            name = self.cache.name(key, number)
            if self.cache.has(name):
                known.add(number)
                continue
            rows = np.flatnonzero((firsts <= number) & (number <= lasts))
            begin, end = number * size, min((number + 1) * size, file.size)
            cut = zip(
                np.maximum(starts[rows], begin).tolist(),
                np.minimum(stops[rows], end).tolist(),
                strict=True,
            )
            ranges = list(joined_ranges(cut))
            covered = sum(stop - start for start, stop in ranges)
            with self._lock:
                coming = self._coming.get(name)
                if coming is None:
                    coming = self._coming[name] = Future()
                    keep = soon or covered * _WORTH >= end - begin
                    self._threads.submit(self._bring, coming, file, number, keep, ranges)
            found.append(coming)
        return found

    def _bring(
        self,
        future: Future[bytes | None],
        file: FarFile,
        number: int,
        for_used: bool,
        ranges: Iterable[tuple[int, int]],
    ) -> None:
        """Fetch a block; if there is no room for it, these ranges of it alone."""
        name = self.cache.name(file.key, number)
        start = number * self.cache.block_bytes
        size = min(self.cache.block_bytes, file.size - start)
        try:
            found = self.cache.keep(
                name, size, lambda: self._whole(file, start, size), for_used=for_used
            )
            if found is None:
                self._stage(file, name, ranges)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(found if not ranges else None)
        finally:
            with self._lock:
                self._coming.pop(name, None)

    def _whole(self, file: FarFile, start: int, size: int) -> bytes:
        store = self.store(file)
        data = store.read_range(start, size)
        store.expect_unchanged()
        return data

    def _stage(self, file: FarFile, name: str, ranges: Iterable[tuple[int, int]]) -> None:
        for start, stop in ranges:
            future = self.staging.expect(name, start, stop)
            if future is None:
                continue
            try:
                future.set_result(self.store(file).read_range(start, stop - start))
            except BaseException as error:
                self.staging.drop(name, start)
                future.set_exception(error)
                raise

    def forget(self, file: FarFile, start: int, stop: int) -> None:
        """Remove the blocks with these bytes: some of them are damaged."""
        size = self.cache.block_bytes
        for number in range(start // size, -(-stop // size)):
            self._known.get(file.key, set()).discard(number)
            self.cache.forget(self.cache.name(file.key, number))


class FarReader(RereadableReader):
    """A file of a store, open for reading through the cache."""

    def __init__(self, files: FarFiles, file: FarFile) -> None:
        self.size = file.size
        self._files, self._file = files, file
        self._prefix = files.cache.name(file.key, "")
        self._cache, self._block_bytes = files.cache, files.cache.block_bytes

    def read_at(self, start: int, length: int) -> bytes:
        # A hot path: most reads are inside of a block that is open.
        number, offset = divmod(start, self._block_bytes)
        if 0 < length <= self._block_bytes - offset and start + length <= self.size:
            opened = self._cache.opened(f"{self._prefix}{number}")
            if opened is not None:
                try:
                    data = opened.read_at(offset, length)
                except StorageError:  # the disk cannot read it
                    data = b""
                if len(data) == length:
                    return data
            return self._piece(number, offset, length)
        pieces = []
        length = min(length, self.size - start)
        while length > 0:
            number, offset = divmod(start, self._block_bytes)
            piece = self._piece(number, offset, min(length, self._block_bytes - offset))
            pieces.append(piece)
            start += len(piece)
            length -= len(piece)
        return b"".join(pieces)

    def located(self, start: int, length: int) -> tuple[int, int, object] | None:
        number, offset = divmod(start, self._block_bytes)
        if length > self._block_bytes - offset or start + length > self.size:
            return None
        name = f"{self._prefix}{number}"
        whole = min(self._block_bytes, self.size - number * self._block_bytes)
        opened = self._cache.opened(name) or self._cache.reader(name, whole)
        return None if opened is None else opened.located(offset, length)

    def _piece(self, number: int, offset: int, length: int) -> bytes:
        """Exactly these bytes of one block."""
        found = self._held(number, offset, length)
        if found is None and not number and offset + length <= _SNIFF:
            return self._files.store(self._file).read_range(offset, length)
        if found is None:
            block = self._files.block(self._file, number)
            if block is not None:
                return block[offset : offset + length]
            found = self._held(number, offset, length)
        if found is None:
            start = number * self._block_bytes + offset
            found = self._files.store(self._file).read_range(start, length)
        return found

    def _held(self, number: int, offset: int, length: int) -> bytes | None:
        """Bytes of the cache, or that were fetched ahead."""
        name = f"{self._prefix}{number}"
        first = number * self._block_bytes
        reader = self._cache.reader(name, min(self._block_bytes, self.size - first))
        if reader is not None:
            with suppress(StorageError):  # the disk cannot read it
                data = reader.read_at(offset, length)
                if len(data) == length:
                    return data
            self._files.forget(self._file, first, first + 1)
        return self._files.staging.take(name, first + offset, length)

    def confirm(self, start: int, stop: int) -> bool:
        store = self._files.store(self._file)
        for at in range(start, min(stop, self.size), self._block_bytes):
            size = min(self._block_bytes, min(stop, self.size) - at)
            if store.read_range(at, size) != self.read_at(at, size):
                self._files.forget(self._file, at, at + size)
                raise transfer_error(locate(self._file.root, self._file.path))
        store.expect_unchanged()
        return True

    def close(self) -> None:
        pass  # the cache closes its blocks


class _OneFile:
    """A storage with one file. See :class:`tfrecreg.core.storage.interface.Readable`."""

    def __init__(self, files: FarFiles, file: FarFile) -> None:
        self._files, self._file = files, file
        self._storage = RemoteStorage(file.root)

    @property
    def root(self) -> str:
        return self._file.root

    @property
    def is_local(self) -> bool:
        return True  # whoever finds damage in it asks the store, past the cache

    def below(self, path: str) -> Readable:
        return self._storage.below(path)

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:
        if path != self._file.path:
            return self._storage.stat(path, follow=follow)
        return Entry(path, "file", self._file.size, self._file.mtime_ns, 0)

    def list(self, path: str = "", *, recursive: bool = True) -> Iterator[Entry]:
        return self._storage.list(path, recursive=recursive)

    def open(self, path: str) -> Reader:
        if path != self._file.path:
            return self._storage.open(path)
        return FarReader(self._files, self._file)

    def read(self, path: str, *, limit: int = 1 << 28) -> bytes:
        return self._storage.read(path, limit=limit)

    def reading_ahead(
        self, paths: Iterable[str], listed: Iterable[Entry]
    ) -> AbstractContextManager[None]:
        del paths, listed  # it is read in pieces
        return nullcontext()

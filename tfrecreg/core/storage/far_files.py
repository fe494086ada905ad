"""Files behind URLs, read through a cache of blocks. Missing blocks are fetched in parallel.

If there is room for a missing block, or if much of it is needed soon, the whole block is fetched
and kept. Otherwise only the requested bytes are fetched. So if records are read in random order and
do not all fit into the cache, some of them come from the cache, and each of the others costs one
small request, not a whole block.

A block is kept only if a check after its arrival shows that the file did not change.

If a block is not kept, the ranges of its requested records are fetched ahead and held in bounded
memory.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.storage.block_cache import BlockCache, open_cache
from tfrecreg.core.storage.file_systems import awaited, shared_threads
from tfrecreg.core.storage.interface import Entry, Follow, Readable, Reader
from tfrecreg.core.storage.local import LocalReader
from tfrecreg.core.storage.paths import is_url, locate
from tfrecreg.core.storage.raw import storage_at
from tfrecreg.core.storage.remote import RemoteStorage
from tfrecreg.core.storage.remote_reader import RemoteReader, transfer_error
from tfrecreg.core.values.errors import StorageError

_MOST_BYTES = 64 << 20
"""Maximum size of the ranges in memory. New ranges replace the oldest."""
_GAP_BYTES = 1 << 12
"""Ranges at most this far apart are fetched together."""
_JOINED_BYTES = 1 << 18
"""Maximum size of ranges that are fetched together."""


class Staging:
    """Keeps byte ranges of blocks in memory, under the blocks' names. Safe for threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ranges: OrderedDict[str, dict[int, bytes]] = OrderedDict()
        """The bytes of each range by its start."""
        self._bytes = 0

    def find(self, name: str, start: int, stop: int) -> tuple[int, bytes] | None:
        for first, data in list(self._ranges.get(name, {}).items()):
            if first <= start and stop <= first + len(data):
                return first, data
        return None

    def put(self, name: str, start: int, data: bytes) -> None:
        with self._lock:
            ranges = self._ranges.setdefault(name, {})
            self._ranges.move_to_end(name)
            self._bytes += len(data) - len(ranges.get(start, b""))
            ranges[start] = data
            while self._bytes > _MOST_BYTES and len(self._ranges) > 1:
                self._bytes -= sum(map(len, self._ranges.popitem(last=False)[1].values()))

    def take(self, name: str, start: int, stop: int) -> bytes | None:
        found = self.find(name, start, stop)
        if found is None:
            return None
        first, data = found
        if stop == first + len(data):
            self.drop(name, first)
        return data[start - first : stop - first]

    def drop(self, name: str, start: int | None = None) -> None:
        with self._lock:
            ranges = self._ranges.get(name, {})
            for first in [*ranges] if start is None else [start]:
                self._bytes -= len(ranges.pop(first, b""))
            if not ranges:
                self._ranges.pop(name, None)


def joined_ranges(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Sort the ranges (start, stop), and join ranges that are near each other."""
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
"""Number of parallel requests per process, and maximum number of blocks in memory."""
_WORTH = 2
"""A new block may evict used blocks if at least half (1 / 2) of it is needed."""

_Numbers = npt.NDArray[np.int64]


def far_files(folder: str | os.PathLike[str] | None, limit: int | str | None) -> FarFiles | None:
    """A :class:`FarFiles` with the cache in `folder`; None if both arguments are None."""
    cache = open_cache(folder, limit)
    return None if cache is None else FarFiles(cache)


class FarFiles:
    """Reads files of stores through one cache. It can be pickled, shared by threads, and used after
    a fork.
    """

    def __init__(self, cache: BlockCache) -> None:
        self.cache = cache
        self._process = 0
        self._known: dict[str, set[int]] = {}
        """Maps a file's key to the numbers of its blocks that were last seen in the cache."""
        self.staging = Staging()

    @property
    def place(self) -> tuple[str, int]:
        return self.cache.folder, self.cache.limit

    def __reduce__(self) -> tuple[Any, ...]:
        return FarFiles, (self.cache,)

    def _here(self) -> None:
        # Threads, locks and connections do not survive a fork.
        if self._process == os.getpid():
            return
        self._lock = Lock()
        self._coming: dict[str, Future[bytes | None]] = {}
        self._stores: dict[str, RemoteReader] = {}
        self.staging = Staging()
        self._process = os.getpid()

    def fits(self, size: float) -> bool:
        """Whether `size` bytes stay in the cache until they are used, even if other bytes are
        added.
        """
        return 2 * size <= self.cache.limit

    def expect(self, requests: Iterable[Future[bytes | None]]) -> None:
        """Wait for requests. The error of a failed request is raised later, when its bytes are
        read.
        """
        for each in requests:
            with suppress(StorageError):
                awaited(each)

    def file(self, root: str, entry: Entry) -> FarFile | None:
        """The file in its present state. None if the file is on a disk, or if its store has neither
        times nor ETags, so that the cache could not notice a change of the file.
        """
        return FarFile(self, root, entry) if is_url(root) and entry.mtime_ns else None

    def storage_of(self, root: str, path: str) -> Readable:
        storage = storage_at(root)
        entry = storage.stat(path) if is_url(root) else None
        return (self.file(root, entry) if entry is not None else None) or storage

    def store(self, file: FarFile) -> RemoteReader:
        self._here()
        found = self._stores.get(file.key)
        if found is None:
            storage = RemoteStorage(file.root)
            opened = storage.open(file.entry.path)
            assert isinstance(opened, RemoteReader)
            entry = storage.stat(file.entry.path)
            state = file.entry.size, file.entry.mtime_ns
            if entry is None or (opened.size, entry.mtime_ns) != state:
                raise StorageError(
                    f"`{locate(file.root, file.entry.path)}` was changed since its data source "
                    "was made",
                )
            found = self._stores.setdefault(file.key, opened)
        return found

    def block(self, file: FarFile, number: int) -> bytes | None:
        self._here()
        self._known.get(file.key, set()).discard(number)
        return awaited(self._begin(file, number, False, ()))

    def _begin(
        self, file: FarFile, number: int, for_used: bool, ranges: Iterable[tuple[int, int]]
    ) -> Future[bytes | None]:
        name = self.cache.name(file.key, number)
        with self._lock:
            coming = self._coming.get(name)
            if coming is None:
                threads = shared_threads("tfrecreg-far", THREADS)
                coming = threads.submit(self._bring, file, number, for_used, ranges)
                self._coming[name] = coming
        return coming

    def is_known(self, file: FarFile) -> bool:
        """Whether the last search of the cache found all blocks of the file."""
        known = self._known.get(file.key)
        return known is not None and len(known) * self.cache.block_bytes >= file.entry.size

    def request(
        self, file: FarFile, starts: _Numbers, stops: _Numbers, *, soon: bool = False
    ) -> list[Future[bytes | None]]:
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
            begin, end = number * size, min((number + 1) * size, file.entry.size)
            cut = zip(
                np.maximum(starts[rows], begin).tolist(),
                np.minimum(stops[rows], end).tolist(),
                strict=True,
            )
            ranges = list(joined_ranges(cut))
            covered = sum(stop - start for start, stop in ranges)
            keep = soon or covered * _WORTH >= end - begin
            found.append(self._begin(file, number, keep, ranges))
        return found

    def _bring(
        self, file: FarFile, number: int, for_used: bool, ranges: Iterable[tuple[int, int]]
    ) -> bytes | None:
        """Fetch a block and keep it. If there is no room for it, fetch only these ranges of it."""
        name = self.cache.name(file.key, number)
        start = number * self.cache.block_bytes
        size = min(self.cache.block_bytes, file.entry.size - start)

        def whole() -> bytes:
            store = self.store(file)
            data = store.read_range(start, size)
            store.expect_unchanged()
            return data

        try:
            found = self.cache.keep(name, size, whole, for_used=for_used)
            if found is None:
                for first, stop in ranges:
                    if self.staging.find(name, first, stop) is None:
                        data = self.store(file).read_range(first, stop - first)
                        self.staging.put(name, first, data)
            return None if ranges else found
        finally:
            with self._lock:
                self._coming.pop(name, None)

    def forget(self, file: FarFile, start: int, stop: int) -> None:
        self._here()
        size = self.cache.block_bytes
        for number in range(start // size, -(-stop // size)):
            self._known.get(file.key, set()).discard(number)
            name = self.cache.name(file.key, number)
            self.cache.forget(name)
            self.staging.drop(name)


class FarFile(RemoteStorage):
    """A storage for a file in the state that `entry` describes. The file is read through the cache.
    The time in `entry` contains bits of the ETag, so it differs after every change of the file.
    """

    __slots__ = ("entry", "files", "key")

    files: FarFiles
    entry: Entry
    key: str
    """The key of this file's blocks in the cache. A changed file has another key."""

    def __init__(self, files: FarFiles, root: str, entry: Entry) -> None:
        RemoteStorage.__init__(self, root)
        text = f"{root}\n{entry.path}\n{entry.size}\n{entry.mtime_ns}"
        key = blake3(text.encode("utf-8", "surrogateescape")).hexdigest(16)
        for name, value in (("files", files), ("entry", entry), ("key", key)):
            object.__setattr__(self, name, value)  # the base class is frozen

    def __reduce__(self) -> tuple[Any, ...]:
        return FarFile, (self.files, self.root, self.entry)

    def stat(self, path: str, *, follow: Follow = "inside") -> Entry | None:
        return self.entry if path == self.entry.path else super().stat(path, follow=follow)

    def open(self, path: str) -> Reader:
        return FarReader(self) if path == self.entry.path else super().open(path)


class FarReader(Reader):
    """A file of a store, open for reading through the cache."""

    def __init__(self, file: FarFile) -> None:
        self.size = file.entry.size
        self._files, self._file = file.files, file
        self._cache = file.files.cache
        self._prefix = self._cache.name(file.key, "")
        self._block_bytes = self._cache.block_bytes

    def read_at(self, start: int, length: int) -> bytes:
        # A hot path: most reads are inside an open block.
        number, offset = divmod(start, self._block_bytes)
        if 0 < length <= self._block_bytes - offset and start + length <= self.size:
            opened = self._cache.opened(f"{self._prefix}{number}")
            if opened is not None:
                with suppress(StorageError):  # the disk cannot read it
                    data = opened.read_at(offset, length)
                    if len(data) == length:
                        return data
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
        opened = self._opened(number)
        return None if opened is None else opened.located(offset, length)

    def _opened(self, number: int) -> LocalReader | None:
        size = min(self._block_bytes, self.size - number * self._block_bytes)
        return self._cache.reader(f"{self._prefix}{number}", size)

    def _piece(self, number: int, offset: int, length: int) -> bytes:
        found = self._held(number, offset, length)
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
        name = f"{self._prefix}{number}"
        first = number * self._block_bytes
        reader = self._opened(number)
        if reader is not None:
            with suppress(StorageError):  # the disk cannot read it
                data = reader.read_at(offset, length)
                if len(data) == length:
                    return data
            self._files.forget(self._file, first, first + 1)
        return self._files.staging.take(name, first + offset, first + offset + length)

    def confirm(self, start: int, stop: int) -> bool:
        store = self._files.store(self._file)
        for at in range(start, min(stop, self.size), self._block_bytes):
            size = min(self._block_bytes, min(stop, self.size) - at)
            if store.read_range(at, size) != self.read_at(at, size):
                self._files.forget(self._file, at, at + size)
                raise transfer_error(locate(self._file.root, self._file.entry.path))
        store.expect_unchanged()
        return True

    def forget(self, start: int, stop: int) -> bool:
        self._files.forget(self._file, start, stop)
        return True

    def close(self) -> None:
        pass  # the cache closes its blocks

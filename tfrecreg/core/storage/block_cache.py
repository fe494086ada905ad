"""Caches blocks of files behind URLs in a folder of limited size. All processes of a host share it.

::

    CACHE/tfrecreg-blocks-1/used                number of bytes in use; locked to change it
    CACHE/tfrecreg-blocks-1/3f/3f…-22-12.block  a block; its name has file, size and number
    CACHE/tfrecreg-blocks-1/3f/3f…-22-12.part   an unfinished block, locked by its writer

A block gets its name when it is complete. A process that needs a block waits while another process
writes it. A killed process leaves an unlocked ``.part``. The next process that needs the block
overwrites this file, or an eviction removes it. Bytes are counted before they are written, so the
limit holds even if processes are killed. The count may then be too high until the next eviction
corrects it.

The least recently used blocks are evicted first. A reader that opened a block before its eviction
can still read it, because the system keeps a removed file until it is closed.

Blocks are not verified here. The reader of the records verifies them and makes the cache drop a
damaged block.
"""

from __future__ import annotations

import contextlib
import os
import resource
import time
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from tfrecreg.core.storage.local import LocalReader
from tfrecreg.core.storage.paths import is_url
from tfrecreg.core.storage.renames import exclusive
from tfrecreg.core.storage.writer import try_lock
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import parse_size

# Locks, descriptors and exact flags need os, not pathlib.


_LARGEST_BYTES = 4 << 20
"""Block size of a cache with room for at least :data:`_FEWEST` such blocks."""
_FEWEST = 64
_LEAST_BYTES = 1 << 16
"""Minimum block size, even for very small caches."""
LEAST_LIMIT = 1 << 20
_FOLDER = "tfrecreg-blocks-1"
_BLOCK, _PART = ".block", ".part"
_OPEN = 256
"""Maximum number of open blocks per process. It is lower if the limit on open files is low. Open
blocks take at most half of the limit, because an evicted block takes room on the disk as long as it
is open.
"""
_SLACK = 32
"""An eviction frees 1 / 32 of the limit more than needed, so that the next blocks need no eviction.
"""
_PATIENCE = 60.0
"""Maximum time, in seconds, to wait for another process that fetches the same block."""
_PAUSE = 0.02
_TOUCHED_NS = 1_000_000_000
"""Minimum time, in nanoseconds, between two recorded uses of a block."""
_FULL_FOR = 256
"""After a block did not fit, this many blocks are not kept, unless they may evict used blocks."""


def open_cache(folder: str | os.PathLike[str] | None, limit: int | str | None) -> BlockCache | None:
    """The cache in `folder`, with this limit; None if both are None."""
    if folder is None and limit is None:
        return None
    if folder is None or limit is None:
        raise UsageError(
            'give both `cache` and `cache_limit`: `cache="/local/cache", cache_limit="50GB"`',
        )
    place = os.path.expanduser(os.fsdecode(folder))
    if is_url(place) or not place or "\0" in place:
        raise UsageError(f"`cache` should be a folder on this machine, found `{place}`")
    try:
        size = parse_size(limit)
        if size < LEAST_LIMIT:
            raise ValueError("expected `1MiB` or more")
    except ValueError as error:
        raise UsageError(f"`cache_limit`: {error}, found `{limit}`") from None
    cache = BlockCache(place, size)
    try:
        os.makedirs(os.path.dirname(cache.used), exist_ok=True)
        with exclusive(cache.used):
            return cache
    except OSError as error:
        raise StorageError(
            f"the cache `{cache.folder}` cannot be written: {error.strerror or error}"
        ) from error


class _Found(NamedTuple):
    mtime_ns: int
    size: int
    path: str


class _OpenBlock(LocalReader):
    """A block that is open. It is closed when its last reference is gone, because a thread may
    still read a dropped block.
    """

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


class BlockCache:
    """The folder of a cache. It can be pickled, shared by threads, and used after a fork."""

    def __init__(self, folder: str, limit: int) -> None:
        self.folder = os.path.abspath(folder)
        self.limit = limit
        whole = 1 << (max(1, limit // _FEWEST).bit_length() - 1)
        self.block_bytes = min(_LARGEST_BYTES, max(_LEAST_BYTES, whole))
        """Size of a block, a power of two. The last block of a file is smaller."""
        self._root = os.path.join(self.folder, _FOLDER)
        self.used = os.path.join(self._root, "used")
        self._since = time.time_ns()
        """A block that was last used before this time may be evicted for any other block."""
        self._open: OrderedDict[str, _OpenBlock] = OrderedDict()
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4
        self._most_open = max(1, min(_OPEN, files, limit // self.block_bytes // 2))
        self._full = 0
        self._failed = False

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockCache, (self.folder, self.limit)

    def name(self, key: str, number: int | str) -> str:
        return f"{key}-{self.block_bytes.bit_length() - 1}-{number}"

    def _path(self, name: str) -> str:
        return os.path.join(self._root, name[:2], name + _BLOCK)

    def has(self, name: str) -> bool:
        return name in self._open or os.path.exists(self._path(name))

    def opened(self, name: str) -> LocalReader | None:
        return self._open.get(name)

    def reader(self, name: str, size: int) -> LocalReader | None:
        found = self._open.get(name)
        if found is not None:
            return found
        path = self._path(name)
        try:
            found = _OpenBlock(path)
        except StorageError:
            return None
        if time.time_ns() - found.mtime_ns > _TOUCHED_NS or found.mtime_ns < self._since:
            with contextlib.suppress(OSError):
                os.utime(path)
        if found.size != size:
            found.close()
            self.forget(name)
            return None
        self._open[name] = found
        while len(self._open) > self._most_open:
            with contextlib.suppress(KeyError):
                self._open.popitem(last=False)
        return found

    def forget(self, name: str) -> None:
        self._open.pop(name, None)
        path = self._path(name)
        with contextlib.suppress(OSError):
            self._remove(path, os.path.getsize(path))

    def keep(
        self, name: str, size: int, fetch: Callable[[], bytes], *, for_used: bool
    ) -> bytes | None:
        if self._failed or size > self.limit:
            return None
        if self._full and not for_used:
            self._full -= 1
            return None
        path = self._path(name)
        part = path.removesuffix(_BLOCK) + _PART
        try:
            handle = self._turn(path, part)
        except OSError as error:
            self._give_up(error)
            return None
        if handle is None:
            reader = self.reader(name, size)
            return fetch() if reader is None else reader.read_at(0, size)
        kept = reserved = False
        data: bytes | None = None
        try:
            reserved = self._reserve(part, size, for_used=for_used)
            if not reserved:
                self._full = _FULL_FOR
                return None
            data = fetch()
            left = memoryview(data)
            while left:
                left = left[os.write(handle, left) :]
            with exclusive(self.used):  # so that it is counted once
                os.rename(part, path)
            kept = True
        except OSError as error:
            self._give_up(error)
        finally:
            if not kept:
                self._remove(part, size if reserved else 0)
            os.close(handle)
        return data

    def _turn(self, path: str, part: str) -> int | None:
        """Open and lock the block's ``.part``. Returns its descriptor. Returns None if the block
        exists, or if another process takes too long to write the block.
        """
        end = time.monotonic() + _PATIENCE
        os.makedirs(os.path.dirname(part), exist_ok=True)
        while True:
            if os.path.exists(path):
                return None
            handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            # On a file system without locks, two processes may write the same bytes.
            if try_lock(handle) is False:
                os.close(handle)
                if time.monotonic() > end:
                    return None
                time.sleep(_PAUSE)
                continue
            # The previous writer may have renamed or removed the part between `open` and `flock`.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(handle), os.stat(part)) and not os.path.exists(path):
                    return handle
            os.close(handle)

    def _give_up(self, error: OSError) -> None:
        """Continue without the cache in this process, and warn once."""
        if not self._failed:
            self._failed = True
            warnings.warn(
                f"the cache `{safe(self.folder)}` cannot be written: "
                f"{error.strerror or error}; records are read from the store without the cache",
                RuntimeWarning,
                stacklevel=2,
            )

    def _reserve(self, part: str, size: int, *, for_used: bool) -> bool:
        with exclusive(self.used):
            used = self._read_used()
            if used is None or used + size > self.limit:
                target = self.limit - size - self.limit // _SLACK
                used = self._evict(part, max(0, target), None if for_used else self._since)
            fits = used + size <= self.limit
            self._write_used(used + size * fits)
            return fits

    def _remove(self, path: str, size: int) -> None:
        with contextlib.suppress(OSError), exclusive(self.used):
            os.unlink(path)
            used = self._read_used()
            if used is not None:
                self._write_used(max(0, used - size))

    def _read_used(self) -> int | None:
        try:
            with open(self.used, encoding="ascii") as file:
                return int(file.read(20))
        except (OSError, ValueError):
            return None

    def _write_used(self, used: int) -> None:
        # In place, because the inode is the lock. The fixed length reveals a half-written number.
        handle = os.open(self.used, os.O_WRONLY)
        try:
            os.pwrite(handle, f"{used:020d}".encode("ascii"), 0)
        finally:
            os.close(handle)

    def _evict(self, part: str, target: int, before: int | None) -> int:
        blocks: list[_Found] = []
        used = 0
        for found in self._files():
            if found.path.endswith(_BLOCK):
                blocks.append(found)
                used += found.size
            elif found.path != part and not _removed_if_free(found.path):
                used += self.block_bytes  # the part's maximum size
        for block in sorted(blocks):
            if used <= target or (before is not None and block.mtime_ns >= before):
                break
            with contextlib.suppress(OSError):
                os.unlink(block.path)
                used -= block.size
            self._open.pop(os.path.basename(block.path).removesuffix(_BLOCK), None)
        return used

    def _files(self) -> Iterator[_Found]:
        for folder in os.scandir(self._root):
            if len(folder.name) != 2 or not folder.is_dir(follow_symlinks=False):
                continue
            for entry in os.scandir(folder.path):
                if entry.name.endswith((_BLOCK, _PART)):
                    with contextlib.suppress(FileNotFoundError):
                        status = entry.stat(follow_symlinks=False)
                        yield _Found(status.st_mtime_ns, status.st_size, entry.path)


def _removed_if_free(part: str) -> bool:
    """Remove a ``.part`` whose writer was killed. Returns False if the writer is alive."""
    try:
        handle = os.open(part, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        is_free = bool(try_lock(handle))
        if is_free:
            os.unlink(part)
    finally:
        os.close(handle)
    return is_free


_REQUESTS = 64
"""Maximum number of blocks that are requested before they are read."""
_MOST = 64
"""Maximum number of batches that are requested ahead."""

T = TypeVar("T", bound=Sequence[Any])


def ahead(batches: Iterable[T], request: Callable[[T], int]) -> Iterator[T]:
    """Yield the batches. Before a batch is yielded, the batches after it are requested."""
    waiting: deque[tuple[T, int]] = deque()
    requested = 0
    for batch in batches:
        count = request(batch)
        waiting.append((batch, count))
        requested += count
        while len(waiting) > 1 and (requested > _REQUESTS or len(waiting) > _MOST):
            first, count = waiting.popleft()
            requested -= count
            yield first
    for batch, _ in waiting:
        yield batch

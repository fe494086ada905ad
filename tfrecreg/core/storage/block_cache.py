"""Blocks of files behind URLs in a folder: bounded, and shared by the processes of a host.

::

    CACHE/tfrecreg-blocks-1/used            bytes that blocks take; it is locked to change that
    CACHE/tfrecreg-blocks-1/removed         modified whenever blocks were removed for others
    CACHE/tfrecreg-blocks-1/3f/3f…-22-12.block  a block, by its file, its size and its number
    CACHE/tfrecreg-blocks-1/3f/3f…-22-12.part   the same on its way; who writes it has it locked

A block gets its name when it is complete. Whoever wants one that another process is writing waits
for it. A killed process leaves a ``.part``, whose lock is free: the next one that wants the block
writes it anew, and eviction removes it. Room is counted before it is taken, so the limit holds
whatever is killed; what is counted too much is found when room is sought next.

Blocks that were not used for longest go first. Readers that have one open are not disturbed: a file
lives until it is closed.

The bytes of blocks are not verified here: whoever reads records verifies them, and has a damaged
block forgotten.

Fetching ahead along a sequence that is known: what is read next is on its way.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import stat
import time
import warnings
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import FileIO
from typing import Any, NamedTuple, TypeVar

from tfrecreg.core.storage.local import LocalReader
from tfrecreg.core.storage.paths import is_url, path_text
from tfrecreg.core.storage.renames import exclusive
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.text import safe
from tfrecreg.core.values.typed_values import parse_size

# Locks, descriptors and exact flags need os, not pathlib.


_LARGEST_BYTES = 4 << 20
"""Size of a block of a cache that has room for :data:`_FEWEST` of them,"""
_FEWEST = 64
_LEAST_BYTES = 1 << 16
"""and the smallest one of smaller caches."""
LEAST_LIMIT = 1 << 20
_FOLDER = "tfrecreg-blocks-1"
_BLOCK, _PART = ".block", ".part"
_OPEN = 256
"""Maximum number of blocks that a process has open; fewer where it may not open many files, and no
more than half of the limit: what others remove takes room until this process opens its next one."""
_SLACK = 32
"""Of the limit, 1 / 32 more is freed than is needed, so that the next ones need not look."""
_PATIENCE = 60.0
"""Seconds to wait for another process that fetches the same block; then it is also fetched here."""
_PAUSE = 0.02
_TOUCHED_NS = 1_000_000_000
"""How long a block counts as used now, so that it is not told again."""
_FULL_FOR = 256
"""How many more blocks are not kept after one for which there was no room."""


def open_cache(folder: str | os.PathLike[str] | None, limit: int | str | None) -> BlockCache | None:
    """The cache that the arguments `cache` and `cache_limit` name; None without them."""
    if folder is None and limit is None:
        return None
    if folder is None or limit is None:
        raise UsageError(
            "`cache` and `cache_limit` belong together",
            hint='`cache="/local/cache", cache_limit="50GB"`',
        )
    place = os.path.expanduser(os.fsdecode(folder))
    if is_url(place) or not place or "\0" in place:
        raise UsageError(
            f"`cache` should be a folder of this machine, found `{path_text(place)}`",
            hint='`cache="/local/cache"`',
        )
    try:
        size = parse_size(limit)
        if size < LEAST_LIMIT:
            raise ValueError("expected `1MiB` or more")
    except ValueError as error:
        raise UsageError(
            f"`cache_limit`: {error}, found `{safe(str(limit), limit=100)}`",
            hint='`cache_limit="50GB"`',
        ) from None
    cache = BlockCache(place, size)
    cache.expect_writable()
    return cache


class _Found(NamedTuple):
    """A file of the cache."""

    mtime_ns: int
    size: int
    path: str


class _OpenBlock(LocalReader):
    """A block, closed with its last reference: a thread may still read one that was dropped.

    Of a cache larger than what can be open, each record of a random order opens one. So this costs
    two system calls, where `LocalReader` has more patience with what may be in its place.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = FileIO(os.open(path, flags))
        status = os.fstat(self._file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        self.size = status.st_size
        self.mtime_ns = status.st_mtime_ns

    def is_removed(self) -> bool:
        """Whether it is only here because it is open."""
        return os.fstat(self._file.fileno()).st_nlink == 0

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self.close()


class BlockCache:
    """The folder of a cache. Picklable, safe for threads and after a fork."""

    def __init__(self, folder: str, limit: int) -> None:
        self.folder = os.path.abspath(folder)
        self.limit = limit
        whole = 1 << (max(1, limit // _FEWEST).bit_length() - 1)
        self.block_bytes = min(_LARGEST_BYTES, max(_LEAST_BYTES, whole))
        """Size of a block, a power of two; the last one of a file is smaller."""
        self._root = os.path.join(self.folder, _FOLDER)
        self._since = time.time_ns()
        """Blocks that were not used since may go for any other one."""
        self._open: OrderedDict[str, _OpenBlock] = OrderedDict()
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4
        self._most_open = max(1, min(_OPEN, files, limit // self.block_bytes // 2))
        self._removed_ns = 0
        self._full = 0
        self._failed = False

    def __reduce__(self) -> tuple[Any, ...]:
        return BlockCache, (self.folder, self.limit)

    def expect_writable(self) -> None:
        """Make the folder, and refuse one that cannot be written."""
        try:
            os.makedirs(self._root, exist_ok=True)
            with exclusive(self._used):
                pass
        except OSError as error:
            raise StorageError(
                f"the cache `{path_text(self.folder)}` cannot be written: "
                f"{error.strerror or error}",
                hint="name a folder on a local disk with `cache=`",
            ) from error

    @property
    def _used(self) -> str:
        return os.path.join(self._root, "used")

    @property
    def _removed(self) -> str:
        return os.path.join(self._root, "removed")

    def name(self, key: str, number: int | str) -> str:
        """The name of a block."""
        return f"{key}-{self.block_bytes.bit_length() - 1}-{number}"

    def _path(self, name: str) -> str:
        return os.path.join(self._root, name[:2], name + _BLOCK)

    def has(self, name: str) -> bool:
        """Whether a block is here."""
        return name in self._open or os.path.exists(self._path(name))

    def opened(self, name: str) -> LocalReader | None:
        """A block that is open; None for others."""
        return self._open.get(name)

    def reader(self, name: str, size: int) -> LocalReader | None:
        """A block, open for reading; None if it is not here."""
        found = self._open.get(name)
        if found is not None:
            return found
        path = self._path(name)
        self._close_removed()
        try:
            found = _OpenBlock(path)
            if time.time_ns() - found.mtime_ns > _TOUCHED_NS or found.mtime_ns < self._since:
                os.utime(path)
        except OSError:
            if found is None:
                return None
        if found.size != size:
            found.close()
            self.forget(name)
            return None
        self._open[name] = found
        while len(self._open) > self._most_open:
            with contextlib.suppress(KeyError):
                self._open.popitem(last=False)
        return found

    def _close_removed(self) -> None:
        """Close what was removed for others since this was called last."""
        try:
            removed_ns = os.stat(self._removed).st_mtime_ns
        except OSError:
            return
        if removed_ns == self._removed_ns:
            return
        self._removed_ns = removed_ns
        for name, block in list(self._open.items()):
            if block.is_removed():
                self._open.pop(name, None)

    def forget(self, name: str) -> None:
        """Remove a block, which is damaged."""
        self._open.pop(name, None)
        path = self._path(name)
        with contextlib.suppress(OSError):
            self._remove(path, os.path.getsize(path))

    def keep(
        self, name: str, size: int, fetch: Callable[[], bytes], *, for_used: bool
    ) -> bytes | None:
        """Fetch a block and keep it; wait if another process is doing so."""
        if self._failed or not self._may_fit(size, for_used):
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
        try:
            return self._write(handle, part, path, size, fetch, for_used)
        finally:
            os.close(handle)

    def _may_fit(self, size: int, for_used: bool) -> bool:
        if size > self.limit:
            return False
        if self._full and not for_used:
            self._full -= 1
            return False
        return True

    def _turn(self, path: str, part: str) -> int | None:
        """The locked descriptor of a part; None if the block is here, or another one is too
        slow.
        """
        end = time.monotonic() + _PATIENCE
        os.makedirs(os.path.dirname(part), exist_ok=True)
        while True:
            if os.path.exists(path):
                return None
            handle = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                if time.monotonic() > end:
                    return None
                time.sleep(_PAUSE)
                continue
            except OSError:
                pass  # a file system without locks: two may write the same bytes
            # The one before may have renamed or removed it between `open` and `flock`.
            with contextlib.suppress(OSError):
                if os.path.samestat(os.fstat(handle), os.stat(part)) and not os.path.exists(path):
                    return handle
            os.close(handle)

    def _write(
        self,
        handle: int,
        part: str,
        path: str,
        size: int,
        fetch: Callable[[], bytes],
        for_used: bool,
    ) -> bytes | None:
        kept = reserved = False
        data: bytes | None = None
        try:
            reserved = self._reserve(part, size, for_used=for_used)
            if not reserved:
                self._full = _FULL_FOR
                return None
            data = fetch()
            left = memoryview(data)
            os.ftruncate(handle, 0)
            while left:
                left = left[os.write(handle, left) :]
            with exclusive(self._used):  # whoever counts what is here sees it under one name
                os.rename(part, path)
            kept = True
        except OSError as error:
            self._give_up(error)
        finally:
            if not kept:
                self._remove(part, size if reserved else 0)
        return data

    def _give_up(self, error: OSError) -> None:
        """Go on without the cache in this process, after one line about it."""
        if not self._failed:
            self._failed = True
            warnings.warn(
                f"the cache `{path_text(self.folder)}` cannot be written: "
                f"{error.strerror or error}; records are read from the store without it",
                RuntimeWarning,
                stacklevel=2,
            )

    def _reserve(self, part: str, size: int, *, for_used: bool) -> bool:
        """Count a block that is written as `part`, and remove others for it."""
        with exclusive(self._used):
            used = self._read_used()
            if used is None or used + size > self.limit:
                target = self.limit - size - self.limit // _SLACK
                used = self._evict(part, max(0, target), None if for_used else self._since)
            fits = used + size <= self.limit
            self._write_used(used + size * fits)
            return fits

    def _remove(self, path: str, size: int) -> None:
        """Remove a file, and count it no more."""
        with contextlib.suppress(OSError), exclusive(self._used):
            os.unlink(path)
            used = self._read_used()
            if used is not None:
                self._write_used(max(0, used - size))

    def _read_used(self) -> int | None:
        """Bytes that are counted; None if it has to be found out."""
        try:
            with open(self._used, encoding="ascii") as file:
                return int(file.read(20))
        except (OSError, ValueError):
            return None

    def _write_used(self, used: int) -> None:
        # In place, since its inode is the lock. A half of it is not a number with an end.
        handle = os.open(self._used, os.O_WRONLY)
        try:
            os.pwrite(handle, f"{used:020d}".encode("ascii"), 0)
        finally:
            os.close(handle)

    def _evict(self, part: str, target: int, before: int | None) -> int:
        """Remove blocks until the others have `target` bytes or fewer."""
        blocks: list[_Found] = []
        used = 0
        for found in self._files():
            if found.path.endswith(_BLOCK):
                blocks.append(found)
                used += found.size
            elif found.path != part and not _removed_if_free(found.path):
                used += self.block_bytes  # as much as it may become
        for block in sorted(blocks):
            if used <= target or (before is not None and block.mtime_ns >= before):
                break
            with contextlib.suppress(OSError):
                os.unlink(block.path)
                used -= block.size
            self._open.pop(os.path.basename(block.path).removesuffix(_BLOCK), None)
        os.close(os.open(self._removed, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666))
        now = time.time_ns()  # the system's own times are coarser than two evictions are apart
        os.utime(self._removed, ns=(now, now))
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
    """Remove the part of a process that was killed. False if its writer is alive."""
    try:
        handle = os.open(part, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(part)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


_REQUESTS = 64
"""Maximum number of blocks that are requested before they are read,"""
_MOST = 64
"""and of batches."""

T = TypeVar("T", bound=Sequence[Any])


def ahead(
    batches: Iterable[T], request: Callable[[T], int], *, most_requests: int = _REQUESTS
) -> Iterator[T]:
    """The same batches; those that follow are requested."""
    waiting: deque[tuple[T, int]] = deque()
    requested = 0
    for batch in batches:
        count = request(batch)
        waiting.append((batch, count))
        requested += count
        while len(waiting) > 1 and (requested > most_requests or len(waiting) > _MOST):
            first, count = waiting.popleft()
            requested -= count
            yield first
    for batch, _ in waiting:
        yield batch

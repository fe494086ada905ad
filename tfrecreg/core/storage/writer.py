"""Writes a local file that is invisible until it is complete."""

# This module needs descriptors and exact flags. pathlib has neither.

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Callable
from contextlib import suppress

from tfrecreg.core.storage.interface import Writer
from tfrecreg.core.storage.paths import no_folder, refusal, translated
from tfrecreg.core.values.errors import StorageError

LINKLESS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
"""Errors of link(2) if a file system has no hard links, or if a file has the maximum number of
links.
"""

_BUFFER = 1 << 20
_DIRECT = 1 << 16
"""A piece of at least this size is written directly. Copying it takes longer than a system call."""
_NAME_MAX = 255
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp", re.DOTALL)
# Errors of fsync(2) on file systems that cannot sync folders. They are ignored.
_SYNCLESS = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
LOCKLESS = _SYNCLESS | {errno.ENOLCK}
"""Errors of flock(2) on file systems without locks."""


def is_temporary(path: str) -> bool:
    """Whether `path` has the name of a writer's temporary file. A killed writer leaves its file."""
    return _TEMPORARY.fullmatch(path.rpartition("/")[2]) is not None


def try_lock(handle: int, *, shared: bool = False) -> bool | None:
    """Lock an open file or folder until it is closed. False if another process holds the lock; None
    if the file system has no locks.
    """
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


class LocalWriter(Writer):
    """A file that is written next to its destination.

    After the first error, the temporary file is deleted. Then :meth:`write` and :meth:`close` raise
    that error again, so an incomplete file never appears. The temporary file is locked until it
    gets its name, so that it can be distinguished from a killed writer's file.
    """

    def __init__(self, path: str, *, durable: bool = True) -> None:
        self._path = path
        self._durable = durable
        self._folder, name = os.path.split(path)
        # The length of names is limited in bytes. If the cut splits a character, the first bytes of
        # that character are dropped.
        ending = f".{os.urandom(8).hex()}.tmp"
        start = os.fsencode(name)[: _NAME_MAX - 1 - len(ending)].decode("utf-8", "ignore")
        self._temporary = os.path.join(self._folder, f".{start}{ending}")
        self._buffer = bytearray()
        self._open = True
        self._refusal: StorageError | None = None
        with translated("write", path):
            make_folders(self._folder)
            handle, self._lock = _create_locked(self._temporary)
        self._file = os.fdopen(handle, "wb", buffering=0)

    def write(self, data: bytes | memoryview) -> None:
        self._check()
        if not self._open:
            raise StorageError(f"`{self._path}` is closed: nothing more can be written")
        view = memoryview(data).cast("B")
        try:
            if len(view) >= _DIRECT:
                self._flush()
                self._push(view)
                return
            self._buffer += view
            if len(self._buffer) >= _BUFFER:
                self._flush()
        except OSError as error:
            raise self._fail(error) from error

    def close(self) -> None:
        self._finish(os.replace)

    def close_new(self) -> bool:
        """Like :meth:`close`, but only if the name is free. If it is taken, delete the file and
        return False.
        """
        try:
            self._finish(_take_free_name)
        except StorageError as error:
            if isinstance(error.__cause__, FileExistsError):
                return False
            raise
        return True

    def abort(self) -> None:
        if not self._open:
            return
        self._open = False
        with translated("remove", self._temporary):
            try:
                self._file.close()
            finally:
                try:
                    _unlink(self._temporary)
                finally:
                    os.close(self._lock)

    def _finish(self, publish: Callable[[str, str], None]) -> None:
        self._check()
        if not self._open:
            return
        try:
            self._flush()
            if self._durable:
                os.fsync(self._file.fileno())
            self._file.close()
            publish(self._temporary, self._path)
            self._open = False
            os.close(self._lock)
            if self._durable:
                sync_folder(self._folder)
        except OSError as error:
            raise self._fail(error) from error

    def _flush(self) -> None:
        if not self._buffer:
            return
        with memoryview(self._buffer) as view:
            self._push(view)
        self._buffer.clear()

    def _push(self, view: memoryview) -> None:
        done = 0
        while done < len(view):
            done += self._file.write(view[done:]) or 0

    def _check(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def _fail(self, error: OSError) -> StorageError:
        self._refusal = refusal("write", self._path, error)
        # Raise the original error, not an error of the cleanup.
        with suppress(StorageError):
            self.abort()
        return self._refusal


def _create_locked(path: str) -> tuple[int, int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    while True:
        handle = os.open(path, flags, 0o666)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(handle, fcntl.LOCK_EX)
            # Between the two calls the file was not locked, so another process may have removed it.
            if os.fstat(handle).st_nlink:
                return handle, os.dup(handle)
        except BaseException:
            os.close(handle)
            _unlink(path)
            raise
        os.close(handle)


def _take_free_name(temporary: str, path: str) -> None:
    """Move `temporary` to `path`. Raises FileExistsError if `path` exists."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in LINKLESS:
            raise
        # Without hard links the name is claimed first. A kill between the two steps leaves an empty
        # file under it; a half-written file is never visible.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        try:
            os.replace(temporary, path)
        except OSError:
            _unlink(path)
            raise
    else:
        os.unlink(temporary)


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def make_folders(folder: str) -> None:
    """Create `folder` and its parents, and make each of them durable. Raises OSError."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        try:
            os.mkdir(each)
        except FileExistsError:
            if not os.path.isdir(each):
                raise no_folder(each) from None
        sync_folder(os.path.dirname(each))


def make_way(folder: str, top: str) -> None:
    """Create `folder` and its parents. Sync every parent up to `top`, so that the names in it are
    durable. Parents that existed before are synced as well, because another process may have been
    killed before it synced them. Raises OSError.
    """
    make_folders(folder)
    while len(folder) > len(top):
        folder = os.path.dirname(folder)
        sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make the names in `folder` durable, if the file system supports it. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _SYNCLESS:
            raise
    finally:
        os.close(handle)

"""Moves a folder to a free name and exchanges two folders, atomically if possible.

Linux does both with flags of renameat2(2). Elsewhere, and on file systems without the flags, plain
renames are used. :func:`replace` describes the state if the process is killed between two renames.

The module also locks files, so that the processes on one machine take turns.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache

from tfrecreg.core.storage.paths import no_folder
from tfrecreg.core.storage.writer import make_way, sync_folder, try_lock
from tfrecreg.core.values.errors import StorageError

# Names are passed to the kernel unchanged: pathlib would normalize them.


ASIDE = ".old"
"""The suffix of ``<source>.old``, under which :func:`replace` keeps the old folder."""

_AT_FDCWD = -100
_NOREPLACE = 1
_EXCHANGE = 2
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_TAKEN = frozenset({errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR})


def move_to_free_name(source: str, target: str, top: str) -> bool:
    """Rename the folder `source` to `target`. If `target` is taken, keep `source`; return False."""
    _require_folder(source)
    make_way(os.path.dirname(target), top)
    try:
        if not _renameat2(source, target, _NOREPLACE):
            # Two processes may pass this test at once, but a rename never replaces a folder with
            # files.
            if os.path.lexists(target):
                return False
            os.rename(source, target)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    try:
        _sync_parents(source, target)
    except OSError:
        # A caller tries again after an error, so no remains of this attempt may be in the way.
        with suppress(OSError):
            os.rename(target, source)
        raise
    return True


def replace(source: str, target: str, top: str) -> None:
    """Replace the folder `target` with `source`. The old `target` is then at `source`.

    If the kernel cannot exchange them, three renames are made. The first renames `target` to
    ``<source>.old``, the second renames `source` to `target`, and the third renames
    ``<source>.old`` to `source`. If the process is killed after the first rename, `target` does not
    exist, the new folder is at `source`, and the old folder is at ``<source>.old``. If it is killed
    after the second rename, the new folder is at `target`, the old folder is at ``<source>.old``,
    and `source` does not exist. In both cases, repeating the call completes the exchange. If the
    second rename fails, the first rename is undone at once.
    """
    aside = source + ASIDE
    if os.path.lexists(aside):
        here, there = os.path.lexists(source), os.path.lexists(target)
        if here and there:
            raise StorageError(
                f"`{aside}` is in the way: it holds the old content of a folder that was being "
                "replaced, but nothing shows which folder"
            )
        if not there:
            _require_folder(source)
            os.rename(source, target)
            _sync_parents(target, source)
        os.rename(aside, source)
        _sync_parents(target, source)
        return
    _require_folder(source)
    make_way(os.path.dirname(target), top)
    if not os.path.lexists(target):
        os.rename(source, target)
    elif not _renameat2(source, target, _EXCHANGE):
        os.rename(target, aside)
        _sync_parents(target, aside)
        try:
            os.rename(source, target)
        except OSError:
            os.rename(aside, target)
            raise
        _sync_parents(target, source)
        os.rename(aside, source)
    _sync_parents(target, source)


def _require_folder(path: str) -> None:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise no_folder(path)


def _sync_parents(*paths: str) -> None:
    for folder in dict.fromkeys(os.path.dirname(path) for path in paths):
        sync_folder(folder)


def _renameat2(source: str, target: str, flags: int) -> bool:
    """Rename atomically. If the flags are not supported, return False without changes."""
    call = _system_call()
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), source, None, target)


@cache
def _system_call() -> Callable[..., int] | None:
    if not sys.platform.startswith("linux"):
        return None
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return None
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    call.restype = ctypes.c_int
    return call


@contextlib.contextmanager
def exclusive(
    path: str, waiting: Callable[[], None] | None = None, *, shared: bool = False
) -> Iterator[None]:
    """Hold the lock on a file during the ``with`` block, after waiting for the current holder. The
    system releases the lock when the process ends.

    On a file system without locks, this function does not wait. So correctness must not depend on
    the lock.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if try_lock(handle, shared=shared) is False:
            if waiting is not None:
                waiting()
            fcntl.flock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def held_shared(path: str) -> int:
    """Share the lock on a file while the returned descriptor is open. Raises OSError if the file
    cannot be opened.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with suppress(OSError):  # a file system without locks
        fcntl.flock(handle, fcntl.LOCK_SH)
    return handle


@contextlib.contextmanager
def exclusive_if_free(path: str) -> Iterator[bool]:
    """Lock a file. Yields False if another process holds or shares the lock, otherwise True."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        yield try_lock(handle) is not False
    finally:
        os.close(handle)

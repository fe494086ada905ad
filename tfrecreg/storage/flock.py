"""Locks on files, by which the processes of one machine take turns."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def exclusive(
    path: str, waiting: Callable[[], None] | None = None, *, shared: bool = False
) -> Iterator[None]:
    """Hold the lock on a file; wait for the current holder. The lock of a process ends with it.

    On a file system without locks nobody waits, so nothing that has to be right may rest on it.

    Args:
        path: the file, which is created where it is missing; its folder exists.
        waiting: called once if somebody else has the lock.
        shared: others may hold it at the same time, as long as they share it too.

    Raises:
        OSError: the file cannot be opened.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(handle, kind)
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)


def held_shared(path: str) -> int | None:
    """Share the lock on a file for as long as the returned descriptor is open.

    Returns:
        the descriptor; None where the file cannot be opened or locked, as on a medium that is
        mounted read-only: nobody can remove anything there either.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
    except OSError:
        os.close(handle)
        return None
    return handle


@contextlib.contextmanager
def exclusive_if_free(path: str) -> Iterator[bool]:
    """Hold the lock on a file if nobody else does, nor shares it.

    Yields:
        whether it is held; True as well on a file system without locks.

    Raises:
        OSError: the file cannot be opened.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:
            pass  # a file system without locks
        yield True
    finally:
        os.close(handle)

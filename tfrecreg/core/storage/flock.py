"""Locks on files, for mutual exclusion of processes on one machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def exclusive(
    path: str, waiting: Callable[[], None] | None = None, *, shared: bool = False
) -> Iterator[None]:
    """Hold the lock on a file; wait for the current holder. The system releases it when the process
    ends.

    On a file system without locks this does not wait, so correctness must not depend on it.
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
    """Share the lock on a file while the returned descriptor is open."""
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
    """Hold the lock on a file if no other process holds or shares it."""
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

"""A lock on a file, by which processes of one machine take turns."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

__all__ = ["exclusive"]


@contextlib.contextmanager
def exclusive(path: str, waiting: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock on a file; wait for whoever has it. A process that dies holds nothing.

    On a file system without locks nobody waits, so nothing that has to be right may rest on it.

    Args:
        path: of the file, which is made where it is missing; its folder is there.
        waiting: called once if somebody else has the lock.

    Raises:
        OSError: the file cannot be opened.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks
        yield
    finally:
        os.close(handle)

"""stdout and stderr that remember why they could not be written.

An `OSError` of a stream looks like that of any file. The end of a command distinguishes them: one
is a full disk or a closed pipe, the other is a bug.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO


class _Output(io.FileIO):
    failure: OSError | None = None
    """The first error of a write."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = self.failure or error
            raise


def watched(descriptor: int, like: TextIO) -> TextIO:
    """A stream over an open descriptor, which remembers why it could not be written."""
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(descriptor, "w", closefd=False)),
        encoding=like.encoding,
        errors="backslashreplace",  # a terminal that is not UTF-8 has no `×`
        line_buffering=getattr(like, "line_buffering", False),
        write_through=getattr(like, "write_through", False),
    )


def watch_streams() -> None:
    """Watch stdout and stderr. One that was closed fails with its first write."""
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            # Otherwise the next opened file would get the descriptor, and the output.
            os.dup2(os.open(os.devnull, os.O_RDONLY), descriptor)
            stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
        stream.flush()
        made = watched(descriptor, stream)
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)


def write_failure() -> OSError | None:
    """Why stdout could not be written, or else stderr; None if nothing failed."""
    for stream in (sys.stdout, sys.stderr):
        raw = getattr(getattr(stream, "buffer", None), "raw", None)
        failure: OSError | None = getattr(raw, "failure", None)
        if failure is not None:
            return failure
    return None


def settle() -> OSError | None:
    """Flush stdout and stderr, so that Python does not fail at it when it exits."""
    found: OSError | None = None
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            found = found or error
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
                stream.flush()
    return found


def explanation(failure: OSError) -> str:
    """Why it failed, in the words of the system."""
    return os.strerror(failure.errno or errno.EIO)

"""Streams for stdout and stderr that record the first write error.

An `OSError` does not tell whether a stream or another file failed. When a command ends, the two
cases must be distinguished: a stream fails because of a full disk or a closed pipe, but any other
`OSError` is a bug.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any


class _Output(io.FileIO):
    failure: OSError | None = None
    """The first error of a write."""

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = self.failure or error
            raise


def watch_streams() -> None:
    """Make streams for stdout and stderr that record the first write error. If stdout or stderr is
    closed, the first write to it fails.
    """
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            # Otherwise the next opened file would get this descriptor, and the output with it.
            os.dup2(os.open(os.devnull, os.O_RDONLY), descriptor)
            stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
        stream.flush()
        made = io.TextIOWrapper(
            io.BufferedWriter(_Output(descriptor, "w", closefd=False)),
            encoding=stream.encoding,
            errors="backslashreplace",  # a terminal that is not UTF-8 has no `×`
            line_buffering=getattr(stream, "line_buffering", False),
            write_through=getattr(stream, "write_through", False),
        )
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)


def write_failure() -> OSError | None:
    """The first write error of stdout. If stdout has none, the first write error of stderr, or
    None.
    """
    for stream in (sys.stdout, sys.stderr):
        raw = getattr(getattr(stream, "buffer", None), "raw", None)
        failure: OSError | None = getattr(raw, "failure", None)
        if failure is not None:
            return failure
    return None


def settle() -> OSError | None:
    """Flush stdout and stderr, so that Python's own flush at exit cannot fail."""
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

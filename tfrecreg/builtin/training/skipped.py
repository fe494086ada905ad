"""Damaged records that were left out: one list for all processes that read a source.

The list is a file in the folder for temporary files. The process that makes the source makes it,
and removes it with the source; worker processes find it open, if they were forked, or open it by
its path. Each line is one record, added in one write. A process adds its line before it counts, so
of several that pass a limit together at least one counts all lines.

A source that is unpickled where the file is not, on another machine or on another day, begins a
list of its own.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
import weakref
from contextlib import suppress
from typing import NamedTuple

from tfrecreg.core.values.errors import StorageError
from tfrecreg.core.values.text import safe

_READ_BYTES = 1 << 16


class SkippedRecord(NamedTuple):
    """A damaged record that was left out. Strings are escaped."""

    shard: str
    record: int
    """Its number in the shard."""
    reason: str
    """``CRC002: data checksum should be …``; with byte and key."""


class SkippedRecords:
    """The records that all processes have left out so far."""

    def __init__(self, place: tuple[str, str] | None = None) -> None:
        self._known: dict[int, SkippedRecord] = {}
        found = _opened(*place) if place is not None else None
        if found is None:
            token = secrets.token_hex(16)
            found, path = _made(token)
            place = path, token
            weakref.finalize(self, _remove, path, os.getpid())
        assert place is not None
        self._file, self.place = found, place
        """Path and token, for a process that is spawned."""
        self._read = len(place[1]) + 1
        weakref.finalize(self, os.close, found)

    def add(self, number: int, record: SkippedRecord) -> int:
        """Add a record, and return how many records the list has."""
        if number not in self._known:
            line = (json.dumps([number, *record]) + "\n").encode("ascii")
            try:
                written = os.write(self._file, line)
            except OSError as error:
                raise self._failed(error.strerror) from None
            if written < len(line):
                raise self._failed("No space left on device")
        return len(self._all())

    def records(self) -> tuple[SkippedRecord, ...]:
        """All of them, in order of their numbers."""
        return tuple(record for _, record in sorted(self._all().items()))

    def _all(self) -> dict[int, SkippedRecord]:
        """All of them by number, with those added since the last time."""
        data = b""
        try:
            while more := os.pread(self._file, _READ_BYTES, self._read + len(data)):
                data += more
        except OSError as error:
            raise self._failed(error.strerror) from None
        whole = data[: data.rfind(b"\n") + 1]
        for line in whole.splitlines():
            number, *record = json.loads(line)
            self._known[number] = SkippedRecord(*record)
        self._read += len(whole)
        return self._known

    def _failed(self, reason: str | None) -> StorageError:
        return StorageError(
            f"the list of damaged records in `{safe(self.place[0])}` cannot be kept: {reason}",
            hint="`TMPDIR` names another folder for temporary files",
        )


def _made(token: str) -> tuple[int, str]:
    try:
        handle, path = tempfile.mkstemp(prefix="tfrecreg-skipped-")
        os.close(handle)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        os.write(handle, token.encode("ascii") + b"\n")
    except OSError as error:
        raise StorageError(
            f"no list of damaged records can be made in `{safe(tempfile.gettempdir())}`: "
            f"{error.strerror}",
            hint="`TMPDIR` names another folder for temporary files",
        ) from None
    return handle, path


def _opened(path: str, token: str) -> int | None:
    """The file, if it is still the one that was made with this token."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        if os.pread(handle, len(token) + 1, 0) == token.encode("ascii") + b"\n":
            return handle
        os.close(handle)
    return None


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a process that was forked
        with suppress(OSError):
            os.remove(path)  # noqa: PTH107 - it runs while the process ends

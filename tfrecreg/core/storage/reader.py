"""One local file, open for reading at any offset."""

# This module needs descriptors and exact flags, which pathlib does not have.

from __future__ import annotations

import errno
import os
import stat
from io import FileIO

from tfrecreg.core.storage.interface import Reader
from tfrecreg.core.storage.paths import entry_kind, path_text, refusal, translated
from tfrecreg.core.values.errors import StorageError


class LocalReader(Reader):
    """A regular file, open for reading. See :class:`tfrecreg.core.storage.interface.Reader`."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            # The first check avoids opening devices, which alone may have side effects; the second
            # check below detects a change in between, and O_NONBLOCK avoids waiting for a FIFO.
            self._refuse(os.stat(path).st_mode)
            flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            self._file = FileIO(os.open(path, flags))
        except NotADirectoryError as error:
            raise refusal("read", path, FileNotFoundError(errno.ENOENT, "")) from error
        except OSError as error:
            raise refusal("read", path, error) from error
        try:
            status = os.fstat(self._file.fileno())
            self._refuse(status.st_mode)
        except (OSError, StorageError) as error:
            self._file.close()
            if isinstance(error, OSError):
                raise refusal("read", path, error) from error
            raise
        self.size = status.st_size

    def _refuse(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            raise StorageError(
                f"cannot read `{path_text(self._path)}`: expected a regular file, "
                f"found {entry_kind(mode)}",
                hint="name a file, or move away what has its place",
            )

    def read_at(self, start: int, length: int) -> bytes:
        # A hot path: a context manager around it would take longer than the system call.
        try:
            return self._read_at(start, length)
        except OSError as error:
            raise refusal("read", self._path, error) from error

    def _read_at(self, start: int, length: int) -> bytes:
        handle = self._file.fileno()
        if start + length > self.size:
            # pread(2) in Python allocates the requested size: do not request more than the file
            # has.
            length = min(length, os.fstat(handle).st_size - start)
        if length <= 0:
            return b""
        data = os.pread(handle, length, start)
        if len(data) == length or not data:
            return data
        pieces = [data]
        missing = length - len(data)
        while missing and (data := os.pread(handle, missing, start + length - missing)):
            pieces.append(data)
            missing -= len(data)
        return b"".join(pieces)

    def located(self, start: int, length: int) -> tuple[int, int, object] | None:
        return (self._file.fileno(), start, self) if start + length <= self.size else None

    def sync(self) -> None:
        """Make the file's bytes durable, even if another process wrote them."""
        with translated("sync", self._path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

"""A reader as one of Python's file objects, for libraries that take such."""

from __future__ import annotations

import io
from typing import Any

from tfrecreg.core.storage.interface import Reader


class ReadingFile(io.RawIOBase):
    """Reads a file of a storage at any offset. Closing it is up to the owner of the reader."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader = reader
        self._position = 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill `buffer`, as far as the file goes."""
        view = memoryview(buffer).cast("B")
        data = self._reader.read_at(self._position, len(view))
        view[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Go to an offset."""
        start = {io.SEEK_CUR: self._position, io.SEEK_END: self._reader.size}.get(whence, 0)
        self._position = max(start + offset, 0)
        return self._position

    def tell(self) -> int:
        """The offset of the next byte."""
        return self._position

"""Files of a storage as Python's file objects, for libraries that take such."""

from __future__ import annotations

import io
from typing import Any

from tfrecreg.api import Reader, Writer

_BUFFER = 1 << 18
_WHENCE_CURRENT, _WHENCE_END = io.SEEK_CUR, io.SEEK_END


class WritingFile(io.RawIOBase):
    """Writes to a file of a storage, from its beginning to its end. Closing it is up to the owner
    of the writer.
    """

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer
        self._position = 0

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: Any, /) -> int:
        """Append all of `data`."""
        view = memoryview(data).cast("B")
        self._writer.write(view)
        self._position += len(view)
        return len(view)

    def tell(self) -> int:
        """Bytes written."""
        return self._position


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
        start = {_WHENCE_CURRENT: self._position, _WHENCE_END: self._reader.size}.get(whence, 0)
        self._position = max(start + offset, 0)
        return self._position

    def tell(self) -> int:
        """The offset of the next byte."""
        return self._position


def buffered(reader: Reader) -> io.BufferedReader:
    """A :class:`ReadingFile` for many small reads, one after the other."""
    return io.BufferedReader(ReadingFile(reader), _BUFFER)

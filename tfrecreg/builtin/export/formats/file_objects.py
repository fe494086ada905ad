"""Files of a storage as Python's file objects, for libraries that take such."""

from __future__ import annotations

import io
from typing import Any

from tfrecreg.api import Reader, ReadingFile, Writer

_BUFFER = 1 << 18


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


def buffered(reader: Reader) -> io.BufferedReader:
    """A :class:`ReadingFile` for many small reads, one after the other."""
    return io.BufferedReader(ReadingFile(reader), _BUFFER)

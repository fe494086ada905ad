"""Local copies, without a name, of files behind URLs."""

from __future__ import annotations

import tempfile
from io import FileIO

from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.storage.paths import locate, path_text
from tfrecreg.core.storage.reader import LocalReader
from tfrecreg.core.values.errors import StorageError

_CHUNK = 1 << 22


def open_local(storage: Readable, path: str) -> Reader:
    """Open a file that is read at many places.

    A file behind a URL is copied once, into a temporary file in `TMPDIR`. It has no name, so it
    goes with the reader or with the process.

    Raises:
        StorageError: the file cannot be read, or there is no room for the copy.
    """
    reader = storage.open(path)
    if storage.is_local:
        return reader
    with reader:
        try:
            # Without a buffer: one that cannot be written would fail again when it is closed.
            file = tempfile.TemporaryFile(buffering=0, prefix="tfrecreg-")  # noqa: SIM115 - the reader closes it
        except OSError as error:
            raise _no_room(storage, path, reader, error) from error
        try:
            at = 0
            while piece := memoryview(reader.read_at(at, _CHUNK)):
                at += len(piece)
                while piece:
                    piece = piece[file.write(piece) :]
        except BaseException as error:
            file.close()
            if isinstance(error, OSError):
                raise _no_room(storage, path, reader, error) from error
            raise
    return _CopyReader(file, reader.size)


def _no_room(storage: Readable, path: str, reader: Reader, error: OSError) -> StorageError:
    return StorageError(
        f"cannot copy `{path_text(locate(storage.root, path))}` into a temporary file of "
        f"{reader.size} bytes: {error.strerror or error}",
        hint="set TMPDIR to a folder with room for it, or download the raw data",
    )


class _CopyReader(LocalReader):
    def __init__(self, file: FileIO, size: int) -> None:
        self._path, self._file, self.size = str(file.name), file, size

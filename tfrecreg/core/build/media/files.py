"""Raw files whose bytes go into an example, read as a whole."""

from __future__ import annotations

from tfrecreg.core.build.media.read import MediaError
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.values.errors import RawDataError
from tfrecreg.core.values.text import safe

_MAX_BYTES = 1 << 30
"""Most bytes of a file: a record may have twice as many, and a worker holds a few copies."""


def read_media_file(raw: Readable, path: str) -> bytes:
    """The bytes of an image, a sound, a video or any other file, at most 1 GiB.

    Raises:
        MediaError: it is larger (SRC063).
        RawDataError: it became shorter meanwhile.
        StorageError: it cannot be read.
    """
    with raw.open(path) as file:
        if file.size > _MAX_BYTES:
            raise MediaError(f"a file of {file.size} bytes, at most {_MAX_BYTES} go in", "SRC063")
        return read_whole_file(file, path)


def read_whole_file(file: Reader, path: str) -> bytes:
    """All bytes of an open file.

    Args:
        path: for messages.

    Raises:
        RawDataError: it became shorter meanwhile.
        StorageError: it cannot be read.
    """
    size = file.size
    data = file.read_at(0, size)
    if len(data) != size:
        raise RawDataError(
            f"`{safe(path)}` became shorter while it was read: expected {size} bytes, found "
            f"{len(data)}",
            hint="build again when no other process writes to the raw data",
        )
    return data

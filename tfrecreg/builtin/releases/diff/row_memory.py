"""Memory for the rows of a comparison: many rows are in a temporary file."""

from __future__ import annotations

import mmap
import os
import tempfile

import numpy as np
import numpy.typing as npt

from tfrecreg.core.storage.paths import advice
from tfrecreg.core.values.errors import StorageError

_HELD = 1 << 27
"""Bytes of rows that are kept in memory."""
_BLOCK = bytes(1 << 20)


def new_rows(count: int, width: int) -> npt.NDArray[np.uint8]:
    """Rows to be filled. Above 128 MiB they are in a file without a name, whose pages the system
    takes out of memory when it needs them. The file ends with the array.
    """
    size = count * width
    if size <= _HELD:
        return np.empty((count, width), np.uint8)
    try:
        with tempfile.TemporaryFile(prefix="tfrecreg-diff-") as file:
            # A file with holes would end the process where the disk is full.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                for at in range(0, size, len(_BLOCK)):
                    file.write(_BLOCK[: size - at])
                file.flush()
            memory = mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise StorageError(
            f"cannot write {size:,} bytes to `{tempfile.gettempdir()}` for the comparison: "
            f"{error.strerror}",
            hint=advice(error) or "TMPDIR names another folder",
        ) from error
    return np.frombuffer(memory, np.uint8).reshape(count, width)

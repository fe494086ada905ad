"""Random access to the entries of an IDX file, plain or in gzip."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from typing import IO

from tfrecreg.api import RawDataError, Storage, UsageError, safe
from tfrecreg_mnist.idx import Form, look, read

__all__ = ["Table"]

_HELD = 64 << 20
"""Entries that take no more bytes together are read at once: labels, and as many pictures as MNIST
has. A shuffle reads them in no order, and a system call for each is a tenth of a build's time."""


class Table:
    """Random access to the entries of one file.

    What lies inside gzip is decompressed once, into a temporary file without a name, which is
    gone with this object or with the process. Not picklable: each process opens its own.

    Raises:
        RawDataError: as :func:`look` and :func:`read` do.
        UsageError: no room for the temporary file.
    """

    def __init__(self, raw: Storage, path: str, dimensions: int) -> None:
        self.path = path
        self.form = look(raw, path, dimensions)
        if self.form.gzip:
            self._start = 0
            self._read_at, close = _unpacked(raw, path, self.form)
        else:
            self._start = self.form.start
            reader = raw.open(path)
            self._read_at, close = reader.read_at, reader.close
        if self.form.entry * self.form.shape[0] <= _HELD:
            data = self._read_at(self._start, self.form.entry * self.form.shape[0])
            self._read_at = lambda start, length: data[start : start + length]
            self._start = 0
        weakref.finalize(self, close)

    def entry(self, index: int) -> bytes:
        """The bytes of the entry number `index`, from 0.

        Raises:
            RawDataError: there is no such entry (any more).
        """
        length = self.form.entry
        inside = 0 <= index < self.form.shape[0]
        data = self._read_at(self._start + index * length, length) if inside else b""
        if len(data) != length:
            raise RawDataError(
                f"`{safe(self.path)}` has no entry {index}: it changed during the build",
                hint="build again",
            )
        return data


def _unpacked(
    raw: Storage, path: str, form: Form
) -> tuple[Callable[[int, int], bytes], Callable[[], None]]:
    file: IO[bytes] | None = None
    try:
        file = tempfile.TemporaryFile(prefix="tfrecreg-")  # noqa: SIM115  lives as long as the table
        for block in read(raw, path, form):
            file.write(block)
        file.flush()
    except OSError as error:
        if file is not None:
            _drop(file)
        raise UsageError(
            f"cannot decompress `{safe(path)}` into a temporary file of {form.decoded} bytes: "
            f"{safe(error.strerror or str(error))}",
            hint="set TMPDIR to a folder with room for it, or decompress the raw file",
        ) from error
    except BaseException:
        if file is not None:
            _drop(file)
        raise
    descriptor = file.fileno()
    return (lambda start, length: os.pread(descriptor, length, start)), file.close


def _drop(file: IO[bytes]) -> None:
    try:
        file.close()
    except OSError:
        return  # what was buffered has no room either, and nobody wants it any more

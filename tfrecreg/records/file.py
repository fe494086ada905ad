"""A file as a scan reads it: at any place, hashed as it lies, safe if it shrinks meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from blake3 import blake3

from tfrecreg.records.hashing import HashThread
from tfrecreg.storage.interface import Reader

__all__ = ["READ_BYTES", "HashedFile", "only_zeros", "places_of"]

READ_BYTES = 1 << 20
"""Bytes that are asked of the file system at once."""

_LARGE_BYTES = 8 << 20
"""A file of so many is hashed in a thread, whose start takes as long as hashing a piece."""


class HashedFile:
    """A reader that never reads behind the end, and hashes each byte the first time it passes.

    Reads come mostly in order. Whatever continues the part that was hashed already is hashed on
    the way, of a large file in a thread beside the reading; what was jumped over is read at the
    end.
    """

    def __init__(self, reader: Reader, *, digest: bool) -> None:
        self.end = reader.size
        """Where the file ends, as far as is known: less than at first if it shrank."""
        self._reader = reader
        self._hasher = blake3() if digest else None
        self._hashed = 0
        self._thread: HashThread | None = None

    def read(self, start: int, length: int) -> bytes:
        """Up to `length` bytes from `start`; fewer only where the file ends.

        Raises:
            StorageError: the file system failed to deliver.
        """
        length = min(length, self.end - start)
        if length <= 0:
            return b""
        data = self._reader.read_at(start, length)
        if len(data) < length:
            self.end = start + len(data)
        if self._hasher is not None and start <= self._hashed < start + len(data):
            self._hash(self._hasher, memoryview(data)[self._hashed - start :])
        return data

    def _hash(self, hasher: blake3, piece: memoryview) -> None:
        large = self._hashed and self.end >= _LARGE_BYTES
        if self._thread is None and large and HashThread.pays():
            self._thread = HashThread(hasher.update)
        if self._thread is None:
            hasher.update(piece)
        elif not self._thread.is_lost:  # else all is hashed at the end
            self._thread.update(piece)
        self._hashed += len(piece)

    def hexdigest(self) -> str | None:
        """blake3 of the whole file, reading what has not passed yet; None if not asked for."""
        if self._hasher is None:
            return None
        if self._thread is not None and self._thread.is_lost:
            self._hasher, self._hashed, self._thread = blake3(), 0, None
        while self.read(self._hashed, READ_BYTES):
            pass
        if self._thread is not None:
            self._thread.close()
            self._thread = None
        return self._hasher.hexdigest()


def only_zeros(file: HashedFile, at: int) -> bool:
    """Whether there is nothing but zeros from byte `at` of the file on."""
    while data := file.read(at, READ_BYTES):
        if data.count(0) != len(data):
            return False
        at += len(data)
    return True


def places_of(pattern: bytes, file: HashedFile, at: int) -> Iterator[int]:
    """Where `pattern` stands in the file from byte `at` on, in order."""
    while data := file.read(at, READ_BYTES):
        place = data.find(pattern)
        while place >= 0:
            yield at + place
            place = data.find(pattern, place + 1)
        if len(data) <= len(pattern):
            return
        at += len(data) - len(pattern) + 1

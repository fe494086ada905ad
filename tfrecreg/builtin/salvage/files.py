"""The files that a salvage writes: hashed on the way, visible when complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

from blake3 import blake3

from tfrecreg.builtin.salvage.model import Piece, StoredFile
from tfrecreg.core.records.gzip_writer import GzipEncoder
from tfrecreg.core.storage.interface import Storage, Writer
from tfrecreg.core.values.errors import StorageError


class HashingFile:
    """A file, written sequentially. It is created at the first byte, or when closed."""

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._hasher = blake3()
        self._file: Writer | None = None
        self.bytes = 0
        """Number of bytes written so far."""
        self.failed = False
        """Whether the file system refused it."""

    def write(self, data: bytes) -> None:
        """Append `data`."""
        with self._noting_failure():
            if self._file is None:
                self._file = self._storage.create(self._path)
            self._file.write(data)
        self._hasher.update(data)
        self.bytes += len(data)

    def close(self) -> StoredFile:
        """Let it appear, synced."""
        self.write(b"")
        with self._noting_failure():
            if self._file is not None:
                self._file.close()
        return StoredFile(path=self._path, bytes=self.bytes, blake3=self._hasher.hexdigest())

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except StorageError:
            self.failed = True
            raise

    def abort(self) -> None:
        """Drop it."""
        if self._file is not None:
            self._file.abort()


class CleanShard:
    """The clean shard: sound records only, compressed as the original was."""

    def __init__(self, file: HashingFile, compression: str) -> None:
        self._file = file
        self._gzip = GzipEncoder() if compression == "gzip" else None

    def write(self, data: bytes) -> None:
        """Append bytes of the stream: records, frames and all, or pieces of one."""
        self._file.write(data if self._gzip is None else self._gzip.feed(data))

    def end_record(self) -> None:
        """Note that the bytes written so far end with a record."""
        if self._gzip is not None:
            self._file.write(self._gzip.end_record())

    def close(self) -> None:
        """Flush the encoder. The caller closes the file."""
        if self._gzip is not None:
            self._file.write(self._gzip.close())


class Quarantine:
    """The bytes that were cut out of a shard, in order."""

    def __init__(self, file: HashingFile) -> None:
        self._file = file

    def add(self, data: Iterable[bytes], of: Literal["stream", "file"], at: int) -> list[Piece]:
        """Append consecutive bytes of the original."""
        offset = self._file.bytes
        for piece in data:
            self._file.write(piece)
        length = self._file.bytes - offset
        return [Piece(offset=offset, length=length, of=of, at=at)] if length else []

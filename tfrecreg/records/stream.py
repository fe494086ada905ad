"""A shard as one stream of bytes, whatever its compression, read once and hashed on the way.

Compression is told by the bytes, never by the name. A plain file whose first length happens to
look like gzip is still plain: the first 12 bytes are tried as a record's header first.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from blake3 import blake3

from tfrecreg.records.framing import HEADER_BYTES, header_length
from tfrecreg.records.gzip_writer import GZIP_BITS, MAGIC, MEMBER_HEADER, WINDOW_BITS, Compression
from tfrecreg.records.hashing import HashThread
from tfrecreg.storage.interface import Reader

SNIFF_BYTES = 1 << 16
"""Bytes of a file that tell its compression."""

READ_BYTES = 1 << 20
"""Bytes that are asked of the file system at once."""

_LARGE_BYTES = 8 << 20
"""Files from this size on are hashed in a thread, whose start takes as long as hashing a piece."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a gzip stream stops before its end."""

    member: int
    """Byte of the file where the damaged member begins."""
    begin: int
    """Byte of the stream where it begins."""
    stream: int
    """Byte of the stream up to which it could be decoded."""
    detail: str
    lossless: bool
    """Nothing of the stream is missing: only a header or a trailer is damaged."""
    inside: bool
    """It lies in a member, so that something of the stream is missing for certain."""
    cut: bool
    """The file ends too early: nothing follows."""
    padding: bool
    """It is nothing but zeros behind the last member."""
    misread: bool
    """It is sound: TensorFlow alone takes the member's end for that of the file."""
    tail: int | None
    """Bytes of the stream that zlib, which repairs nothing, would make of the rest before the file
    ends; None where it would report an error."""


class ByteStream(Protocol):
    """The decompressed stream of a shard, read forward through a window."""

    interruption: Damage | None
    """Why the stream stops before its end. Always None for a plain file."""

    guessed: bool
    """Whether what follows the last interruption may be gzip that lies in a payload."""

    @property
    def compression(self) -> Compression: ...

    @property
    def end(self) -> int | None:
        """Bytes of the stream, where that is known before it was read."""

    @property
    def position(self) -> int:
        """Byte of the stream that reading would go on from; its end once it was read."""

    def bound(self) -> int:
        """A byte of the stream that it cannot reach beyond: what lengths are bounded by."""

    def ends_at(self, at: int) -> bool:
        """Whether the stream ends, undamaged, exactly at `at`."""

    def window(self, start: int, length: int) -> bytes:
        """The stream from `start` on: `length` bytes, fewer only where it ends or is interrupted.

        Nothing before the greatest `start` so far can be asked for again.

        Raises:
            StorageError: the file system failed to deliver.
        """

    def fork(self) -> ByteStream:
        """A second view that reads ahead from the same place without moving this one."""

    def inspect(self, start: int, stop: int) -> Damage | None:
        """Whether these bytes of the stream come from a damaged gzip member."""

    def resume(self, least: int = 0) -> bool:
        """Go on behind an interruption; False where nothing is left. `position` may jump.

        Args:
            least: byte of the stream up to which its records were sound, damage or not.
        """

    def hexdigest(self) -> str | None:
        """blake3 of the whole stream; None if not asked for, or if some of it is missing."""


class PlainStream:
    """A file without compression: the stream is the file, and any place can be read."""

    compression: Compression = "none"
    interruption: Damage | None = None
    guessed = False

    def __init__(self, file: HashedFile) -> None:
        self._file = file

    @property
    def end(self) -> int:
        return self._file.end

    @property
    def position(self) -> int:
        return self._file.end

    def bound(self) -> int:
        return self._file.end

    def ends_at(self, at: int) -> bool:
        return at == self._file.end

    def window(self, start: int, length: int) -> bytes:
        return self._file.read(start, length)

    def fork(self) -> PlainStream:
        return self

    def inspect(self, start: int, stop: int) -> Damage | None:  # noqa: ARG002 - no gzip, no damage
        return None

    def resume(self, least: int = 0) -> bool:  # noqa: ARG002 - there are no interruptions
        return True

    def hexdigest(self) -> str | None:
        return self._file.hexdigest()


def sniff(head: bytes, declared: Compression | None = None) -> Compression:
    """The compression of a file, from its first bytes.

    In this order: a record's header whose checksum holds is plain; anything that inflates to one
    is gzip, even if its own header is damaged, and so is gzip of nothing; gzip's magic is gzip,
    unless plain was declared.

    Args:
        head: the first 64 KiB, or all there is.
        declared: decides where the bytes do not.
    """
    if header_length(head) is not None:
        return "none"
    whole = head[:3] == MAGIC
    inflater = zlib.decompressobj(GZIP_BITS if whole else WINDOW_BITS)
    try:
        begin = inflater.decompress(head if whole else head[len(MEMBER_HEADER) :], HEADER_BYTES)
        if header_length(begin) is not None or (whole and inflater.eof and not begin):
            return "gzip"
    except zlib.error:
        pass
    if declared == "gzip" and head:
        return "gzip" if head[:3] == MAGIC[: len(head)] else "none"
    return "gzip" if head[:3] == MAGIC and declared is None else "none"


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

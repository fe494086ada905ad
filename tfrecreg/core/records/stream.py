"""Reads a shard as one stream of bytes, decompressed if it is gzip, and hashes it in the same pass.

Compression is detected from the bytes, never from the name. A plain file whose first length happens
to look like gzip is still detected as plain, because the first test looks for a record's header in
the first 12 bytes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tfrecreg.core.records.framing import HEADER_BYTES, header_length
from tfrecreg.core.records.gzip_writer import (
    GZIP_BITS,
    MAGIC,
    MEMBER_HEADER,
    WINDOW_BITS,
    Compression,
)
from tfrecreg.core.records.hashing import FileHasher, threads_pay
from tfrecreg.core.storage.interface import Reader

SNIFF_BYTES = 1 << 16
"""Number of bytes that are read to detect the compression of a file."""
READ_BYTES = 1 << 20
_LARGE_BYTES = 8 << 20
"""Minimum size of files that are hashed in a thread, because starting a thread takes time."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Why a gzip stream stops before its end."""

    member: int
    """Byte of the file where the damaged member begins."""
    begin: int
    """Byte of the stream where the damaged member begins."""
    stream: int
    """Byte of the stream up to which the member could be decoded."""
    detail: str
    lossless: bool = False
    """Whether the stream is complete. For example, only a header or a trailer is damaged."""
    inside: bool = True
    """Whether the damage is in the member's data, so that bytes of the stream are certainly
    missing.
    """
    cut: bool = False
    """Whether the file ends inside the member, so that no data follow."""
    misread: bool = False
    """True if TensorFlow treats the end of this sound member as the end of the file."""
    tail: int | None = None
    """Number of bytes that zlib, which does not skip damage, would decompress from the rest of the
    file; None if zlib would report an error.
    """


class ByteStream:
    """The decompressed stream of a shard, read forward through a window.

    This class reads a file without compression, in which any offset can be read;
    :class:`~tfrecreg.core.records.gzip_reader.GzipStream` reads gzip.
    """

    compression: Compression = "none"
    interruption: Damage | None = None
    """Why the stream stops before its end; None if it does not stop, as in a plain file."""
    guessed = False
    """True if reading continued after the last interruption, but possibly in gzip inside a payload.
    """

    def __init__(self, file: HashedFile) -> None:
        self._file = file

    @property
    def position(self) -> int:
        """Byte of the stream at which reading would continue. It is the stream's end if all bytes
        were read.
        """
        return self._file.end

    @property
    def end(self) -> int | None:
        """Size of the stream in bytes; None while it is unknown."""
        return self._file.end

    def bound(self) -> int:
        """An upper bound on the size of the stream, and so on the length of a record."""
        return self._file.end

    def ends_at(self, at: int) -> bool:
        """Whether the undamaged stream ends exactly at byte `at`."""
        return at == self._file.end

    def window(self, start: int, length: int) -> bytes:
        """Return `length` bytes of the stream, beginning at `start`. The result is shorter only if
        the stream ends or is interrupted.

        The window only moves forward: `start` must not be smaller than in an earlier call.
        """
        return self._file.read(start, length)

    def fork(self) -> ByteStream:
        """A second view at the same place, which reads ahead and does not move this view."""
        return self

    def inspect(self, start: int, stop: int) -> Damage | None:
        """The damage of the first unsound gzip member that has any of these bytes; None if all are
        sound.
        """
        del start, stop
        return None

    def resume(self, least: int = 0) -> bool:
        """Continue after an interruption, and return whether bytes are left. May advance
        `position`.
        """
        del least
        return True

    def hexdigest(self) -> str | None:
        """blake3 of the whole stream; None if not requested, or if part of it is missing."""
        return self._file.hexdigest()

    def members(self) -> Sequence[tuple[int, int]]:
        """The start of each member that was read so far, as offsets in the file and in the stream.
        Empty for a plain file, after damage, or if the members were not requested.
        """
        return ()


def sniff_compression(head: bytes, declared: Compression | None = None) -> Compression:
    """The compression of a file, from its first bytes.

    The first matching rule gives the result. A file is plain if it begins with a record's header
    whose checksum is correct. It is gzip if its data inflate to such a header, even if the gzip
    header is damaged. It is gzip if it inflates to an empty stream. It is gzip if it begins with
    gzip's magic, unless `declared` is plain.
    """
    if header_length(head) is not None:
        return "none"
    begin, ended = _inflated_start(head)
    if header_length(begin) is not None or (head[:3] == MAGIC and ended and not begin):
        return "gzip"
    if declared == "gzip" and head:
        return "gzip" if head[:3] == MAGIC[: len(head)] else "none"
    return "gzip" if head[:3] == MAGIC and declared is None else "none"


def _inflated_start(head: bytes) -> tuple[bytes, bool]:
    """The first decompressed bytes of a file, and whether the first member has no other bytes.
    Empty if the data do not inflate. A damaged gzip header is skipped.
    """
    whole = head[:3] == MAGIC
    inflater = zlib.decompressobj(GZIP_BITS if whole else WINDOW_BITS)
    try:
        begin = inflater.decompress(head if whole else head[len(MEMBER_HEADER) :], HEADER_BYTES)
    except zlib.error:
        return b"", False
    return begin, inflater.eof


def begins_with_record(head: bytes) -> bool:
    """Whether a file with these first bytes begins with a record's header, plain or in gzip."""
    return header_length(_inflated_start(head)[0] if head[:3] == MAGIC else head) is not None


class HashedFile:
    """A reader that never reads beyond the end, and hashes each byte when it is first read.

    Bytes that continue the hashed part are hashed immediately, or in a thread if the file is large.
    Bytes that were skipped at first are read and hashed at the end.
    """

    def __init__(self, reader: Reader, *, digest: bool, sha256: bool = False) -> None:
        self.end = reader.size
        """Size of the file in bytes. If the file is truncated during reading, this size is
        corrected.
        """
        self._reader = reader
        is_large = reader.size >= _LARGE_BYTES and threads_pay()
        self._hasher = FileHasher(sha256=sha256, ahead=2 * is_large) if digest else None

    def read(self, start: int, length: int) -> bytes:
        """Up to `length` bytes from `start`; fewer only where the file ends."""
        length = min(length, self.end - start)
        if length <= 0:
            return b""
        data = self._reader.read_at(start, length)
        if len(data) < length:
            self.end = start + len(data)
        hasher = self._hasher
        if hasher is not None and start <= hasher.bytes < start + len(data):
            hasher.update(memoryview(data)[hasher.bytes - start :])
        return data

    def hexdigest(self) -> str | None:
        """blake3 of the whole file; None if not requested."""
        if self._hasher is None:
            return None
        while self.read(self._hasher.bytes, READ_BYTES):
            pass
        return self._hasher.digest().blake3

    def sha256(self) -> str | None:
        """Hex SHA-256 of the whole file; None if not requested. Call :meth:`hexdigest` first."""
        return (self._hasher.digest().sha256 or None) if self._hasher is not None else None


def only_zeros(read: Callable[[int, int], bytes], at: int) -> bool:
    """Whether byte `at` of a file and all bytes after it are zeros."""
    while data := read(at, READ_BYTES):
        if data.count(0) != len(data):
            return False
        at += len(data)
    return True

"""A shard as one stream of bytes, whatever its compression, read once and hashed on the way.

Compression is told by the bytes, never by the name. A plain file whose first length happens to
look like gzip is still plain: the first 12 bytes are tried as a record's header first.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol

from tfrecreg.records.framing import HEADER_BYTES, header_length
from tfrecreg.records.gzip_writer import GZIP_BITS, MAGIC, MEMBER_HEADER, WINDOW_BITS, Compression
from tfrecreg.records.hashing import HashedFile

if TYPE_CHECKING:
    from tfrecreg.records.gzip_reader import Damage

SNIFF_BYTES = 1 << 16
"""Bytes of a file that tell its compression."""


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

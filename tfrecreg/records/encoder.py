"""Payloads to the bytes of a shard: framed, compressed if asked, with the rows of their index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tfrecreg.errors import StorageError, UsageError
from tfrecreg.index import IndexBuilder
from tfrecreg.records.framing import MAX_LENGTH, OVERHEAD, frame
from tfrecreg.records.gzip import Compression, GzipEncoder
from tfrecreg.text import safe

__all__ = ["RecordEncoder", "Segment"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Some records of a shard, encoded into a file of their own. Picklable."""

    path: str
    """Of that file, in its storage."""
    bytes: int
    """Of that file."""
    payload_bytes: int
    index: IndexBuilder
    members: list[tuple[int, int]]
    """Of gzip: where each member begins in the file and in the segment's stream."""

    @property
    def stream_bytes(self) -> int:
        """Of the segment, decompressed."""
        return self.payload_bytes + OVERHEAD * len(self.index)


class RecordEncoder:
    """Encodes records one after the other, and counts them. Writes and hashes nothing.

    Args:
        compression: ``none`` or ``gzip``.
        apart: it is for a :class:`Segment`.
    """

    def __init__(self, compression: Compression, *, apart: bool = False) -> None:
        self.index = IndexBuilder()
        """A row for each record so far."""
        self.payload_bytes = 0
        """Of all payloads, framing and compression taken off."""
        self._gzip = GzipEncoder(apart=apart) if compression == "gzip" else None

    @property
    def members(self) -> list[tuple[int, int]]:
        """Where each gzip member begins: byte of the file, byte of the stream. Else empty."""
        return self._gzip.members if self._gzip is not None else []

    def add(self, payload: bytes, digest: bytes, key: str) -> tuple[tuple[bytes, ...], bytes]:
        """The next record.

        Args:
            payload: its bytes.
            digest: its record digest, see :func:`tfrecreg.digests.record_digest`.
            key: of its item.

        Returns:
            What belongs into the file, and what it is in the decompressed stream: empty where the
            file is that stream.

        Raises:
            UsageError: the payload is larger than a record may be, or the key is no text.
        """
        if len(payload) > MAX_LENGTH:
            raise UsageError(
                f"the record of `{safe(key)}` has {len(payload)} bytes, at most {MAX_LENGTH} fit",
                hint="let the source split it, or leave the item out",
            )
        self.index.add(digest, len(payload), key)
        self.payload_bytes += len(payload)
        header, footer = frame(payload)
        if self._gzip is None:
            return (header, payload, footer), b""
        record = b"".join((header, payload, footer))
        return (self._gzip.write(record),), record

    def fits(self, segment: Segment) -> bool:
        """Whether the segment's file can come next as it is; the member before it has ended.

        It cannot, once in some ten thousands, where one of its members would end badly in the
        shard (:func:`tfrecreg.records.gzip.ends_badly`).
        """
        return self._gzip is None or self._gzip.fits(segment.members, segment.bytes)

    def append(self, segment: Segment) -> None:
        """The segment's file comes next; the member before it has ended."""
        self._note(segment)
        if self._gzip is not None:
            self._gzip.skip(segment.bytes, segment.stream_bytes, segment.members)

    def encode(self, segment: Segment, stream: Iterable[bytes]) -> Iterator[bytes]:
        """Its records come next, compressed again; what belongs into the file.

        Args:
            segment: in gzip.
            stream: of the segment, decompressed, in pieces.
        """
        if self._gzip is None:
            raise ValueError("nothing is compressed here")
        pieces = iter(stream)
        buffer = bytearray()
        at = 0
        for length in segment.index.lengths:
            end = at + length + OVERHEAD
            if len(buffer) < end:
                del buffer[:at]
                at, end = 0, end - at
            while len(buffer) < end:
                piece = next(pieces, b"")
                if not piece:
                    raise StorageError(
                        f"`{safe(segment.path)}` is shorter than it was written",
                        hint="something else changes the stage of this build: build again",
                    )
                buffer += piece
            yield self._gzip.write(bytes(buffer[at:end]))
            at = end
        self._note(segment)
        yield self._gzip.end_member()

    def _note(self, segment: Segment) -> None:
        self.index.extend(segment.index)
        self.payload_bytes += segment.payload_bytes

    def end_member(self) -> bytes:
        """End the gzip member that is begun, if there is one; what that puts into the file."""
        return self._gzip.end_member() if self._gzip is not None else b""

    def close(self) -> bytes:
        """What is left for the file."""
        return self._gzip.close() if self._gzip is not None else b""

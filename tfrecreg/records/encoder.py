"""Payloads to the bytes of a shard: framed, compressed if asked, with the rows of their index."""

from __future__ import annotations

from dataclasses import dataclass

from tfrecreg.errors import UsageError
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
    """

    def __init__(self, compression: Compression) -> None:
        self.index = IndexBuilder()
        """A row for each record so far."""
        self.payload_bytes = 0
        """Of all payloads, framing and compression taken off."""
        self._gzip = GzipEncoder() if compression == "gzip" else None

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

    def append(self, segment: Segment) -> bytes:
        """Records that were encoded elsewhere come next; what belongs in front of them."""
        before = self.end_member()
        self.index.extend(segment.index)
        self.payload_bytes += segment.payload_bytes
        if self._gzip is not None:
            self._gzip.skip(segment.bytes, segment.stream_bytes, segment.members)
        return before

    def end_member(self) -> bytes:
        """End the gzip member that is begun, if there is one; what that puts into the file."""
        return self._gzip.end_member() if self._gzip is not None else b""

    def close(self) -> bytes:
        """What is left for the file."""
        return self._gzip.close() if self._gzip is not None else b""

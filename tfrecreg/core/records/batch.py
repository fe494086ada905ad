"""The results of scanning a shard: batches of whole records, faults, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example
from tfrecreg.core.values.findings import TensorflowOutcome


@dataclass(frozen=True, slots=True)
class Fault:
    """Damage that the scanner found. Its code is a ``CRC`` code."""

    code: str
    offset: int
    """Byte of the decompressed stream where the damaged record starts (for gzip damage: where
    the damage takes effect; for CRC004 where the trailing bytes start)."""
    record: int | None
    """Number of the damaged record in its shard, from 0; None if unknown."""
    length: int | None
    """Bytes of the damaged record's payload, or of the damaged range; None if unknown."""
    detail: str
    """Expected against found."""
    tensorflow: TensorflowOutcome = TensorflowOutcome.STOPS
    """What TensorFlow does at this fault: it stops at nearly all damage."""
    exact: bool = True
    """Whether at most one record is damaged here. If not, more may be, and the next record was
    found by a search.
    """


@dataclass(frozen=True)
class RecordBatch:
    """Consecutive records of one shard whose checksums hold. Valid during one callback.

    A visitor that keeps bytes copies them. Derived values (`examples`) are computed on first use
    and shared by all visitors of the batch.

    The three columns are mostly arrays of signed 64-bit numbers (:class:`array.array`), which
    `numpy.asarray` converts without copying.
    """

    first: int
    """Number in its shard of the first record of the batch, from 0."""
    offsets: Sequence[int]
    """Offset of each record (of its header) in the decompressed stream."""
    lengths: Sequence[int]
    """Bytes of each payload. A record in the stream takes 16 more."""
    starts: Sequence[int]
    """Offset of each payload in `memory`."""
    memory: bytes
    """A section of the stream that holds the payloads, and behind each its verified checksum."""
    whole: bool = True
    """False for the batch of one record that is too large for memory: its checksums were verified
    while it was read, but its payload is not kept and `memory` is empty.
    """
    searched: bool = False
    """Whether the first record was found by a search after damage: it, and those that follow, may
    lie in the payload of the damaged record.
    """

    def __len__(self) -> int:
        return len(self.lengths)

    def payload(self, position: int) -> bytes:
        """The payload of the record at `position` in this batch."""
        start = self.starts[position]
        return self.memory[start : start + self.lengths[position]]

    def payloads(self) -> Iterator[bytes]:
        """The payloads, in order."""
        memory = self.memory
        for start, length in zip(self.starts, self.lengths, strict=True):
            yield memory[start : start + length]

    @cached_property
    def examples(self) -> Sequence[Example | None]:
        """Each payload as a `tf.train.Example`; None if it is not one, or is not in memory."""
        if not self.whole:
            return [None] * len(self)
        if self._decoded:
            return [self.example(position) for position in range(len(self))]
        return [decode_or_none(payload) for payload in self.payloads()]

    def example(self, position: int) -> Example | None:
        """One of :attr:`examples`, without decoding the others.

        Args:
            position: of the record in the batch, whose payloads are in memory.
        """
        if "examples" in self.__dict__:
            return self.examples[position]
        decoded = self._decoded
        if position not in decoded:
            decoded[position] = decode_or_none(self.payload(position))
        return decoded[position]

    @cached_property
    def _decoded(self) -> dict[int, Example | None]:
        """The examples that :meth:`example` decoded, by position."""
        return {}

    @cached_property
    def kinds(self) -> Sequence[PayloadKind | None]:
        """The kind of each payload; None if it is not in memory."""
        if not self.whole:
            return [None] * len(self)
        rows = zip(self.starts, self.lengths, self.examples, strict=True)
        return [kind_of(self.memory, *row) for row in rows]

    @cached_property
    def shared(self) -> dict[object, Any]:
        """Values that one visitor computed from the batch and others reuse, by keys that they agree
        on.
        """
        return {}


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """Totals of a shard that was read to its end."""

    compression: str
    """``none`` or ``gzip``, as detected from the bytes."""
    file_bytes: int
    """Size of the file in bytes."""
    stream_bytes: int
    """Size of the decompressed stream in bytes; equal to `file_bytes` without compression."""
    records: int
    """Number of records whose checksums hold."""
    payload_bytes: int
    """Total size of their payloads in bytes."""
    blake3: str | None
    """Hex digest of the file; None if it was not requested."""
    stream_blake3: str | None
    """Hex digest of the decompressed stream; None if not requested, or if part of the stream is
    missing.
    """
    sha256: str | None = None
    """Hex SHA-256 of the file; None if it was not requested."""
    members: tuple[tuple[int, int], ...] = ()
    """Where the gzip members begin: byte of the file, byte of the decompressed stream. Empty for a
    plain file, for a damaged one, and if they were not requested.
    """

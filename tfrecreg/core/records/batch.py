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
    """Offset in the decompressed stream at which the damaged record starts. For damage to gzip, it
    is the offset at which the damage takes effect. For CRC004, it is where the trailing bytes
    start.
    """
    record: int | None
    """Number of the damaged record in its shard, from 0; None if unknown."""
    length: int | None
    """Size in bytes of the damaged record's payload, or of the damaged range; None if unknown."""
    detail: str
    """The expected and the found value."""
    tensorflow: TensorflowOutcome = TensorflowOutcome.STOPS
    """What TensorFlow does at this fault. It stops at nearly all damage."""
    exact: bool = True
    """Whether at most one record is damaged. If False, a search found the next sound record, and
    more records may be lost.
    """


@dataclass(frozen=True)
class RecordBatch:
    """Consecutive sound records of one shard. A visitor may use the batch only until the visitor's
    method returns.

    A visitor must copy the bytes that it keeps. Derived values such as `examples` are computed on
    first use and shared by all visitors of the batch.

    `offsets`, `lengths` and `starts` are usually arrays of signed 64-bit numbers
    (:class:`array.array`). `numpy.asarray` converts such arrays without copying.
    """

    first: int
    """Number of the batch's first record in the shard, from 0."""
    offsets: Sequence[int]
    """Offset of each record's header in the decompressed stream."""
    lengths: Sequence[int]
    """Size of each payload in bytes. Its record takes 16 more bytes in the stream."""
    starts: Sequence[int]
    """Offset of each payload in `memory`."""
    memory: bytes
    """A section of the stream with the payloads, each followed by its verified checksum."""
    whole: bool = True
    """False for a batch of one record that is too large for memory. Its checksums were verified
    while it was read, but its payload was not kept, and `memory` is empty.
    """
    searched: bool = False
    """Whether the first record was found by a search after damage. In that case, the first record
    may lie inside the damaged record.
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
        """Each payload as a `tf.train.Example`; None if it is of another kind or not in memory."""
        if not self.whole:
            return [None] * len(self)
        if self._decoded:
            return [self.example(position) for position in range(len(self))]
        return [decode_or_none(payload) for payload in self.payloads()]

    def example(self, position: int) -> Example | None:
        """One element of :attr:`examples`. The other payloads are not decoded.

        Args:
            position: position of the record in the batch. The batch's payloads must be in memory.
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
        """Values that one visitor computes and other visitors reuse. The visitors agree on the
        keys.
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
    """Number of sound records, that is, records whose two checksums are correct."""
    payload_bytes: int
    """Total size in bytes of the payloads of all sound records."""
    blake3: str | None
    """Hex blake3 of the file; None if it was not requested."""
    stream_blake3: str | None
    """Hex blake3 of the stream; None if not requested, or if part of the stream is missing."""
    sha256: str | None = None
    """Hex SHA-256 of the file; None if it was not requested."""
    members: tuple[tuple[int, int], ...] = ()
    """Where each gzip member begins: its offsets in the file and in the decompressed stream. Empty
    if the file is plain or damaged, or if the members were not requested.
    """

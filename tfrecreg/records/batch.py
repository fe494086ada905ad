"""The results of scanning a shard: batches of whole records, faults, and totals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfrecreg.example import Example, decode_or_none
from tfrecreg.example.kinds import PayloadKind, kind_of
from tfrecreg.findings import TensorflowOutcome


@dataclass(frozen=True, slots=True)
class Fault:
    """Damage that the scanner saw. Its code is a ``CRC`` code of :mod:`tfrecreg.codes`."""

    code: str
    offset: int
    """Byte of the decompressed stream where the damaged record starts (for gzip damage: where
    the damage takes effect; for CRC004 where the trailing bytes start)."""
    record: int | None
    """Number of the damaged record in its shard, from 0, where that is known."""
    length: int | None
    """Bytes of the damaged record's payload, or of the damaged stretch, where that is known."""
    detail: str
    """Expected against found."""
    tensorflow: TensorflowOutcome = TensorflowOutcome.STOPS
    """What TensorFlow does when it gets here: at nearly all damage it stops."""
    exact: bool = True
    """Exactly one record is damaged here, or none. If not, it may be more, and what follows was
    searched for."""


@dataclass(frozen=True)
class RecordBatch:
    """Some consecutive records of one shard whose checksums hold. Lives for one callback.

    A visitor that wants to keep bytes copies them. What is derived (`examples`) is made when it
    is first asked for and shared by all visitors of the batch.

    The three columns are mostly arrays of signed 64-bit numbers (:class:`array.array`), of which
    `numpy.asarray` makes an array of its own kind without copying.
    """

    first: int
    """Number in its shard of the first record of the batch, from 0."""
    offsets: Sequence[int]
    """Where each record (its header) starts in the decompressed stream."""
    lengths: Sequence[int]
    """Bytes of each payload. A record in the stream takes 16 more."""
    starts: Sequence[int]
    """Where each payload starts in `memory`."""
    memory: bytes
    """A stretch of the stream that holds the payloads."""
    whole: bool = True
    """False for the batch of one record that is too large to be held: its checksums were
    verified as it streamed by, its payload is not here and `memory` is empty."""
    searched: bool = False
    """The first record was searched for after damage: it may be one out of the payload of the
    damaged record, and so may those that follow."""

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
        """Each payload as a `tf.train.Example`; None if it is not one, or is not held."""
        if not self.whole:
            return [None] * len(self)
        if self._decoded:
            return [self.example(position) for position in range(len(self))]
        return [decode_or_none(payload) for payload in self.payloads()]

    def example(self, position: int) -> Example | None:
        """One of :attr:`examples`; the others need not be decoded for it.

        Args:
            position: of the record in a batch that is held.
        """
        if "examples" in self.__dict__:
            return self.examples[position]
        decoded = self._decoded
        if position not in decoded:
            decoded[position] = decode_or_none(self.payload(position))
        return decoded[position]

    @cached_property
    def _decoded(self) -> dict[int, Example | None]:
        """Those that :meth:`example` was asked for, by position."""
        return {}

    @cached_property
    def kinds(self) -> Sequence[PayloadKind | None]:
        """What each payload is; None where it is not held."""
        if not self.whole:
            return [None] * len(self)
        rows = zip(self.starts, self.lengths, self.examples, strict=True)
        return [kind_of(self.memory, *row) for row in rows]

    @cached_property
    def shared(self) -> dict[object, Any]:
        """What one visitor made of the batch and another may take, by keys that they agree on."""
        return {}


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """Totals of a shard, after all of it was read."""

    compression: str
    """``none`` or ``gzip``, as the bytes say."""
    file_bytes: int
    """Bytes of the file, compressed or not."""
    stream_bytes: int
    """Bytes of the decompressed stream; equal to `file_bytes` without compression."""
    records: int
    """Records whose checksums hold."""
    payload_bytes: int
    """Bytes of their payloads."""
    blake3: str | None
    """Hex digest of the file; None if it was not requested."""
    stream_blake3: str | None
    """Hex digest of the decompressed stream; None if not requested, or if some is missing."""

"""The results of scanning a shard: batches of whole records, faults, and totals.

The digests of the records of a batch.

Most payloads are canonical: their digest is that of their bytes. The compiled scanner
(`tfrecreg/core/records/walk.c`) tells which are, and computes the digests of those up to 1 KiB,
several at once; without it, each is decoded and hashed by itself.

Payloads of one layout, read at once by the compiled scanner (`tfrecreg/core/records/walk.c`).

It returns what :func:`tfrecreg.core.example.columns.read_columns` does, which reads them with NumPy
where there is no compiled scanner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tfrecreg.core.example import columns as with_numpy
from tfrecreg.core.example.columns import Column, Group, Layout, entry_head
from tfrecreg.core.example.decode import canonical, decode_fast, decode_or_none
from tfrecreg.core.example.kinds import PayloadKind, kind_of
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.records.scanner import load_scanner, scanner_kind
from tfrecreg.core.values.findings import TensorflowOutcome


@dataclass(frozen=True, slots=True)
class Fault:
    """Damage that the scanner found. Its code is a ``CRC`` code of
    :mod:`tfrecreg.core.values.codes`."""

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


_DIGESTED = 2
"""The flag of a payload whose digest is computed."""


def batch_digests(batch: RecordBatch) -> bytes:
    """The record digests of a batch whose payloads are in memory, 16 bytes each."""
    found: bytes | None = batch.shared.get(batch_digests)
    if found is None:
        found = batch.shared[batch_digests] = _digests(batch)
    return found


def _digests(batch: RecordBatch) -> bytes:
    flags = np.frombuffer(canonical_ones(batch), np.uint8).copy()
    rows = np.zeros((len(batch), DIGEST_BYTES), np.uint8)
    if scanner_kind() == "native":
        starts, lengths = _places(batch)
        columns = (starts.ctypes.data, lengths.ctypes.data, len(batch))
        load_scanner().digests(1, batch.memory, *columns, flags.ctypes.data, rows.ctypes.data)
    for place in np.flatnonzero(flags != _DIGESTED).tolist():
        payload = batch.payload(place)
        digest = record_digest(payload if flags[place] else canonical(payload))
        rows[place] = np.frombuffer(digest, np.uint8)
    return rows.tobytes()


def canonical_ones(batch: RecordBatch) -> bytes:
    """A byte for each payload of a batch: 1 where it is an Example in canonical form, else 0."""
    if scanner_kind() == "python":
        return bytes(found is not None and found[1] for found in map(decode_fast, batch.payloads()))
    flags = np.empty(len(batch), np.uint8)
    starts, lengths = _places(batch)
    load_scanner().canonical(
        batch.memory, starts.ctypes.data, lengths.ctypes.data, len(batch), flags.ctypes.data
    )
    return flags.tobytes()


def _places(batch: RecordBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    starts, lengths = (np.asarray(each, np.int64) for each in (batch.starts, batch.lengths))
    return np.ascontiguousarray(starts), np.ascontiguousarray(lengths)


def digests_of(payloads: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    """The digests of payloads, shape (m, 16)."""
    data = b"".join(record_digest(canonical(each)) for each in payloads)
    return np.frombuffer(data, np.uint8).reshape(-1, DIGEST_BYTES)


_Ints = npt.NDArray[np.int64]


def layout_columns(
    layout: Layout, memory: bytes, starts: Sequence[int] | _Ints, lengths: Sequence[int] | _Ints
) -> tuple[_Ints, list[Column]]:
    """As :func:`tfrecreg.core.example.columns.read_columns`."""
    if scanner_kind() == "python":
        return with_numpy.read_columns(layout, memory, starts, lengths)
    places, sizes = (np.ascontiguousarray(each, np.int64) for each in (starts, lengths))
    heads, slots = _compiled(layout)
    rows = np.empty(len(places), np.int64)
    values = np.empty((len(layout), 3, len(places)), np.int64)
    found = load_scanner().columns(
        memory,
        *(places.ctypes.data, sizes.ctypes.data, len(places)),
        *(heads, slots.ctypes.data, len(layout)),
        *(rows.ctypes.data, values.ctypes.data),
    )
    if not found:
        return rows[:0], []
    return rows[:found], [Column(*each[:, :found]) for each in values]


def divide_batch(batch: RecordBatch) -> tuple[list[Group], Sequence[int]]:
    """As :func:`tfrecreg.core.example.columns.divide`, of a batch whose payloads are in memory."""
    return with_numpy.divide(
        batch.memory, batch.starts, batch.lengths, batch.example, read=layout_columns
    )


@lru_cache(maxsize=64)
def _compiled(layout: Layout) -> tuple[bytes, _Ints]:
    """The bytes of all keys with their tags, and for each feature a ``struct slot``."""
    heads, slots = b"", []
    for slot in layout:
        heads += entry_head(slot)
        slots.append((len(heads), slot.kind << 3 | 2, slot.values))
    return heads, np.array(slots, np.int64)

"""Collects the digests of records. A light import, because `tfrecreg digest` needs little else."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.check.infer import LargeRecords
from tfrecreg.core.check.scan.interface import Shard, Visitor
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.batch_columns import batch_digests
from tfrecreg.core.records.hashing import record_digest


class DigestPart(NamedTuple):
    """The records of one shard."""

    digests: bytes
    """The digests, concatenated in the order of the records."""
    numbers: npt.NDArray[np.int64]
    """The numbers of these records in the shard."""
    faults: int
    """Number of damaged places."""


class DigestVisitor(Visitor):
    """Keeps the digest (16 bytes) and the number (8 bytes) of each record of a shard."""

    def __init__(self, shard: Shard) -> None:
        self._digests = bytearray()
        self._numbers: list[npt.NDArray[np.int64]] = []
        self._large = LargeRecords(shard.storage, shard.path, shard.name)
        self._faults = 0

    def batch(self, batch: RecordBatch) -> None:
        if batch.whole:
            self._digests += batch_digests(batch)
        else:
            for position, length in enumerate(batch.lengths):
                record = batch.first + position
                payload = self._large.payload(record, batch.offsets[position], length)
                self._digests += record_digest(canonical(payload))
        self._numbers.append(np.arange(batch.first, batch.first + len(batch)))

    def fault(self, fault: Fault) -> None:
        del fault
        self._faults += 1

    def close(self, end: StreamEnd) -> DigestPart:
        del end
        self._large.close()
        numbers = np.concatenate([np.empty(0, np.int64), *self._numbers])
        return DigestPart(bytes(self._digests), numbers, self._faults)

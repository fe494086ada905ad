"""The digests of the records of a batch.

Most payloads are canonical: their digest is that of their bytes. The compiled scanner
(`tfrecreg/records/walk.c`) tells which are; without it, each is decoded.
"""

from __future__ import annotations

import numpy as np

from tfrecreg.digests import record_digest
from tfrecreg.example.decode import canonical, decode_fast
from tfrecreg.records.batch import RecordBatch
from tfrecreg.records.scanner import load_scanner, scanner_kind


def batch_digests(batch: RecordBatch) -> list[bytes]:
    """The record digest of each payload of a batch, whose payloads are in memory.

    Raises:
        UsageError, FailureError: as :func:`tfrecreg.records.scanner.scanner`.
    """
    found: list[bytes] | None = batch.shared.get(batch_digests)
    if found is None:
        found = batch.shared[batch_digests] = [
            record_digest(payload if is_canonical else canonical(payload))
            for payload, is_canonical in zip(batch.payloads(), canonical_ones(batch), strict=True)
        ]
    return found


def canonical_ones(batch: RecordBatch) -> bytes:
    """A byte for each payload of a batch: 1 where it is an Example in canonical form, else 0."""
    if scanner_kind() == "python":
        return bytes(found is not None and found[1] for found in map(decode_fast, batch.payloads()))
    flags = np.empty(len(batch), np.uint8)
    places = (np.asarray(each, np.int64) for each in (batch.starts, batch.lengths))
    starts, lengths = map(np.ascontiguousarray, places)
    load_scanner().canonical(
        batch.memory, starts.ctypes.data, lengths.ctypes.data, len(batch), flags.ctypes.data
    )
    return flags.tobytes()

"""The digests of the records of a batch.

Most payloads are canonical: their digest is that of their bytes. The compiled scanner
(`tfrecreg/core/records/walk.c`) tells which are, and computes the digests of those up to 1 KiB, several
at once; without it, each is decoded and hashed by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tfrecreg.core.example.decode import canonical, decode_fast
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.digests import DIGEST_BYTES, record_digest
from tfrecreg.core.records.scanner import load_scanner, scanner_kind

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

"""Computes the digests of all records of a batch at once, and reads payloads of equal layout into
columns.

The digest of a canonical payload is the digest of its bytes, and most payloads are canonical. The
compiled scanner (`walk.c`) finds canonical payloads, and hashes several payloads of up to 1 KiB at
once. Without the scanner, payloads are decoded and hashed one by one. The scanner also reads
payloads as columns, as :func:`tfrecreg.core.example.columns.read_columns` does with NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tfrecreg.core.example import columns as with_numpy
from tfrecreg.core.example.columns import Column, Layout, Slot, entry_head, layout_of
from tfrecreg.core.example.decode import canonical
from tfrecreg.core.example.model import Example
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.hashing import DIGEST_BYTES, record_digest
from tfrecreg.core.records.scanner import load_scanner, scanner_kind

_Ints = npt.NDArray[np.int64]

_TRIES = 6
"""Maximum number of layouts that are tried on a batch. Each is the layout of one of its records."""
_WORTH_IT = 32
"""Minimum number of records for which arrays are faster than decoding each record."""

_DIGESTED = 2
"""This flag says that the scanner computed the payload's digest."""


def batch_digests(batch: RecordBatch) -> bytes:
    """The 16-byte record digests of a batch whose payloads are in memory."""
    found: bytes | None = batch.shared.get(batch_digests)
    if found is not None:
        return found
    flags = np.zeros(len(batch), np.uint8)  # for each payload: 0, 1 if canonical, or _DIGESTED
    rows = np.zeros((len(batch), DIGEST_BYTES), np.uint8)
    if scanner_kind() == "native":
        starts, lengths = _arrays(batch.starts, batch.lengths)
        places = (batch.memory, starts.ctypes.data, lengths.ctypes.data, len(batch))
        load_scanner().canonical(*places, flags.ctypes.data)
        load_scanner().digests(1, *places, flags.ctypes.data, rows.ctypes.data)
    for place in np.flatnonzero(flags != _DIGESTED).tolist():
        payload = batch.payload(place)
        digest = record_digest(payload if flags[place] else canonical(payload))
        rows[place] = np.frombuffer(digest, np.uint8)
    found = batch.shared[batch_digests] = rows.tobytes()
    return found


def _arrays(starts: Sequence[int] | _Ints, lengths: Sequence[int] | _Ints) -> tuple[_Ints, _Ints]:
    return np.ascontiguousarray(starts, np.int64), np.ascontiguousarray(lengths, np.int64)


def digests_of(payloads: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    """The digests of payloads, shape (m, 16)."""
    data = b"".join(record_digest(canonical(each)) for each in payloads)
    return np.frombuffer(data, np.uint8).reshape(-1, DIGEST_BYTES)


def layout_columns(
    layout: Layout, memory: bytes, starts: Sequence[int] | _Ints, lengths: Sequence[int] | _Ints
) -> tuple[_Ints, list[Column]]:
    """Like :func:`tfrecreg.core.example.columns.read_columns`, with compiled code if possible."""
    if scanner_kind() == "python":
        return with_numpy.read_columns(layout, memory, starts, lengths)
    places, sizes = _arrays(starts, lengths)
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


Group = tuple[_Ints, Example, dict[str, tuple[Slot, Column]]]
"""Records of one layout: their ascending positions, one decoded record, and columns by feature."""


def divide_batch(batch: RecordBatch) -> tuple[list[Group], Sequence[int]]:
    """Group the payloads of a batch by layout; they must be in memory. Returns the groups, and the
    ascending positions of the rest.

    If groups would hold less than an eighth of the payloads, there are no groups: it is faster to
    decode everything than to read some payloads in groups and to decode the rest.
    """
    rows = np.arange(len(batch))
    starts, lengths = _arrays(batch.starts, batch.lengths)
    apart: list[int] = []
    groups: list[Group] = []
    for _ in range(_TRIES):
        if len(rows) < _WORTH_IT:
            break
        sample = batch.example(int(rows[0])) or {}
        layout = layout_of(sample)
        if layout is None:
            apart.append(int(rows[0]))
            rows = rows[1:]
            continue
        found, columns = layout_columns(layout, batch.memory, starts[rows], lengths[rows])
        if not found.size:
            break
        named = {slot.name: (slot, column) for slot, column in zip(layout, columns, strict=True)}
        groups.append((rows[found], sample, named))
        rows = np.delete(rows, found)
    if 8 * sum(len(positions) for positions, _, _ in groups) < len(batch):
        return [], range(len(batch))
    return groups, sorted((*apart, *rows.tolist()))


@lru_cache(maxsize=64)
def _compiled(layout: Layout) -> tuple[bytes, _Ints]:
    """A layout for the scanner: the bytes of all keys with their tags, and one ``struct slot`` per
    feature.
    """
    heads, slots = b"", []
    for slot in layout:
        heads += entry_head(slot)
        slots.append((len(heads), slot.kind << 3 | 2, slot.values))
    return heads, np.array(slots, np.int64)

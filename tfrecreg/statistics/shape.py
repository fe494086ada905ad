"""Whether payloads look like Examples, of a whole batch at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfrecreg.records.batch import RecordBatch

_LONGEST = 5
"""Bytes of the length of a field that a payload can hold."""


def are_single_fields(batch: RecordBatch) -> bool:
    """Whether every payload is a single field 1 that holds bytes, as Examples are, or is empty.

    A SequenceExample with feature lists, an event and most other messages are not: protobuf would
    parse many of them as Examples all the same.
    """
    memory = np.frombuffer(batch.memory, np.uint8)
    starts = np.asarray(batch.starts, np.int64)
    lengths = np.asarray(batch.lengths, np.int64)
    starts, lengths = starts[lengths > 0], lengths[lengths > 0]
    if not len(starts):
        return True
    size = np.zeros(len(starts), np.int64)
    header = np.ones(len(starts), np.int64)
    more: NDArray[np.bool_] = np.ones(len(starts), np.bool_)
    for place in range(_LONGEST):
        # Behind the end of the memory stands anything: the length tells that it is not counted.
        byte = memory[np.minimum(starts + 1 + place, len(memory) - 1)].astype(np.int64)
        size += np.where(more, (byte & 127) << (7 * place), 0)
        header += more
        more &= byte > 127
    single = (memory[starts] == 0x0A) & ~more & (header + size == lengths)
    return bool(single.all())


def has_empty_rows(batch: Any) -> bool:
    """Whether a row of a pyarrow `RecordBatch` has no feature: it may be no Example at all."""
    if not batch.num_rows:
        return False
    if any(column.null_count == 0 for column in batch.columns):
        return False
    empty: NDArray[np.bool_] = np.ones(batch.num_rows, np.bool_)
    for column in batch.columns:
        empty &= np.asarray(column.is_null())
    return bool(empty.any())

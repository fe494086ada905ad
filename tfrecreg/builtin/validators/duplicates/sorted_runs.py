"""Sorted runs on disk: 32 bytes for each distinct fingerprint of a part of one shard.

A visitor sorts its fingerprints when there are many, and writes them as a run. The parent merges
all runs, one range of fingerprints at a time. Fingerprints are digests, so ranges of equal width
hold about the same number of rows, and memory does not grow with the number of records. Equal
records of a run are one row, so memory does not grow if all records are equal, either.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.records.digests import DIGEST_BYTES
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.values.findings import MAX_LOCATIONS

RUN_ROW = np.dtype(
    [("high", "<u8"), ("low", "<u8"), ("offset", "<u8"), ("record", "<u4"), ("copies", "<u4")]
)
"""A fingerprint in two halves; the offset in the stream of the first record that has it, that
record's number relative to the run's first one, and the number of records of the run that have it.
"""

Rows = npt.NDArray[np.void]
"""Shape (rows,), of :data:`RUN_ROW`, sorted by the two halves."""

_MOST_ROWS = 1 << 19
"""Maximum number of rows of a run: 16 MiB."""
_MOST_RECORDS = 1 << 32
"""Largest distance between two record numbers of a run."""
_AT_ONCE = 1 << 18
"""Approximate number of rows in a range."""
_AHEAD = 1 << 20
"""Number of rows that are read ahead from all runs together, unless there are too many runs."""
_LEAST_AHEAD = 128
_END = 1 << 64


class Run(NamedTuple):
    """A sorted run."""

    first: int
    """The record number to which the numbers in the rows are relative."""
    rows: int
    path: str
    """Path in the storage of runs; empty if `data` has the rows."""
    data: bytes = b""


def at_hand(storage: Storage | None, run: Run) -> Run:
    """The run with its rows in `data`."""
    if storage is None or not run.path:
        return run
    return Run(run.first, run.rows, "", storage.read(run.path))


def stored(storage: Storage | None, run: Run) -> Run:
    """The run with its rows in the storage, if there is one."""
    if len(run.data) != run.rows * RUN_ROW.itemsize:
        raise ValueError(f"a run of {run.rows} rows has {len(run.data)} bytes")
    return run if storage is None else _write(storage, run.first, run.data)


def _write(storage: Storage, first: int, data: bytes) -> Run:
    path = f"{os.urandom(16).hex()}.run"
    with storage.create(path, durable=False) as writer:
        writer.write(data)
    return Run(first, len(data) // RUN_ROW.itemsize, path)


class Pair(NamedTuple):
    """A record that equals an earlier one of its run."""

    record: int
    offset: int
    earlier: int


class RunBuilder:
    """Takes the fingerprints of one shard and writes runs."""

    def __init__(
        self, storage: Storage | None, limit: int = _MOST_ROWS, *, distinct: bool = True
    ) -> None:
        self._storage = storage
        self._limit = limit
        self._distinct = distinct
        self._runs: list[Run] = []
        self._pairs: list[Pair] = []
        self._clear()

    def _clear(self) -> None:
        self._digests = bytearray()
        self._records = array("q")
        self._offsets = array("q")

    def add(self, digest: bytes, record: int, offset: int) -> None:
        """Add the next record with a fingerprint."""
        self.extend(digest, (record,), (offset,))

    def extend(self, digests: bytes, records: Sequence[int], offsets: Sequence[int]) -> None:
        """Add some records, in order."""
        at = 0
        while at < len(records):
            if self._records and self._is_full(records[at]):
                self._spill()
            room = self._limit - len(self._records)
            first = self._records[0] if self._records else records[at]
            stop = min(at + room, len(records))
            while records[stop - 1] - first >= _MOST_RECORDS:
                stop -= 1
            self._digests += digests[DIGEST_BYTES * at : DIGEST_BYTES * stop]
            self._records.extend(records[at:stop])
            self._offsets.extend(offsets[at:stop])
            at = stop

    def _is_full(self, record: int) -> bool:
        far = record - self._records[0] >= _MOST_RECORDS
        return far or len(self._records) >= self._limit

    def close(self) -> tuple[list[Run], list[Pair]]:
        """The runs, and the first records that equal an earlier one of their run."""
        if self._records:
            self._spill()
        return self._runs, self._pairs

    def _spill(self) -> None:
        digests = np.frombuffer(bytes(self._digests), "<u8").reshape(-1, 2)
        records = np.array(self._records, np.int64)
        offsets = np.array(self._offsets, np.int64)
        self._clear()
        order = np.lexsort((digests[:, 1], digests[:, 0]))  # stable: records stay in order
        digests = digests[order]
        new = np.ones(len(order), np.bool_)
        if self._distinct:
            new[1:] = (digests[1:] != digests[:-1]).any(axis=1)
        starts = np.flatnonzero(new)
        rows = np.empty(len(starts), RUN_ROW)
        rows["high"], rows["low"] = digests[starts].T
        rows["offset"] = offsets[order[starts]]
        rows["record"] = records[order[starts]] - records[0]
        rows["copies"] = np.diff(np.append(starts, len(order)))
        self._note_pairs(records, offsets, order, starts, new)
        self._write(int(records[0]), rows)

    def _note_pairs(
        self,
        records: npt.NDArray[np.int64],
        offsets: npt.NDArray[np.int64],
        order: npt.NDArray[np.intp],
        starts: npt.NDArray[np.intp],
        new: npt.NDArray[np.bool_],
    ) -> None:
        room = MAX_LOCATIONS - len(self._pairs)
        if room <= 0:
            return
        again = order[~new]
        earlier = order[starts[np.cumsum(new) - 1]][~new]
        for at in np.argsort(again, kind="stable")[:room].tolist():
            place = again[at]
            pair = Pair(int(records[place]), int(offsets[place]), int(records[earlier[at]]))
            self._pairs.append(pair)

    def _write(self, first: int, rows: Rows) -> None:
        data = rows.tobytes()
        if self._storage is None:
            self._runs.append(Run(first, len(rows), "", data))
        else:
            self._runs.append(_write(self._storage, first, data))


def read_in_order(
    storage: Storage, runs: Sequence[Run], at_once: int = _AT_ONCE
) -> Iterator[list[Rows]]:
    """Ranges of fingerprints in ascending order, each as a list of the rows of every run."""
    total = sum(run.rows for run in runs)
    ranges = max(1, -(-total // at_once))
    ahead = max(_LEAST_AHEAD, _AHEAD // max(1, len(runs)))
    cursors = [_Cursor(storage, run, ahead) for run in runs]
    for number in range(1, ranges + 1):
        bound = number * _END // ranges
        yield [cursor.below(bound) for cursor in cursors]


class _Cursor:
    """Reads one run from its beginning to its end."""

    def __init__(self, storage: Storage, run: Run, ahead: int) -> None:
        self._storage = storage
        self._run = run
        self._ahead = ahead
        self._read = 0
        self._rows: Rows = np.empty(0, RUN_ROW)

    def below(self, bound: int) -> Rows:
        """The next rows whose upper half is below `bound`."""
        pieces = []
        while True:
            if not len(self._rows):
                self._rows = self._next()
            if not len(self._rows):
                break
            end = len(self._rows)
            if bound < _END:
                end = int(np.searchsorted(self._rows["high"], np.uint64(bound)))
            pieces.append(self._rows[:end])
            self._rows = self._rows[end:]
            if len(self._rows):
                break
        return np.concatenate(pieces) if pieces else np.empty(0, RUN_ROW)

    def _next(self) -> Rows:
        run, size = self._run, RUN_ROW.itemsize
        count = min(self._ahead, run.rows - self._read)
        if count <= 0:
            return np.empty(0, RUN_ROW)
        start = self._read * size
        self._read += count
        if not run.path:
            return np.frombuffer(run.data, RUN_ROW, count, start)
        with self._storage.open(run.path) as file:
            return np.frombuffer(file.read_at(start, count * size), RUN_ROW, count)

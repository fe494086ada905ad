"""Equal rows: duplicates within and across splits, and one image under several labels.

Counts are exact; only the first locations are kept.

Sorted runs on disk: 32 bytes for each distinct fingerprint of a part of one shard.

A visitor sorts its fingerprints when there are many, and writes them as a run. The parent merges
all runs, one range of fingerprints at a time. Fingerprints are digests, so ranges of equal width
hold about the same number of rows, and memory does not grow with the number of records. Equal
records of a run are one row, so memory does not grow if all records are equal, either.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.example.model import Kind
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.hashing import DIGEST_BYTES
from tfrecreg.core.schema.payload_kinds import holds_integers, tables_of
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


_Ints = npt.NDArray[np.int64]

TRAIN = "train"


class Match(NamedTuple):
    """A record, and an equal one. Shards are positions in the target."""

    shard: int
    record: int
    offset: int
    other_shard: int
    other_record: int


class MatchCount:
    """A count of matches, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self._places: _Ints = np.empty((0, len(Match._fields)), np.int64)

    def add(self, count: int, places: _Ints) -> None:
        """Add matches."""
        self.count += count
        places = np.concatenate((self._places, places))
        order = np.lexsort((places[:, 1], places[:, 0]))
        self._places = places[order[:MAX_LOCATIONS]]

    @property
    def matches(self) -> list[Match]:
        """The first matches by shard and record."""
        return [Match(*row) for row in self._places.tolist()]


class Matches:
    """Collects equal fingerprints, range by range."""

    def __init__(self, splits: Sequence[str]) -> None:
        self._names = list(dict.fromkeys(splits))
        numbers = {name: number for number, name in enumerate(self._names)}
        self._split_of = np.array([numbers[each] for each in splits], np.int64)
        self._within: dict[int, MatchCount] = {}
        self._across: dict[tuple[int, int], MatchCount] = {}

    def within(self) -> list[tuple[str, MatchCount]]:
        """Matches with an earlier record of the same split, by split."""
        return [(self._names[split], seen) for split, seen in sorted(self._within.items())]

    def across(self) -> list[tuple[str, str, MatchCount]]:
        """Matches between two splits; locations are in the first one, which is not ``train``."""
        found = [
            (self._names[one], self._names[other], seen)
            for (one, other), seen in self._across.items()
        ]
        return sorted(found, key=lambda each: each[:2])

    def add(self, runs: Sequence[tuple[int, Run]], rows: Iterable[Rows]) -> None:
        """Add a range: the rows of every run, each with the number of its shard."""
        parts = [
            (shard, run.first, each)
            for (shard, run), each in zip(runs, rows, strict=True)
            if each.size
        ]
        if not parts:
            return
        high = np.concatenate([each["high"] for _, _, each in parts])
        low = np.concatenate([each["low"] for _, _, each in parts])
        lengths = [len(each) for _, _, each in parts]
        # Runs come in order of shard and record, and the sort is stable: so do equal rows.
        order = np.lexsort((low, high))
        high, low = high[order], low[order]
        same = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
        copies = np.concatenate([each["copies"] for _, _, each in parts])[order].astype(np.int64)
        kept = copies > 1
        kept[1:] |= same
        kept[:-1] |= same
        if not kept.any():
            return
        order = order[kept]
        shard = np.repeat(np.array([shard for shard, _, _ in parts], np.int64), lengths)[order]
        first = np.repeat(np.array([first for _, first, _ in parts], np.int64), lengths)[order]
        record = first + np.concatenate([each["record"] for _, _, each in parts])[order]
        offset = np.concatenate([each["offset"] for _, _, each in parts])[order].astype(np.int64)
        new = np.ones(len(order), np.bool_)
        new[1:] = ~((high[kept][1:] == high[kept][:-1]) & (low[kept][1:] == low[kept][:-1]))
        self._count(new, np.stack((shard, record.astype(np.int64), offset), axis=1), copies[kept])

    def again(self, shard: int, places: Iterable[tuple[int, int, int]]) -> None:
        """Add locations of matches within a run, whose count is already added."""
        rows = [(shard, record, offset, shard, earlier) for record, offset, earlier in places]
        if rows:
            seen = self._within.setdefault(int(self._split_of[shard]), MatchCount())
            seen.add(0, np.array(rows, np.int64))

    def _count(self, new: npt.NDArray[np.bool_], places: _Ints, copies: _Ints) -> None:
        """Count rows in order."""
        split = self._split_of[places[:, 0]]
        start = new.copy()
        start[1:] |= split[1:] != split[:-1]
        starts = np.flatnonzero(start)  # of the records with one fingerprint and split
        number = np.cumsum(start) - 1
        extra = np.add.reduceat(copies, starts) - 1
        later = ~start
        pairs = np.concatenate((places, places[starts[number]][:, :2]), axis=1)
        for each in np.unique(split[starts][extra > 0]).tolist():
            mine = split[starts] == each
            seen = self._within.setdefault(each, MatchCount())
            seen.add(int(extra[mine].sum()), pairs[later & (split == each)])
        self._pair(np.cumsum(new, dtype=np.int64)[starts], split[starts], places[starts])

    def _pair(self, group: _Ints, split: _Ints, places: _Ints) -> None:
        """Count fingerprints in two splits, by the first record of each split."""
        step = 1
        while (near := np.flatnonzero(group[step:] == group[:-step])).size:
            far = near + step
            codes = split[near] * len(self._names) + split[far]
            for code in np.unique(codes).tolist():
                these = codes == code
                one, other = divmod(code, len(self._names))
                first, second = near[these], far[these]
                if self._names[one] == TRAIN:
                    one, other, first, second = other, one, second, first
                found = np.concatenate((places[first], places[second][:, :2]), axis=1)
                self._across.setdefault((one, other), MatchCount()).add(len(found), found)
            step += 1


_LABELS = 1 << 31
"""Labels are smaller; negative ones mean "no label"."""


def add_labels(
    runs: RunBuilder, batch: RecordBatch, digests: Sequence[bytes | None], names: Sequence[str]
) -> None:
    """Add image and label of the records of a batch that have one label.

    A row's key is 96 bits of the image's fingerprint and 32 bits of label. So the rows of an image
    are adjacent and ordered by label, and the label can be read from the row.
    """
    labels: dict[int, int] = {}
    tables = tables_of(batch)
    for table in tables.tables:
        name = next((each for each in names if holds_integers(table, each)), None)
        if name is not None:
            values = table.columns[name][1].integers.tolist()
            labels.update(zip(table.positions.tolist(), values, strict=True))
    for position, example in tables.examples():
        found = (example.get(name) for name in names) if example is not None else ()
        feature = next((each for each in found if each is not None), None)
        if feature is not None and feature.kind is Kind.INT64 and feature.count == 1:
            labels[position] = feature.values[0]
    for position, label in sorted(labels.items()):
        digest = digests[position]
        if digest is not None and 0 <= label < _LABELS:
            key = digest[:8] + label.to_bytes(4, "little") + digest[12:16]
            runs.add(key, batch.first + position, batch.offsets[position])


class Contradiction(NamedTuple):
    """A record, and an earlier one with the same image and another label."""

    shard: int
    record: int
    offset: int
    label: int
    other_shard: int
    other_record: int
    other_label: int


class Contradictions:
    """Collects images with several labels, range by range."""

    def __init__(self) -> None:
        self.count = 0
        """Count of images."""
        self.first: list[Contradiction] = []
        """The first contradictions, by shard and record."""

    def add(self, runs: Sequence[tuple[int, Run]], rows: Iterable[Rows]) -> None:
        """Add a range: the rows of every run, each with the number of its shard."""
        parts = [(shard, run.first, each) for (shard, run), each in zip(runs, rows, strict=True)]
        every = np.concatenate([each for _, _, each in parts])
        image = every["low"] >> np.uint64(32)
        order = np.lexsort((every["low"], every["high"]))
        high, image, low = every["high"][order], image[order], every["low"][order]
        same = (high[1:] == high[:-1]) & (image[1:] == image[:-1])
        others = np.flatnonzero(same & (low[1:] != low[:-1]))
        if not others.size:
            return
        starts = np.flatnonzero(np.concatenate(([True], ~same)))
        ends = np.append(starts[1:], len(order))
        groups = np.unique(np.searchsorted(starts, others, side="right") - 1)
        self.count += len(groups)
        sizes = [len(each) for _, _, each in parts]
        shards = np.repeat([shard for shard, _, _ in parts], sizes)
        firsts = np.repeat([first for _, first, _ in parts], sizes)
        found = self.first
        for group in groups.tolist():
            places = sorted(
                (
                    int(shards[row]),
                    int(firsts[row]) + int(every["record"][row]),
                    int(every["offset"][row]),
                    int(every["low"][row]) & 0xFFFFFFFF,
                )
                for row in order[starts[group] : ends[group]].tolist()
            )
            found.append(_contradiction(places))
            if len(found) > 100 * MAX_LOCATIONS:
                found = sorted(found)[:MAX_LOCATIONS]
        self.first = sorted(found)[:MAX_LOCATIONS]


def _contradiction(places: Sequence[tuple[int, int, int, int]]) -> Contradiction:
    """The first record of an image whose label differs from that of the image's first record."""
    shard, record, _, label = places[0]
    other = next(each for each in places if each[3] != label)
    return Contradiction(*other, shard, record, label)

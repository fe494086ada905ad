"""Finds equal rows: duplicates within and across splits, and images with several labels.

Counts are exact, but only the first locations are kept.

Fingerprints are kept on disk in sorted runs, 32 bytes per distinct fingerprint of a run.

When a visitor has many fingerprints, it sorts them and writes them as a run. The parent merges all
runs, one range of fingerprints at a time. Fingerprints are digests, so ranges of equal width hold
about the same number of rows, and memory does not grow with the number of records. In each run,
equal records share one row. So a thousand equal records take no more memory than one record.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.core.example.model import Kind
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.hashing import DIGEST_BYTES
from tfrecreg.core.schema.payload_kinds import holds_integers, tables_of
from tfrecreg.core.storage.interface import Storage
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.findings import MAX_LOCATIONS

RUN_ROW = np.dtype(
    [("high", "<u8"), ("low", "<u8"), ("offset", "<u8"), ("record", "<u4"), ("copies", "<u4")]
)
"""`high` and `low` are the halves of a fingerprint. `offset` is the stream offset of the first
record with the fingerprint. `record` is the number of that record, relative to the run's first
record. `copies` is the number of records with the fingerprint.
"""
_MERGED_ROW = np.dtype(
    [("high", "<u8"), ("low", "<u8")]
    + [(name, "<i8") for name in ("offset", "record", "copies", "shard")]
)

Rows = npt.NDArray[np.void]
"""An array of :data:`RUN_ROW`, sorted by both halves of the fingerprint. Merged rows also have the
shard's position in the target, and `record` is the number of the record in the shard."""

_MOST_ROWS = 1 << 19
"""Maximum number of rows in a run. These rows take 16 MiB."""
_AT_ONCE = 1 << 18
"""Approximate number of rows in a range."""
_END = 1 << 64


class Run(NamedTuple):
    """A sorted run."""

    first: int
    """The number of the first record. The numbers in the rows are relative to it."""
    rows: int
    path: str
    """Path in the storage of runs; empty if `data` holds the rows."""
    data: bytes = b""

    def at_hand(self, storage: Storage) -> Run:
        """A copy of the run with its rows in `data`."""
        if not self.path:
            return self
        return Run(self.first, self.rows, "", storage.read(self.path))

    def stored(self, storage: Storage | None) -> Run:
        """Write the rows to a storage, and return the stored run. Without one, return self."""
        if len(self.data) != self.rows * RUN_ROW.itemsize:
            raise ValueError(f"a run of {self.rows} rows has {len(self.data)} bytes")
        if storage is None:
            return self
        path = f"{os.urandom(16).hex()}.run"
        with storage.create(path, durable=False) as writer:
            writer.write(self.data)
        return Run(self.first, self.rows, path)


class RunFolder:
    """A temporary folder for runs, which is deleted together with this object."""

    def __init__(self, name: str) -> None:
        folder = tempfile.mkdtemp(prefix=f"tfrecreg-{name}-")
        # Deleted even if the scan or the program ends by an exception.
        self.clear = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.storage = LocalStorage(folder)


class Pair(NamedTuple):
    """A record that equals an earlier record of its run."""

    record: int
    offset: int
    earlier: int


class RunBuilder:
    """Takes the fingerprints of one shard and writes runs."""

    def __init__(self, storage: Storage | None, *, distinct: bool = True) -> None:
        # A worker on another machine does not share a folder with the parent.
        self._storage = storage if storage is not None and storage.stat("") is not None else None
        self._distinct = distinct
        self._runs: list[Run] = []
        self._pairs: list[Pair] = []
        self._clear()

    def _clear(self) -> None:
        self._digests = bytearray()
        self._records = array("q")
        self._offsets = array("q")

    def add(self, digest: bytes, record: int, offset: int) -> None:
        """Add the fingerprint, the number and the offset of the next record."""
        self.extend(digest, (record,), (offset,))

    def extend(self, digests: bytes, records: Sequence[int], offsets: Sequence[int]) -> None:
        """Add some records, in order."""
        at = 0
        while at < len(records):
            if len(self._records) >= _MOST_ROWS:
                self._spill()
            stop = at + _MOST_ROWS - len(self._records)
            self._digests += digests[DIGEST_BYTES * at : DIGEST_BYTES * stop]
            self._records.extend(records[at:stop])
            self._offsets.extend(offsets[at:stop])
            at = stop

    def close(self) -> tuple[list[Run], list[Pair]]:
        """Return all runs, and up to :data:`MAX_LOCATIONS` records that equal an earlier record of
        the same run.
        """
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
        run = Run(int(records[0]), len(rows), "", rows.tobytes())
        self._runs.append(run.stored(self._storage))
        if room := MAX_LOCATIONS - len(self._pairs):
            again, earlier = order[~new], order[starts[np.cumsum(new) - 1]][~new]
            first = np.argsort(again, kind="stable")[:room]
            places = (records[again[first]], offsets[again[first]], records[earlier[first]])
            self._pairs += map(Pair._make, np.stack(places, axis=1).tolist())


def merged_rows(storage: Storage, runs: Sequence[Sequence[Run]]) -> Iterator[Rows]:
    """Yield the rows of all runs in ascending ranges of fingerprints. The rows of a range are in
    the order of shards and runs. `runs` has the runs of each shard.
    """
    flat = [(shard, run) for shard, each in enumerate(runs) for run in each]
    ranges = -(-sum(run.rows for _, run in flat) // _AT_ONCE)
    starts = [0] * len(flat)
    for number in range(1, ranges + 1):
        parts = []
        for at, (shard, run) in enumerate(flat):
            rows = _below(storage, run, starts[at], number * _END // ranges)
            starts[at] += len(rows)
            part = np.empty(len(rows), _MERGED_ROW)
            for name in RUN_ROW.names or ():
                part[name] = rows[name]
            part["record"] += run.first
            part["shard"] = shard
            parts.append(part)
        yield np.concatenate(parts)


def _below(storage: Storage, run: Run, start: int, bound: int) -> Rows:
    """The rows of a run, from row `start` to the last one whose upper half is below `bound`."""
    if run.path:  # mapped for one range only, so that rows do not stay in memory
        rows: Rows = np.memmap(f"{storage.root}/{run.path}", RUN_ROW, "r")
    else:
        rows = np.frombuffer(run.data, RUN_ROW)
    stop = bisect_left(rows, bound, start, key=lambda row: int(row["high"]))
    return np.array(rows[start:stop])


_Ints = npt.NDArray[np.int64]

TRAIN = "train"


class Match(NamedTuple):
    """A record, and an earlier record that equals it or has the same image with another label.
    Their shards are given as positions in the target.
    """

    shard: int
    record: int
    offset: int
    other_shard: int
    other_record: int
    label: int = 0
    other_label: int = 0


class MatchCount:
    """Counts matches, and keeps the first ones."""

    def __init__(self) -> None:
        self.count = 0
        self._places: list[_Ints] = []

    def add(self, count: int, places: _Ints) -> None:
        """Add matches. The columns of `places` are the fields of :class:`Match`."""
        self.count += count
        every = np.concatenate((*self._places, places))
        order = np.lexsort((every[:, 1], every[:, 0]))
        self._places = [every[order[:MAX_LOCATIONS]]]

    @property
    def matches(self) -> list[Match]:
        """The first matches, in the order of shards and records."""
        return [Match(*row) for places in self._places for row in places.tolist()]


def _places_of(rows: Rows) -> _Ints:
    return np.stack((rows["shard"], rows["record"], rows["offset"]), axis=1)


def _begins(*keys: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Whether each row begins a group of rows with equal keys."""
    new = np.zeros(len(keys[0]), np.bool_)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new


class Matches:
    """Collects records with equal fingerprints. Ranges of fingerprints are added one by one."""

    def __init__(self, splits: Sequence[str]) -> None:
        self._names = list(dict.fromkeys(splits))
        numbers = {name: number for number, name in enumerate(self._names)}
        self._split_of = np.array([numbers[each] for each in splits], np.int64)
        self._within: dict[int, MatchCount] = {}
        self._across: dict[tuple[int, int], MatchCount] = {}

    def within(self) -> list[tuple[str, MatchCount]]:
        """For each split, its records that equal an earlier record of the same split."""
        return [(self._names[split], seen) for split, seen in sorted(self._within.items())]

    def across(self) -> list[tuple[str, str, MatchCount]]:
        """Matches between two splits. Locations are in the first split. It is never ``train``."""
        found = [
            (self._names[one], self._names[other], seen)
            for (one, other), seen in self._across.items()
        ]
        return sorted(found, key=lambda each: each[:2])

    def take(self, rows: Rows) -> None:
        """Add a range of merged rows."""
        # Rows come in order of shard and record. The sort is stable, so equal rows keep it.
        rows = rows[np.lexsort((rows["low"], rows["high"]))]
        new = _begins(rows["high"], rows["low"])
        kept = (rows["copies"] > 1) | ~new
        kept[:-1] |= ~new[1:]
        if kept.any():
            self._count(new[kept], _places_of(rows[kept]), rows["copies"][kept])

    def again(self, shard: int, places: Iterable[tuple[int, int, int]]) -> None:
        """Add the locations of records that equal an earlier record of the same run. `take` counts
        these matches.
        """
        rows = [(shard, record, offset, shard, earlier) for record, offset, earlier in places]
        if rows:
            seen = self._within.setdefault(int(self._split_of[shard]), MatchCount())
            seen.add(0, np.array(rows, np.int64))

    def _count(self, new: npt.NDArray[np.bool_], places: _Ints, copies: _Ints) -> None:
        """Count rows in order."""
        split = self._split_of[places[:, 0]]
        start = new | _begins(split)
        starts = np.flatnonzero(start)  # of the groups with equal fingerprint and split
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
        """Count the fingerprints that two splits share, and note the first record in each split."""
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
"""Labels are below this bound. A negative label means "no label"."""


def add_labels(
    runs: RunBuilder, batch: RecordBatch, digests: Sequence[bytes | None], names: Sequence[str]
) -> None:
    """Add the image and the label of each record in a batch, if the record has exactly one label.

    A row's key consists of 96 bits of the image's fingerprint and 32 bits for the label. So all
    rows of an image are adjacent and sorted by label, and each row contains its label.
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


class Contradictions(MatchCount):
    """Counts images with several labels. Ranges of fingerprints are added one by one."""

    def take(self, rows: Rows) -> None:
        """Add a range of merged rows: see :func:`add_labels`."""
        image = rows["low"] >> np.uint64(32)
        order = np.lexsort((rows["record"], rows["shard"], image, rows["high"]))
        rows, image = rows[order], image[order]
        label = (rows["low"] & np.uint64(_LABELS - 1)).astype(np.int64)
        start = _begins(rows["high"], image)
        first = np.flatnonzero(start)[np.cumsum(start) - 1]
        # The first record whose label differs from the label of the image's first record.
        others = np.flatnonzero(label != label[first])
        _, at = np.unique(first[others], return_index=True)
        other = others[at]
        first = first[other]
        places = _places_of(rows)
        labels = (label[other], label[first])
        found = np.column_stack((places[other], places[first][:, :2], *labels))
        self.add(len(found), found)

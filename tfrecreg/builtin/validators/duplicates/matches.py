"""Equal rows: duplicates within and across splits, and one image under several labels.

Counts are exact; only the first locations are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.validators.duplicates.sorted_runs import Rows, Run, RunBuilder
from tfrecreg.core.example.model import Kind
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.schema.roles.record_tables import holds_integers, tables_of
from tfrecreg.core.values.findings import MAX_LOCATIONS

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

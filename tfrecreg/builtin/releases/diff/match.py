"""Finds out what became of each example. Only the indexes are read.

Examples are matched by content first and by key second. If keys are positions, as in MNIST's files,
removing an example changes the keys of all later examples, but not their content.

1. the same split, key and record: unchanged
2. the same split and record: only the key differs
3. the same split and key: changed
4. the same record in another split: moved
5. the same key in another split: moved and changed
6. the rest is removed or added
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.records.index import Index
from tfrecreg.core.registry.side import Side
from tfrecreg.core.values.progress import SILENT, Progress, working

IndexRows = npt.NDArray[np.uint8]
"""Shape (records, :data:`WIDTH`), C-contiguous."""
Places = npt.NDArray[np.uint64]
"""Shape (records,). A place is the shard number times 2^32 plus the record number."""

SPLIT, KEY, DIGEST, PLACE = slice(0, 4), slice(4, 20), slice(20, 36), slice(36, 44)
WIDTH = 44


def shard_of(place: int) -> int:
    """The number of the shard in the manifest."""
    return place >> 32


def record_of(place: int) -> int:
    """The number of the record in its shard."""
    return place & 0xFFFFFFFF


def collect(
    side: Side, splits: Mapping[str, int], left_out: Collection[int], progress: Progress
) -> dict[str, list[IndexRows] | None]:
    """The rows of each split, unsorted, shard by shard. None for a split that lacks an index."""
    rows: dict[str, list[IndexRows] | None] = {split: [] for split in splits}
    for number, entry in enumerate(side.manifest.shards):
        found = rows[entry.split]
        if number in left_out or found is None:
            continue
        index = side.index(number)
        if index is None or len(index) != entry.records:
            rows[entry.split] = None
            continue
        count = len(index)
        filled: IndexRows = np.empty((count, WIDTH), np.uint8)
        filled[:, SPLIT] = np.frombuffer(splits[entry.split].to_bytes(4, "big"), np.uint8)
        filled[:, KEY] = _key_digests(index)
        filled[:, DIGEST] = index.digests
        places = (np.arange(count) + (number << 32)).astype(">u8")
        filled[:, PLACE] = places.view(np.uint8).reshape(count, 8)
        found.append(filled)
        progress.advance(count, 0)
    return rows


def _key_digests(index: Index) -> npt.NDArray[np.uint8]:
    keys, start = index.key_bytes, 0
    digests = bytearray()
    for end in index.key_ends.tolist():
        digests += blake3(keys[start:end]).digest(16)
        start = end
    return np.frombuffer(digests, np.uint8).reshape(len(index), 16)


def example_places(rows: IndexRows) -> Places:
    """The places of the records of these rows."""
    last = np.ascontiguousarray(rows[:, PLACE])
    return last.view(">u8").ravel().astype(np.uint64)


def _matches(
    first: IndexRows, second: IndexRows, width: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The positions of partners: the n-th row with a beginning on each side, if both have one.
    NumPy pads the beginnings with NUL bytes, which is harmless because all have the same length.
    """
    before, after = (
        np.ascontiguousarray(rows[:, :width]).view(f"S{width}").ravel() for rows in (first, second)
    )
    positions = np.arange(len(before))
    number = positions - np.searchsorted(before, before, "left")
    start = np.searchsorted(after, before, "left")
    count = np.searchsorted(after, before, "right") - start
    mine = np.flatnonzero(number < count)
    return mine, (start + number)[mine]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Records of both sides that belong together."""

    before: Places
    after: Places

    def __len__(self) -> int:
        """The number of pairs, or of records that only one side has."""
        return max(len(self.before), len(self.after))

    def __getitem__(self, which: slice | npt.NDArray[np.bool_]) -> Pairs:
        return Pairs(self.before[which], self.after[which])

    @classmethod
    def none(cls) -> Pairs:
        """No pairs."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.uint64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What became of the examples. Pairs are sorted by place on the second side. `removed` and
    `added` are sorted by place.
    """

    renamed: Pairs = field(default_factory=Pairs.none)
    """Examples whose record is in the same split, but under another key."""
    changed: Pairs = field(default_factory=Pairs.none)
    """Examples whose split and key are the same, but whose record differs."""
    moved: Pairs = field(default_factory=Pairs.none)
    """Examples whose record is in another split."""
    moved_changed: Pairs = field(default_factory=Pairs.none)
    """Examples whose key is in another split, and whose record differs."""
    renamed_changed: Pairs = field(default_factory=Pairs.none)
    """Examples whose image is in the same split, but in another record with another key. They are
    found only if the records were read."""
    removed: Places = field(default_factory=lambda: np.empty(0, np.uint64))
    added: Places = field(default_factory=lambda: np.empty(0, np.uint64))
    unknown: tuple[str, ...] = ()
    """Splits that lack an index on this machine, so that their examples are unknown."""


def match(before: Side, after: Side, progress: Progress = SILENT) -> Matched:
    """Compare the indexes of two sides.

    It takes about 150 bytes of memory for each record of the shards that differ.
    """
    splits = split_numbers(before, after)
    same_before, same_after = _same_shards(before, after)
    todo = _records(before, same_before) + _records(after, same_after)
    with working(progress, f"comparing {before.name} and {after.name}", todo):
        rows = [
            collect(side, splits, same, progress)
            for side, same in ((before, same_before), (after, same_after))
        ]
    unknown = [split for split in splits if any(each[split] is None for each in rows)]
    left = Unmatched(*(_joined(each, unknown) for each in rows))
    del rows
    left.pair(SPLIT, KEY, DIGEST)
    contents = [
        {each.name: each.content for each in side.manifest.splits} for side in (before, after)
    ]
    return Matched(
        renamed=left.pair(SPLIT, DIGEST),
        changed=left.pair(SPLIT, KEY),
        moved=left.pair(DIGEST),
        moved_changed=left.pair(KEY),
        removed=np.sort(example_places(left.before)),
        added=np.sort(example_places(left.after)),
        # A split without indexes is still known if the manifests show that it is the same.
        unknown=tuple(
            name
            for name in unknown
            if name not in contents[0] or contents[0][name] != contents[1].get(name)
        ),
    )


def _joined(rows: dict[str, list[IndexRows] | None], without: Collection[str]) -> IndexRows:
    parts = [part for split, found in rows.items() if split not in without for part in found or ()]
    return np.concatenate([np.empty((0, WIDTH), np.uint8), *parts])


def split_numbers(before: Side, after: Side) -> dict[str, int]:
    """The splits of both sides, numbered in order of their names."""
    names = {split.name for side in (before, after) for split in side.manifest.splits}
    return {name: number for number, name in enumerate(sorted(names))}


def _same_shards(before: Side, after: Side) -> tuple[set[int], set[int]]:
    """Shards whose split and index are the same on both sides. Their records did not change."""
    known: dict[tuple[str, str | None], list[int]] = {}
    for number, entry in enumerate(before.manifest.shards):
        known.setdefault((entry.split, before.index_digest(number)), []).append(number)
    pairs = []
    for number, entry in enumerate(after.manifest.shards):
        digest = after.index_digest(number)
        twins = known.get((entry.split, digest))
        if digest is not None and twins:
            pairs.append((twins.pop(), number))
    return {mine for mine, _ in pairs}, {theirs for _, theirs in pairs}


def _records(side: Side, left_out: Collection[int]) -> int:
    return sum(
        entry.records for number, entry in enumerate(side.manifest.shards) if number not in left_out
    )


class Unmatched:
    """The rows of both sides that have no partner yet."""

    def __init__(self, before: IndexRows, after: IndexRows) -> None:
        self.before = before
        self.after = after

    def pair(self, *columns: slice) -> Pairs:
        """Pair the rows that are equal in some columns, and keep the other rows. If several rows on
        a side are equal, they are paired in the order of the other columns.
        """
        rest = [each for each in (SPLIT, KEY, DIGEST) if each not in columns]
        bytes_ = [range(each.start, each.stop) for each in (*columns, *rest, PLACE)]
        order = np.array([number for each in bytes_ for number in each], np.intp)
        width = sum(each.stop - each.start for each in columns)
        self.before, self.after = _sorted(self.before, order), _sorted(self.after, order)
        sides = self.before, self.after
        positions = _matches(*sides, width)
        found = [example_places(rows[at]) for rows, at in zip(sides, positions, strict=True)]
        back = np.argsort(order)
        self.before, self.after = (
            np.delete(rows, at, axis=0)[:, back] for rows, at in zip(sides, positions, strict=True)
        )
        return in_order(*found)


def _sorted(rows: IndexRows, order: npt.NDArray[np.intp]) -> IndexRows:
    """The rows with their bytes in another order, sorted."""
    permuted: IndexRows = rows.take(order, axis=1)
    permuted.view(f"S{WIDTH}").ravel().sort()
    return permuted


def in_order(before: Places, after: Places) -> Pairs:
    """Pairs, sorted by place on the second side."""
    order = np.argsort(after, kind="stable")
    return Pairs(before[order], after[order])

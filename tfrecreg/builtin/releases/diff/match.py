"""The fate of every example, from the indexes alone.

Examples are matched by content first and by key second: if keys are positions, as in MNIST's files,
one that is taken away moves the keys of all that follow, and changes none.

1. the same split, key and record: unchanged
2. the same split and record: only the key is another
3. the same split and key: changed
4. the same record in another split: moved
5. the same key in another split: moved and changed
6. the rest is removed or added

Memory for the rows of a comparison: many rows are in a temporary file.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.records.index import Index
from tfrecreg.core.registry.manifest import SplitEntry
from tfrecreg.core.registry.shardset.side import Side
from tfrecreg.core.storage.paths import advice
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress

_HELD = 1 << 27
"""Bytes of rows that are kept in memory."""
_BLOCK = bytes(1 << 20)


def new_rows(count: int, width: int) -> npt.NDArray[np.uint8]:
    """Rows to be filled. Above 128 MiB they are in a file without a name, whose pages the system
    takes out of memory when it needs them. The file ends with the array.
    """
    size = count * width
    if size <= _HELD:
        return np.empty((count, width), np.uint8)
    try:
        with tempfile.TemporaryFile(prefix="tfrecreg-diff-") as file:
            # A file with holes would end the process where the disk is full.
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                for at in range(0, size, len(_BLOCK)):
                    file.write(_BLOCK[: size - at])
                file.flush()
            memory = mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise StorageError(
            f"cannot write {size:,} bytes to `{tempfile.gettempdir()}` for the comparison: "
            f"{error.strerror}",
            hint=advice(error) or "TMPDIR names another folder",
        ) from error
    return np.frombuffer(memory, np.uint8).reshape(count, width)


IndexRows = npt.NDArray[np.uint8]
"""Shape (records, :data:`WIDTH`), C-contiguous."""
Places = npt.NDArray[np.uint64]
"""Shape (records,): shard number times 2^32 plus record number."""

SPLIT, KEY, DIGEST, PLACE = slice(0, 2), slice(2, 18), slice(18, 34), slice(34, 42)
WIDTH = 42

_MATCH_BLOCK = 1 << 16
"""Rows permuted, and compared, at a time: it bounds the memory beside the rows."""


class MissingIndexError(Exception):
    """The index of a shard is not on this machine."""

    def __init__(self, split: str) -> None:
        super().__init__(split)
        self.split = split


def shard_of(place: int) -> int:
    """The number of the shard in the manifest."""
    return place >> 32


def record_of(place: int) -> int:
    """The number of the record in its shard."""
    return place & 0xFFFFFFFF


def collect(
    side: Side, splits: Mapping[str, int], left_out: Collection[int], progress: Progress
) -> IndexRows:
    """The rows of a side, unsorted."""
    wanted = [
        (number, entry)
        for number, entry in enumerate(side.manifest.shards)
        if entry.split in splits and number not in left_out
    ]
    for number, entry in wanted:
        if not side.may_have(number):
            raise MissingIndexError(entry.split)
    counts = [entry.records for _, entry in wanted]
    rows: IndexRows = new_rows(sum(counts), WIDTH)
    at = 0
    for (number, entry), count in zip(wanted, counts, strict=True):
        index = side.index(number)
        if index is None or len(index) != entry.records:
            raise MissingIndexError(entry.split)
        _fill(rows[at : at + count], index, splits[entry.split], number)
        at += count
        progress.advance(count, 0)
    return rows


def _fill(rows: IndexRows, index: Index, split: int, shard: int) -> None:
    rows[:, SPLIT] = np.frombuffer(split.to_bytes(2, "big"), np.uint8)
    rows[:, KEY] = _key_digests(index)
    rows[:, DIGEST] = index.digests
    places = (np.arange(len(index)) + (shard << 32)).astype(">u8")
    rows[:, PLACE] = places.view(np.uint8).reshape(len(index), 8)


def _key_digests(index: Index) -> npt.NDArray[np.uint8]:
    keys, start = index.key_bytes, 0
    digests = bytearray()
    for end in index.key_ends.tolist():
        digests += blake3(keys[start:end]).digest(16)
        start = end
    return np.frombuffer(digests, np.uint8).reshape(len(index), 16)


def arrange(rows: IndexRows, *columns: slice) -> None:
    """Move these columns to the front of every row, and sort the rows; in place."""
    _permute(rows, _order(columns))
    rows.view(f"S{WIDTH}").ravel().sort()


def restore(rows: IndexRows, *columns: slice) -> None:
    """Move the columns back that :func:`arrange` moved; in place."""
    _permute(rows, np.argsort(_order(columns)))


def _order(columns: tuple[slice, ...]) -> npt.NDArray[np.intp]:
    rest = [each for each in (SPLIT, KEY, DIGEST) if each not in columns]
    bytes_ = [range(each.start, each.stop) for each in (*columns, *rest, PLACE)]
    return np.array([number for each in bytes_ for number in each], np.intp)


def _permute(rows: IndexRows, order: npt.NDArray[np.intp]) -> None:
    for at in range(0, len(rows), _MATCH_BLOCK):
        block = rows[at : at + _MATCH_BLOCK]
        block[:] = block[:, order]


def example_places(rows: IndexRows) -> Places:
    """The places of the records of these rows."""
    last = np.ascontiguousarray(rows[:, PLACE])
    return last.view(">u8").ravel().astype(np.uint64)


Names = npt.NDArray[np.bytes_]
"""The beginnings of rows. NumPy pads with NUL bytes, which changes nothing where all are of one
length."""


class Paired(NamedTuple):
    """The pairs of two sides, and the remaining records of each."""

    before: Places
    """Shape (pairs,): the places on the first side …"""
    after: Places
    """Shape (pairs,): … and on the second."""
    left_before: IndexRows
    """Rows without a partner, in their order."""
    left_after: IndexRows


def pair(before: IndexRows, after: IndexRows, width: int) -> Paired:
    """Pair rows that begin with the same bytes; where several do, in their order.

    The remaining rows are moved to the front of their array, so that no more memory is
    taken than for the pairs: the arguments are consumed.
    """
    pairs: list[tuple[Places, Places]] = []
    kept_before = kept_after = 0
    for first, second in _blocks(before, after, width):
        mine, theirs = _matches(_names(first, width), _names(second, width))
        pairs.append((example_places(first[mine]), example_places(second[theirs])))
        kept_before = _keep(before, kept_before, _without(first, mine))
        kept_after = _keep(after, kept_after, _without(second, theirs))
    return Paired(
        before=np.concatenate([each for each, _ in pairs]),
        after=np.concatenate([each for _, each in pairs]),
        left_before=_trimmed(before, kept_before),
        left_after=_trimmed(after, kept_after),
    )


def _keep(rows: IndexRows, at: int, left: IndexRows) -> int:
    rows[at : at + len(left)] = left
    return at + len(left)


def _trimmed(rows: IndexRows, count: int) -> IndexRows:
    """The first rows; where they are few, without the memory of the others."""
    return rows[:count] if 2 * count > len(rows) else rows[:count].copy()


def _blocks(before: IndexRows, after: IndexRows, width: int) -> list[tuple[IndexRows, IndexRows]]:
    """Both sides cut at the same bytes, never between two rows that could be partners."""
    larger = before if len(before) >= len(after) else after
    names = [larger[at, :width].tobytes() for at in range(_MATCH_BLOCK, len(larger), _MATCH_BLOCK)]
    cuts = [(_lower(before, name), _lower(after, name)) for name in dict.fromkeys(names)]
    bounds = [(0, 0), *cuts, (len(before), len(after))]
    return [
        (before[start[0] : end[0]], after[start[1] : end[1]]) for start, end in pairwise(bounds)
    ]


def _lower(rows: IndexRows, cut: bytes) -> int:
    """The number of rows that sort before every row that begins with `cut`."""
    whole = rows.view(f"S{WIDTH}").ravel()
    return int(np.searchsorted(whole, np.array([cut], f"S{WIDTH}"))[0])


def _names(rows: IndexRows, width: int) -> Names:
    return np.ascontiguousarray(rows[:, :width]).view(f"S{width}").ravel()


def _matches(before: Names, after: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The positions of partners: the n-th of a name belongs to the n-th of that name."""
    positions = np.arange(len(before))
    number = positions - np.searchsorted(before, before, "left")
    start = np.searchsorted(after, before, "left")
    count = np.searchsorted(after, before, "right") - start
    mine = np.flatnonzero(number < count)
    return mine, (start + number)[mine]


def _without(rows: IndexRows, positions: npt.NDArray[np.intp]) -> IndexRows:
    kept = np.ones(len(rows), np.bool_)
    kept[positions] = False
    return rows[kept]


_MOST_SPLITS = 1 << 16
"""A row has two bytes for the number of its split."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Records of both sides that belong together."""

    before: Places
    after: Places

    def __len__(self) -> int:
        return len(self.before)

    @classmethod
    def none(cls) -> Pairs:
        """Not one."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.uint64))

    def without(self, which: Sequence[int]) -> Pairs:
        """All but those at these positions."""
        return Pairs(np.delete(self.before, which), np.delete(self.after, which))

    def and_also(self, more: Pairs) -> Pairs:
        """These and those, in order of the place after."""
        return in_order(
            np.concatenate((self.before, more.before)), np.concatenate((self.after, more.after))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What became of the examples. Pairs are in order of their place after, all else of place."""

    renamed: Pairs = field(default_factory=Pairs.none)
    """The same record in the same split, under another key."""
    changed: Pairs = field(default_factory=Pairs.none)
    """The same split and key, another record."""
    moved: Pairs = field(default_factory=Pairs.none)
    """The same record in another split."""
    moved_changed: Pairs = field(default_factory=Pairs.none)
    """The same key in another split, with another record."""
    renamed_changed: Pairs = field(default_factory=Pairs.none)
    """The same image in the same split, under another key and in another record. Found where the
    records themselves were read."""
    removed: Places = field(default_factory=lambda: np.empty(0, np.uint64))
    added: Places = field(default_factory=lambda: np.empty(0, np.uint64))
    unknown: tuple[str, ...] = ()
    """Splits with an index missing on this machine: their examples are unknown."""


def match(before: Side, after: Side, progress: Progress = SILENT) -> Matched:
    """Compare the indexes of two sides.

    Takes about 42 bytes for each record of a shard that is not the same on both sides.
    """
    splits = split_numbers(before, after)
    same_before, same_after = _same_shards(before, after)
    unknown: list[str] = []
    while True:
        wanted = {name: number for name, number in splits.items() if name not in unknown}
        todo = _records(before, wanted, same_before) + _records(after, wanted, same_after)
        progress.start(f"comparing {before.name} and {after.name}", todo)
        try:
            first = collect(before, wanted, same_before, progress)
            second = collect(after, wanted, same_after, progress)
        except MissingIndexError as error:
            unknown.append(error.split)
            continue
        finally:
            progress.stop()
        left = Unmatched(first, second)
        del first, second
        contents = [{each.name: each for each in side.manifest.splits} for side in (before, after)]
        lost = [name for name in unknown if not _same_content(name, *contents)]
        return _matched(left, tuple(sorted(lost)))


def split_numbers(before: Side, after: Side) -> dict[str, int]:
    """The splits of both sides, numbered in order of their names."""
    names = {split.name for side in (before, after) for split in side.manifest.splits}
    if len(names) > _MOST_SPLITS:
        raise UsageError(
            f"`{before.name}` and `{after.name}` have {len(names)} splits, at most {_MOST_SPLITS} "
            "can be compared",
            hint="distinguish records by keys or features, not by splits",
        )
    return {name: number for number, name in enumerate(sorted(names))}


def _same_content(
    split: str, before: Mapping[str, SplitEntry], after: Mapping[str, SplitEntry]
) -> bool:
    """Whether the manifests say that the examples of a split are the same."""
    return split in before and split in after and before[split].content == after[split].content


def _same_shards(before: Side, after: Side) -> tuple[set[int], set[int]]:
    """Shards of the same split with the same index: nothing became of their records."""
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


def _records(side: Side, splits: Collection[str], left_out: Collection[int]) -> int:
    return sum(
        entry.records
        for number, entry in enumerate(side.manifest.shards)
        if entry.split in splits and number not in left_out
    )


class Unmatched:
    """The rows of both sides that have no partner yet."""

    def __init__(self, before: IndexRows, after: IndexRows) -> None:
        self.before = before
        self.after = after

    def pair(self, *columns: slice) -> Pairs:
        """Pair the rows that are equal in some columns, and keep the others."""
        for rows in (self.before, self.after):
            arrange(rows, *columns)
        width = sum(each.stop - each.start for each in columns)
        before, after, self.before, self.after = pair(self.before, self.after, width)
        for rows in (self.before, self.after):
            restore(rows, *columns)
        return in_order(before, after)


def _matched(left: Unmatched, unknown: tuple[str, ...]) -> Matched:
    left.pair(SPLIT, KEY, DIGEST)
    return Matched(
        renamed=left.pair(SPLIT, DIGEST),
        changed=left.pair(SPLIT, KEY),
        moved=left.pair(DIGEST),
        moved_changed=left.pair(KEY),
        removed=np.sort(example_places(left.before)),
        added=np.sort(example_places(left.after)),
        unknown=unknown,
    )


def in_order(before: Places, after: Places) -> Pairs:
    """Pairs in order of their place after."""
    order = np.argsort(after, kind="stable")
    return Pairs(before[order], after[order])

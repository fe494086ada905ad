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

import mmap
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.records.index import Index
from tfrecreg.core.registry.side import Side
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress

_HELD = 1 << 27
"""Maximum number of bytes of rows in memory."""
_BLOCK = bytes(1 << 20)


def new_rows(count: int, width: int) -> npt.NDArray[np.uint8]:
    """Rows to be filled. If they take more than 128 MiB, an unnamed file holds them, so that the
    system can free their memory. The file is deleted with the array.
    """
    size = count * width
    if size <= _HELD:
        return np.empty((count, width), np.uint8)
    try:
        with tempfile.TemporaryFile(prefix="tfrecreg-diff-") as file:
            # On a full disk, a write into the memory of a sparse file would kill the process.
            for at in range(0, size, len(_BLOCK)):
                file.write(_BLOCK[: size - at])
            file.flush()
            memory = mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise StorageError(
            f"cannot write {size:,} bytes to `{tempfile.gettempdir()}` for the comparison: "
            f"{error.strerror}; TMPDIR can name another folder"
        ) from error
    return np.frombuffer(memory, np.uint8).reshape(count, width)


IndexRows = npt.NDArray[np.uint8]
"""Shape (records, :data:`WIDTH`), C-contiguous."""
Places = npt.NDArray[np.uint64]
"""Shape (records,). A place is the shard number times 2^32 plus the record number."""

SPLIT, KEY, DIGEST, PLACE = slice(0, 2), slice(2, 18), slice(18, 34), slice(34, 42)
WIDTH = 42

_MATCH_BLOCK = 1 << 16
"""Number of rows that are permuted and compared at a time. It limits the additional memory."""


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
        filled = rows[at : at + count]
        filled[:, SPLIT] = np.frombuffer(splits[entry.split].to_bytes(2, "big"), np.uint8)
        filled[:, KEY] = _key_digests(index)
        filled[:, DIGEST] = index.digests
        places = (np.arange(count) + (number << 32)).astype(">u8")
        filled[:, PLACE] = places.view(np.uint8).reshape(count, 8)
        at += count
        progress.advance(count, 0)
    return rows


def _key_digests(index: Index) -> npt.NDArray[np.uint8]:
    keys, start = index.key_bytes, 0
    digests = bytearray()
    for end in index.key_ends.tolist():
        digests += blake3(keys[start:end]).digest(16)
        start = end
    return np.frombuffer(digests, np.uint8).reshape(len(index), 16)


def _permute(rows: IndexRows, order: npt.NDArray[np.intp]) -> None:
    for at in range(0, len(rows), _MATCH_BLOCK):
        block = rows[at : at + _MATCH_BLOCK]
        block[:] = block[:, order]


def example_places(rows: IndexRows) -> Places:
    """The places of the records of these rows."""
    last = np.ascontiguousarray(rows[:, PLACE])
    return last.view(">u8").ravel().astype(np.uint64)


def _blocks(before: IndexRows, after: IndexRows, width: int) -> list[tuple[IndexRows, IndexRows]]:
    """Divide the rows of both sides into blocks. Potential partners are in the same block."""
    larger = before if len(before) >= len(after) else after
    names = [larger[at, :width].tobytes() for at in range(_MATCH_BLOCK, len(larger), _MATCH_BLOCK)]
    cuts = [(_lower(before, name), _lower(after, name)) for name in dict.fromkeys(names)]
    bounds = [(0, 0), *cuts, (len(before), len(after))]
    return [
        (before[start[0] : end[0]], after[start[1] : end[1]]) for start, end in pairwise(bounds)
    ]


def _lower(rows: IndexRows, cut: bytes) -> int:
    """The number of rows that are sorted before `cut`."""
    whole = rows.view(f"S{WIDTH}").ravel()
    return int(np.searchsorted(whole, np.array([cut], f"S{WIDTH}"))[0])


def _matches(
    first: IndexRows, second: IndexRows, width: int
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The positions of partners on each side. Among the rows with the same beginning, the n-th row
    of one side is the partner of the n-th row of the other side. NumPy pads the beginnings with NUL
    bytes, which is harmless because all beginnings have the same length.
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


_MOST_SPLITS = 1 << 16
"""Maximum number of splits. A row has two bytes for the number of its split."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Records of both sides that belong together."""

    before: Places
    after: Places

    def __len__(self) -> int:
        """The number of pairs, or of records if only one side has them."""
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

    It takes about 42 bytes of memory for each record of the shards that differ.
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
                name for name in sorted(unknown) if contents[0].get(name) != contents[1].get(name)
            ),
        )


def split_numbers(before: Side, after: Side) -> dict[str, int]:
    """The splits of both sides, numbered in order of their names."""
    names = {split.name for side in (before, after) for split in side.manifest.splits}
    if len(names) > _MOST_SPLITS:
        raise UsageError(
            f"`{before.name}` and `{after.name}` have {len(names)} splits, but at most "
            f"{_MOST_SPLITS} can be compared"
        )
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
        """Pair the rows that are equal in some columns, and keep the other rows. If several rows on
        a side are equal, they are paired in the order of the other columns.

        In the arrays of both sides, the rows without a partner move to the front. So additional
        memory is needed only for the pairs.
        """
        rest = [each for each in (SPLIT, KEY, DIGEST) if each not in columns]
        bytes_ = [range(each.start, each.stop) for each in (*columns, *rest, PLACE)]
        order = np.array([number for each in bytes_ for number in each], np.intp)
        width = sum(each.stop - each.start for each in columns)
        sides = self.before, self.after
        for rows in sides:
            _permute(rows, order)
            rows.view(f"S{WIDTH}").ravel().sort()
        found: list[list[Places]] = []
        kept = [0, 0]
        for blocks in _blocks(*sides, width):
            pairs = list(zip(blocks, _matches(*blocks, width), strict=True))
            found.append([example_places(block[positions]) for block, positions in pairs])
            for side, (block, positions) in enumerate(pairs):
                left = np.delete(block, positions, axis=0)
                sides[side][kept[side] : kept[side] + len(left)] = left
                kept[side] += len(left)
        self.before, self.after = map(_trimmed, sides, kept)
        for rows in (self.before, self.after):
            _permute(rows, np.argsort(order))
        before, after = map(np.concatenate, zip(*found, strict=True))
        del sides, blocks, block, pairs, found  # frees their memory before the pairs are sorted
        return in_order(before, after)


def _trimmed(rows: IndexRows, count: int) -> IndexRows:
    """The first `count` rows. If these are at most half of `rows`, they are copied, so that the
    memory of `rows` can be freed.
    """
    return rows[:count] if 2 * count > len(rows) else rows[:count].copy()


def in_order(before: Places, after: Places) -> Pairs:
    """Pairs, sorted by place on the second side."""
    order = np.argsort(after, kind="stable")
    return Pairs(before[order], after[order])

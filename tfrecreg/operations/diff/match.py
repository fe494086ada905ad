"""What became of every example, from the indexes alone.

Examples are told by what is in them first and by their keys second: where keys are positions, as
in MNIST's files, one that is taken away moves the keys of all that follow, and changes none.

1. the same split, key and record: unchanged
2. the same split and record: only the key is another
3. the same split and key: changed
4. the same record in another split: moved
5. the same key in another split: moved and changed
6. the rest is gone, or new
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tfrecreg.errors import UsageError
from tfrecreg.manifest import SplitEntry
from tfrecreg.operations.diff.pairing import pair
from tfrecreg.operations.diff.rows import (
    DIGEST,
    KEY,
    SPLIT,
    MissingIndexError,
    Places,
    Rows,
    arrange,
    collect,
    places_of,
    restore,
)
from tfrecreg.operations.diff.side import Side
from tfrecreg.progress import SILENT, Progress

_MOST_SPLITS = 1 << 16
"""A row has two bytes for the number of its split."""

__all__ = ["Left", "Matched", "Pairs", "in_order", "match", "split_numbers"]


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
    """The same picture in the same split, under another key and in another record. Found where the
    records themselves were looked at."""
    removed: Places = field(default_factory=lambda: np.empty(0, np.uint64))
    added: Places = field(default_factory=lambda: np.empty(0, np.uint64))
    unknown: tuple[str, ...] = ()
    """Splits of which an index is not on this machine: nothing is known of their examples."""


def match(before: Side, after: Side, progress: Progress = SILENT) -> Matched:
    """Compare the indexes of two sides.

    Holds about 42 bytes for each record of a shard that is not the same on both sides.

    Raises:
        ManifestError: an index is none.
        UsageError: there are more splits than can be told apart.
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
        left = Left(first, second)
        del first, second
        contents = [{each.name: each for each in side.manifest.splits} for side in (before, after)]
        lost = [name for name in unknown if not _same_content(name, *contents)]
        return _matched(left, tuple(sorted(lost)))


def split_numbers(before: Side, after: Side) -> dict[str, int]:
    """The splits of both sides, numbered in order of their names.

    Raises:
        UsageError: there are more than rows have numbers for.
    """
    names = {split.name for side in (before, after) for split in side.manifest.splits}
    if len(names) > _MOST_SPLITS:
        raise UsageError(
            f"`{before.name}` and `{after.name}` have {len(names)} splits, at most {_MOST_SPLITS} "
            "can be compared",
            hint="what tells records apart belongs into their keys or features, not into splits",
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


class Left:
    """The rows of both sides that have no partner yet."""

    def __init__(self, before: Rows, after: Rows) -> None:
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


def _matched(left: Left, unknown: tuple[str, ...]) -> Matched:
    left.pair(SPLIT, KEY, DIGEST)
    return Matched(
        renamed=left.pair(SPLIT, DIGEST),
        changed=left.pair(SPLIT, KEY),
        moved=left.pair(DIGEST),
        moved_changed=left.pair(KEY),
        removed=np.sort(places_of(left.before)),
        added=np.sort(places_of(left.after)),
        unknown=unknown,
    )


def in_order(before: Places, after: Places) -> Pairs:
    """Pairs in order of their place after."""
    order = np.argsort(after, kind="stable")
    return Pairs(before[order], after[order])

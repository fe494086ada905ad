"""Examples whose keys moved with them: matched by their images.

An ImageFolder names its records by paths, so an image that goes from one split to another comes
under another key, and often in another record (its file name is in it). The common part is the
bytes of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.releases.diff.compare import (
    Payloads,
    Readers,
    Reading,
    UnreadError,
    alone,
    image_digest,
    images_of,
)
from tfrecreg.builtin.releases.diff.match import (
    DIGEST,
    PLACE,
    SPLIT,
    WIDTH,
    IndexRows,
    Matched,
    Pairs,
    Places,
    Unmatched,
    split_numbers,
)
from tfrecreg.core.registry.shardset.side import Side
from tfrecreg.core.values.progress import Progress, working


class _Digests(NamedTuple):
    """The images of some records of one side."""

    found: npt.NDArray[np.bool_]
    """Shape (records,): whether a record has images."""
    digests: npt.NDArray[np.uint8]
    """Shape (records, 16): of those that have, zeros elsewhere."""
    size: int
    """Bytes of the payloads that were read."""


def follow_images(
    before: Side, after: Side, matched: Matched, reading: Reading, progress: Progress
) -> Matched:
    """Find the partners of removed and added examples by their images.

    Where a key is in two splits and the images differ, these are two examples: keys that are
    positions are in every split.
    """
    images = images_of(before, after)
    if not images or not _may_help(matched):
        return matched
    todo = len(matched.moved_changed) + len(matched.removed) + len(matched.added)
    gone, new = alone(matched.removed, after=False), alone(matched.added, after=True)
    rows = _Rows(before, after, matched)
    parted: Matched | None = None
    run = reading.run(partial(digest_images, images=images), matched.moved_changed, gone, new)
    with working(progress, "comparing images", todo), closing(run) as results:
        for group, piece, found in results:
            if group and parted is None:
                parted = _part(matched, rows.wrong)
            if found is None:
                # Without the bytes only keys can be compared.
                return parted or matched
            rows.take(piece, found, paired=group == 0)
            size = sum(each.size for each in found)
            progress.advance(max(map(len, (piece.before, piece.after))), size)
    matched = _part(matched, rows.wrong)
    left = Unmatched(rows.of(0), rows.of(1))
    renamed, moved = left.pair(SPLIT, DIGEST), left.pair(DIGEST)
    return replace(
        matched,
        renamed_changed=renamed,
        moved_changed=matched.moved_changed.and_also(moved),
        removed=_except(matched.removed, renamed.before, moved.before),
        added=_except(matched.added, renamed.after, moved.after),
    )


def _may_help(matched: Matched) -> bool:
    return bool(len(matched.moved_changed) or (len(matched.removed) and len(matched.added)))


def _part(matched: Matched, wrong: Sequence[int]) -> Matched:
    """Part the pairs of one key in two splits at these positions: their images differ."""
    pairs = matched.moved_changed
    if not wrong:
        return matched
    return replace(
        matched,
        moved_changed=pairs.without(wrong),
        removed=np.sort(np.concatenate((matched.removed, pairs.before[wrong]))),
        added=np.sort(np.concatenate((matched.added, pairs.after[wrong]))),
    )


class _Rows:
    """Rows of records without partners, whose digests are those of their images."""

    def __init__(self, before: Side, after: Side, matched: Matched) -> None:
        self.wrong: list[int] = []
        """Positions of the pairs whose images differ."""
        self._pairs = 0
        splits = split_numbers(before, after)
        self._splits = [
            np.array([splits.get(shard.split, 0) for shard in side.manifest.shards], ">u2")
            for side in (before, after)
        ]
        pairs = len(matched.moved_changed)
        # Of zeros that nothing is written to, the memory is not used.
        self._rows: list[IndexRows] = [
            np.zeros((pairs + len(places), WIDTH), np.uint8)
            for places in (matched.removed, matched.added)
        ]
        self._counts = [0, 0]

    def take(self, piece: Pairs, found: tuple[_Digests, _Digests], *, paired: bool) -> None:
        """Add records, or where they are pairs, those with different images."""
        first, second = found
        chosen = first.found, second.found
        if paired:
            both = first.found & second.found
            other = both & (first.digests != second.digests).any(axis=1)
            self.wrong += (self._pairs + np.flatnonzero(other)).tolist()
            self._pairs += len(piece)
            chosen = other, other
        for side, places in enumerate((piece.before, piece.after)):
            self._add(side, places[chosen[side]], found[side].digests[chosen[side]])

    def _add(self, side: int, places: Places, digests: npt.NDArray[np.uint8]) -> None:
        start = self._counts[side]
        self._counts[side] += len(places)
        rows = self._rows[side][start : self._counts[side]]
        shards = (places >> np.uint64(32)).astype(np.intp)
        rows[:, SPLIT] = self._splits[side][shards].view(np.uint8).reshape(-1, 2)
        rows[:, DIGEST] = digests
        rows[:, PLACE] = places.astype(">u8").view(np.uint8).reshape(-1, 8)

    def of(self, side: int) -> IndexRows:
        """The rows of a side. Records without an image have none."""
        return self._rows[side][: self._counts[side]]


def digest_images(
    readers: Readers, places: Pairs, *, images: Sequence[str]
) -> tuple[_Digests, _Digests] | None:
    """A pass: the digests of the images of both sides; None where a record cannot be read."""
    try:
        return (
            _digests(readers[0], places.before, images),
            _digests(readers[1], places.after, images),
        )
    except UnreadError:
        return None


def _digests(reader: Payloads, places: Places, images: Sequence[str]) -> _Digests:
    found = np.zeros(len(places), np.bool_)
    digests = np.zeros((len(places), 16), np.uint8)
    size = 0
    for position, place in enumerate(places.tolist()):
        read = reader.read(place)
        size += read.size
        digest = image_digest(read, images)
        if digest is not None:
            found[position] = True
            digests[position] = np.frombuffer(digest, np.uint8)
    return _Digests(found, digests, size)


def _except(places: Places, *found: Places) -> Places:
    return places[~np.isin(places, np.concatenate(found))]

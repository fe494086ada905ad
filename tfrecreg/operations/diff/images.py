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

from tfrecreg.operations.diff.compare import Payloads, UnreadError, image_digest, images_of
from tfrecreg.operations.diff.match import (
    DIGEST,
    PLACE,
    SPLIT,
    WIDTH,
    IndexRows,
    Left,
    Matched,
    Pairs,
    Places,
    split_numbers,
)
from tfrecreg.operations.diff.reading import Readers, Reading, alone
from tfrecreg.operations.diff.side import Side
from tfrecreg.progress import Progress


class _Digests(NamedTuple):
    """The images of some records of one side."""

    found: npt.NDArray[np.bool_]
    """Shape (records,): whether a record has images."""
    digests: npt.NDArray[np.uint8]
    """Shape (records, 16): of those that have, zeros elsewhere."""
    size: int
    """Bytes of the payloads that were read."""


def follow_images(
    before: Side,
    after: Side,
    matched: Matched,
    reading: Reading,
    progress: Progress,
) -> Matched:
    """Find the partners of what seems to be gone and new, by the images in them.

    Where a key is in two splits and the images differ, these are two examples: keys that are
    positions are in every split.

    Args:
        before: the first side.
        after: the second side.
        matched: what the indexes say.
        reading: of both sides.
        progress: updated while records are read.
    """
    images = images_of(before, after)
    if not images or not _may_help(matched):
        return matched
    todo = len(matched.moved_changed) + len(matched.removed) + len(matched.added)
    progress.start("comparing images", todo)
    try:
        matched = _part(matched, reading, images, progress)
        splits = split_numbers(before, after)
        gone, new = alone(matched.removed, after=False), alone(matched.added, after=True)
        first = _rows(before, gone, reading, images, splits, progress)
        second = _rows(after, new, reading, images, splits, progress)
    except UnreadError:
        return matched  # without the bytes, keys are all there is to tell by
    finally:
        progress.stop()
    left = Left(first, second)
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


def _part(
    matched: Matched,
    reading: Reading,
    images: Sequence[str],
    progress: Progress,
) -> Matched:
    """Part the pairs of one key in two splits whose images are not the same."""
    pairs = matched.moved_changed
    wrong: list[int] = []
    done = 0
    with closing(reading.run(partial(digest_images, images=images), pairs)) as results:
        for piece, result in results:
            first, second = _expected(result)
            other = first.found & second.found & (first.digests != second.digests).any(axis=1)
            wrong += (done + np.flatnonzero(other)).tolist()
            done += len(piece)
            progress.advance(len(piece), 0)
    if not wrong:
        return matched
    return replace(
        matched,
        moved_changed=pairs.without(wrong),
        removed=np.sort(np.concatenate((matched.removed, pairs.before[wrong]))),
        added=np.sort(np.concatenate((matched.added, pairs.after[wrong]))),
    )


def _rows(
    side: Side,
    places: Pairs,
    reading: Reading,
    images: Sequence[str],
    splits: dict[str, int],
    progress: Progress,
) -> IndexRows:
    """Rows of one side, whose digest is that of the images; records without an image have none."""
    rows: IndexRows = np.zeros((max(map(len, (places.before, places.after))), WIDTH), np.uint8)
    numbers = np.array([splits.get(shard.split, 0) for shard in side.manifest.shards], ">u2")
    count = 0
    with closing(reading.run(partial(digest_images, images=images), places)) as results:
        for piece, result in results:
            for which, read in zip((piece.before, piece.after), _expected(result), strict=True):
                found = which[read.found]
                block = rows[count : count + len(found)]
                shards = (found >> np.uint64(32)).astype(np.intp)
                block[:, SPLIT] = numbers[shards].view(np.uint8).reshape(-1, 2)
                block[:, DIGEST] = read.digests[read.found]
                block[:, PLACE] = found.astype(">u8").view(np.uint8).reshape(-1, 8)
                count += len(found)
                progress.advance(len(which), read.size)
    return rows[:count]


def _expected(found: tuple[_Digests, _Digests] | None) -> tuple[_Digests, _Digests]:
    if found is None:
        raise UnreadError("a record cannot be read")
    return found


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

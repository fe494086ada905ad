"""Matches examples by their images, because a move to another split may change their keys.

An ImageFolder names its records by paths, so an image that moves from one split to another gets
another key, and often another record (which contains its file name). Only the bytes of the image
stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.releases.diff.compare import (
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
    in_order,
    split_numbers,
)
from tfrecreg.core.registry.side import Side
from tfrecreg.core.values.progress import Progress, working

_Digests = npt.NDArray[np.uint8]
"""Digests of the images of records, shape (records, 16). A record without an image has zeros."""
_NONE: _Digests = np.empty((0, 16), np.uint8)


def follow_images(
    before: Side, after: Side, matched: Matched, reading: Reading, progress: Progress
) -> Matched:
    """Find the partners of removed and added examples by their images.

    Different images in two splits are two examples even if their keys are equal, because keys may
    be positions. If the bytes of a record are missing, only keys are compared.
    """
    images, pairs = images_of(before, after), matched.moved_changed
    gone, new = matched.removed, matched.added
    if not images or not (len(pairs) or (len(gone) and len(new))):
        return matched
    first, second = np.concatenate((gone, pairs.before)), np.concatenate((new, pairs.after))
    groups = alone(first, after=False), alone(second, after=True)
    parts: list[list[_Digests]] = [[], []]
    run = reading.run(partial(digest_images, images=images), *groups)
    with working(progress, "comparing images", len(first) + len(second)), closing(run) as results:
        for group, piece, found in results:
            if found is None:
                return matched
            digests, size = found
            parts[group].append(digests)
            progress.advance(len(piece), size)
    of_first, of_second = (np.concatenate([_NONE, *each]) for each in parts)
    old, theirs = of_first[len(gone) :], of_second[len(new) :]
    other = old.any(axis=1) & theirs.any(axis=1) & (old != theirs).any(axis=1)
    of_gone, of_new = (
        np.concatenate((each[:count], each[count:][other]))
        for each, count in ((of_first, len(gone)), (of_second, len(new)))
    )
    gone = np.concatenate((gone, pairs[other].before))
    new = np.concatenate((new, pairs[other].after))
    splits = split_numbers(before, after)
    left = Unmatched(_rows(before, splits, gone, of_gone), _rows(after, splits, new, of_new))
    renamed, moved = left.pair(SPLIT, DIGEST), left.pair(DIGEST)
    pairs = pairs[~other]
    return replace(
        matched,
        renamed_changed=renamed,
        moved_changed=in_order(
            np.concatenate((pairs.before, moved.before)), np.concatenate((pairs.after, moved.after))
        ),
        removed=_except(gone, renamed.before, moved.before),
        added=_except(new, renamed.after, moved.after),
    )


def _rows(side: Side, splits: dict[str, int], places: Places, digests: _Digests) -> IndexRows:
    """Rows of the records that have images. They hold digests of images instead of records."""
    has_image = digests.any(axis=1)
    places = places[has_image]
    rows = np.zeros((len(places), WIDTH), np.uint8)
    numbers = np.array([splits[shard.split] for shard in side.manifest.shards], ">u4")
    shards = (places >> np.uint64(32)).astype(np.intp)
    rows[:, SPLIT] = numbers[shards].view(np.uint8).reshape(-1, 4)
    rows[:, DIGEST] = digests[has_image]
    rows[:, PLACE] = places.astype(">u8").view(np.uint8).reshape(-1, 8)
    return rows


def digest_images(
    readers: Readers, places: Pairs, *, images: Sequence[str]
) -> tuple[_Digests, int] | None:
    """A pass over the images of one side. It returns their digests and the number of bytes that it
    read. It returns None if a record cannot be read.
    """
    digests, size = bytearray(), 0
    for reader, side in zip(readers, (places.before, places.after), strict=True):
        for place in side.tolist():
            try:
                read = reader.read(place)
            except UnreadError:
                return None
            size += read.size
            digests += image_digest(read, images) or bytes(16)
    return np.frombuffer(bytes(digests), np.uint8).reshape(-1, 16), size


def _except(places: Places, *found: Places) -> Places:
    return np.sort(places[~np.isin(places, np.concatenate(found))])

"""Examples whose keys moved with them: matched by their images.

An ImageFolder names its records by paths, so an image that goes from one split to another comes
under another key, and often in another record (its file name is in it). The common part is the
bytes of the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tfrecreg.operations.diff.compare import Payloads, UnreadError, image_digest, images_of
from tfrecreg.operations.diff.match import (
    DIGEST,
    PLACE,
    SPLIT,
    WIDTH,
    IndexRows,
    Left,
    Matched,
    Places,
    shard_of,
    split_numbers,
)
from tfrecreg.operations.diff.side import Side
from tfrecreg.progress import Progress


def follow_images(
    before: Side,
    after: Side,
    matched: Matched,
    readers: tuple[Payloads, Payloads],
    progress: Progress,
) -> Matched:
    """Find the partners of what seems to be gone and new, by the images in them.

    Where a key is in two splits and the images differ, these are two examples: keys that are
    positions are in every split.

    Args:
        before: the first side.
        after: the second side.
        matched: what the indexes say.
        readers: of both sides.
        progress: updated for each record that is read.
    """
    images = images_of(before, after)
    if not images or not _may_help(matched):
        return matched
    todo = len(matched.moved_changed) + len(matched.removed) + len(matched.added)
    progress.start("comparing images", todo)
    try:
        matched = _part(matched, readers, images, progress)
        splits = split_numbers(before, after)
        first = _rows(before, matched.removed, readers[0], images, splits, progress)
        second = _rows(after, matched.added, readers[1], images, splits, progress)
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
    readers: tuple[Payloads, Payloads],
    images: Sequence[str],
    progress: Progress,
) -> Matched:
    """Part the pairs of one key in two splits whose images are not the same."""
    pairs = matched.moved_changed
    wrong = []
    for position, places in enumerate(zip(pairs.before, pairs.after, strict=True)):
        first, second = (
            image_digest(reader.read(int(place)), images)
            for reader, place in zip(readers, places, strict=True)
        )
        if first is not None and second is not None and first != second:
            wrong.append(position)
        progress.advance(1, 0)
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
    places: Places,
    reader: Payloads,
    images: Sequence[str],
    splits: dict[str, int],
    progress: Progress,
) -> IndexRows:
    """Rows whose digest is that of the images; records without an image have none."""
    rows: IndexRows = np.zeros((len(places), WIDTH), np.uint8)
    count = 0
    for place in places.tolist():
        read = reader.read(place)
        progress.advance(1, read.size)
        digest = image_digest(read, images)
        if digest is None:
            continue
        split = splits[side.manifest.shards[shard_of(place)].split]
        rows[count, SPLIT] = np.frombuffer(split.to_bytes(2, "big"), np.uint8)
        rows[count, DIGEST] = np.frombuffer(digest, np.uint8)
        rows[count, PLACE] = np.frombuffer(place.to_bytes(8, "big"), np.uint8)
        count += 1
    return rows[:count]


def _except(places: Places, *found: Places) -> Places:
    return places[~np.isin(places, np.concatenate(found))]

"""The records of one side as rows that sort and compare fast: 42 bytes a record, no Python objects.

A row is split (2 bytes), key digest (16), record digest (16) and place (8), all big-endian, so that
rows sort as their bytes do. A place is the number of the shard in the manifest, and that of the
record in it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.index import Index
from tfrecreg.operations.diff.side import Side
from tfrecreg.progress import Progress

__all__ = [
    "DIGEST",
    "KEY",
    "SPLIT",
    "WIDTH",
    "MissingIndexError",
    "Places",
    "Rows",
    "arrange",
    "collect",
    "places_of",
    "record_of",
    "restore",
    "shard_of",
]

Rows = npt.NDArray[np.uint8]
"""Shape (records, :data:`WIDTH`), C-contiguous."""
Places = npt.NDArray[np.uint64]
"""Shape (records,): shard number times 2^32 plus record number."""

SPLIT, KEY, DIGEST, PLACE = slice(0, 2), slice(2, 18), slice(18, 34), slice(34, 42)
WIDTH = 42

_BLOCK = 1 << 16
"""So many rows are permuted at once."""


class MissingIndexError(Exception):
    """The index of a shard is not on this machine.

    Args:
        split: of the shard.
    """

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
) -> Rows:
    """The rows of a side, unsorted.

    Args:
        side: whose records.
        splits: the splits that are wanted, and their numbers.
        left_out: shards that are not wanted.
        progress: told of the records of each shard.

    Raises:
        MissingIndexError: the index of a shard is not on this machine.
        ManifestError: an index is none.
    """
    wanted = [
        (number, entry)
        for number, entry in enumerate(side.manifest.shards)
        if entry.split in splits and number not in left_out
    ]
    for number, entry in wanted:
        if not side.may_have(number):
            raise MissingIndexError(entry.split)
    rows: Rows = np.empty((sum(entry.records for _, entry in wanted), WIDTH), np.uint8)
    at = 0
    for number, entry in wanted:
        index = side.index(number)
        if index is None or len(index) != entry.records:
            raise MissingIndexError(entry.split)
        _fill(rows[at : at + len(index)], index, splits[entry.split], number)
        at += len(index)
        progress.advance(len(index), 0)
    return rows


def _fill(rows: Rows, index: Index, split: int, shard: int) -> None:
    count = len(index)
    rows[:, SPLIT] = np.frombuffer(split.to_bytes(2, "big"), np.uint8)
    rows[:, KEY] = _key_digests(index)
    rows[:, DIGEST] = index.digests
    places = np.arange(shard << 32, (shard << 32) + count, dtype=">u8")
    rows[:, PLACE] = places.view(np.uint8).reshape(count, 8)


def _key_digests(index: Index) -> npt.NDArray[np.uint8]:
    keys, start = index.key_bytes, 0
    digests = bytearray()
    for end in index.key_ends.tolist():
        digests += blake3(keys[start:end]).digest(16)
        start = end
    return np.frombuffer(digests, np.uint8).reshape(len(index), 16)


def arrange(rows: Rows, *columns: slice) -> None:
    """Move these columns to the front of every row, and sort the rows; in place."""
    _permute(rows, _order(columns))
    rows.view(f"S{WIDTH}").ravel().sort()


def restore(rows: Rows, *columns: slice) -> None:
    """Move the columns back that :func:`arrange` moved; in place."""
    _permute(rows, np.argsort(_order(columns)))


def _order(columns: tuple[slice, ...]) -> npt.NDArray[np.intp]:
    rest = [each for each in (SPLIT, KEY, DIGEST) if each not in columns]
    bytes_ = [range(each.start, each.stop) for each in (*columns, *rest, PLACE)]
    return np.array([number for each in bytes_ for number in each], np.intp)


def _permute(rows: Rows, order: npt.NDArray[np.intp]) -> None:
    for at in range(0, len(rows), _BLOCK):
        block = rows[at : at + _BLOCK]
        block[:] = block[:, order]


def places_of(rows: Rows) -> Places:
    """Where the records of these rows are."""
    last = np.ascontiguousarray(rows[:, PLACE])
    return last.view(">u8").ravel().astype(np.uint64)

"""Which rows of one side belong to which of the other: equal beginnings, one to one."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfrecreg.operations.diff.rows import WIDTH, Places, Rows, places_of

__all__ = ["Paired", "pair"]

_BLOCK = 1 << 16
"""So many rows are compared at once: it bounds what is held beside the rows."""

Names = npt.NDArray[np.bytes_]
"""The beginnings of rows. NumPy pads with NUL bytes, which changes nothing where all are of one
length."""


class Paired(NamedTuple):
    """What two sides have in common, and what is left of each."""

    before: Places
    """Shape (pairs,): the places on the first side …"""
    after: Places
    """Shape (pairs,): … and on the second."""
    left_before: Rows
    """Rows without a partner, in their order."""
    left_after: Rows


def pair(before: Rows, after: Rows, width: int) -> Paired:
    """Pair rows that begin with the same bytes; where several do, in their order.

    The rows that are left are moved to the front of where they were, so that no more memory is
    taken than for the pairs: what is given is used up.

    Args:
        before: sorted rows.
        after: sorted rows.
        width: how many bytes have to be the same.
    """
    pairs: list[tuple[Places, Places]] = []
    kept_before = kept_after = 0
    for first, second in _blocks(before, after, width):
        mine, theirs = _matches(_names(first, width), _names(second, width))
        pairs.append((places_of(first[mine]), places_of(second[theirs])))
        kept_before = _keep(before, kept_before, _without(first, mine))
        kept_after = _keep(after, kept_after, _without(second, theirs))
    return Paired(
        before=np.concatenate([each for each, _ in pairs]),
        after=np.concatenate([each for _, each in pairs]),
        left_before=_trimmed(before, kept_before),
        left_after=_trimmed(after, kept_after),
    )


def _keep(rows: Rows, at: int, left: Rows) -> int:
    rows[at : at + len(left)] = left
    return at + len(left)


def _trimmed(rows: Rows, count: int) -> Rows:
    """The first rows; where they are few, without the memory of the others."""
    return rows[:count] if 2 * count > len(rows) else rows[:count].copy()


def _blocks(before: Rows, after: Rows, width: int) -> list[tuple[Rows, Rows]]:
    """Both sides cut at the same bytes, never between two rows that could be partners."""
    larger = before if len(before) >= len(after) else after
    names = [larger[at, :width].tobytes() for at in range(_BLOCK, len(larger), _BLOCK)]
    cuts = [(_lower(before, name), _lower(after, name)) for name in dict.fromkeys(names)]
    bounds = [(0, 0), *cuts, (len(before), len(after))]
    return [
        (before[start[0] : end[0]], after[start[1] : end[1]]) for start, end in pairwise(bounds)
    ]


def _lower(rows: Rows, cut: bytes) -> int:
    """The number of rows that sort before every row that begins with `cut`."""
    whole = rows.view(f"S{WIDTH}").ravel()
    return int(np.searchsorted(whole, np.array([cut], f"S{WIDTH}"))[0])


def _names(rows: Rows, width: int) -> Names:
    return np.ascontiguousarray(rows[:, :width]).view(f"S{width}").ravel()


def _matches(before: Names, after: Names) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The positions of partners: the n-th of a name belongs to the n-th of that name."""
    positions = np.arange(len(before))
    number = positions - np.searchsorted(before, before, "left")
    start = np.searchsorted(after, before, "left")
    count = np.searchsorted(after, before, "right") - start
    mine = np.flatnonzero(number < count)
    return mine, (start + number)[mine]


def _without(rows: Rows, positions: npt.NDArray[np.intp]) -> Rows:
    kept = np.ones(len(rows), np.bool_)
    kept[positions] = False
    return rows[kept]

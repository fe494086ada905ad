"""Splits that have each class in the same shares, to within one record.

The classes are known before the plan. An item with objects of several classes counts for the one
that fewest items have. Of a class with `n` records,
those up to rank `floor(n * c + u)` by a keyed hash are in the splits up to the one whose cumulative
share is `c`. So a split with the share `s` has `n * s` of them, rounded down or up. `u`, from 0 to
1, is a hash of the class: it rounds up some classes and down others, so that a split has its share
of many small classes, too. The records of a class depend on no other class.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from tfrecreg.core.build.sources.deal import Deal, DealOptions
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.build.sources.splitter import Splitter, parse_shares

_RANK = b"tfrecreg derived stratum rank v1\0"
_ROUNDING = b"tfrecreg derived stratum rounding v1\0"
_HASHES = 1 << 64

ListedEntry = Item | Skipped | Remark


ItemClass = str | tuple[str, ...] | None
"""The class of an item, or the classes of its objects; None without any."""
ClassListing = Callable[[], Iterable[tuple[ListedEntry, ItemClass]]]
"""What is listed, and the class of an item; the same each time."""


class _Dealt(Splitter):
    """Knows the splits of the items, in their order."""

    def __init__(self, options: DealOptions, splits: Iterable[str]) -> None:
        super().__init__(options.split)
        self._splits = iter(splits)

    def split(self, path: str, below: str) -> str:
        del path, below
        return next(self._splits)


def deal_strata(
    options: DealOptions,
    listing: ClassListing,
    plain: Callable[[], Iterable[ListedEntry]] | None = None,
) -> Iterator[ListedEntry]:
    """Deal the items of one split to several, class by class.

    They are listed twice: first for their classes and ranks, of which 22 bytes are kept an item,
    then without their classes by `plain`, if that is quicker.
    """
    names = list(parse_shares(options.split))
    splits = (names[place] for place in _places(options, listing()).tolist())
    entries = (entry for entry, _ in listing()) if plain is None else plain()
    yield from Deal(options, _Dealt(options, splits)).listed(entries)


def stratified(
    split: Sequence[str],
    entries: Iterable[ListedEntry],
    class_of: Callable[[Item], str | None],
) -> Iterator[ListedEntry]:
    """Deal the items of the split `train` by shares as the option `split` has them."""
    listed = list(entries)
    return deal_strata(
        DealOptions(tuple(split)),
        lambda: ((each, class_of(each) if isinstance(each, Item) else None) for each in listed),
    )


def _places(
    options: DealOptions, entries: Iterable[tuple[ListedEntry, ItemClass]]
) -> npt.NDArray[np.uint16]:
    """Which of the shares each item has, in the order of the list."""
    found: dict[ItemClass, int] = {}
    ranks, listed = array("Q"), array("i")
    for entry, stratum in entries:
        if isinstance(entry, Item) and entry.split == options.split_of:
            ranks.append(_hash(_RANK, entry.key))
            listed.append(found.setdefault(stratum, len(found)))
    places = np.empty(len(ranks), np.uint16)
    if not ranks:
        return places
    known, strata = _rarest(list(found), np.asarray(listed))
    # By class, then by rank; of equal ranks, the first that is listed.
    order = np.lexsort((np.asarray(ranks), strata))
    ends = np.cumsum(np.bincount(strata))
    shares = parse_shares(options.split)
    for stratum, rows in zip(known, np.split(order, ends[:-1]), strict=True):
        for place, (start, end) in enumerate(_bounds(shares, len(rows), stratum).values()):
            places[rows[start:end]] = place
    return places


def _rarest(
    found: Sequence[ItemClass], listed: npt.NDArray[np.int32]
) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The classes, and which of them each item has: of several, the one that fewest items have."""
    counts: Counter[str] = Counter()
    several = [each if isinstance(each, tuple) else () for each in found]
    for classes, times in zip(several, np.bincount(listed).tolist(), strict=True):
        counts.update(dict.fromkeys(classes, times))
    rarest = [
        min(each, key=lambda name: (counts[name], name), default=None)
        if isinstance(each, tuple)
        else each
        for each in found
    ]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(rarest))}
    return list(numbers), np.array([numbers[each] for each in rarest])[listed]


def _bounds(
    shares: Mapping[str, Fraction], count: int, stratum: str | None
) -> dict[str, tuple[int, int]]:
    """The ranks of the records of a class that each split has."""
    rounding = Fraction(_hash(_ROUNDING, "" if stratum is None else f"={stratum}"), _HASHES)
    total = sum(shares.values())
    reached = accumulate(shares.values())
    ends = [math.floor(count * each / total + rounding) for each in reached]
    return dict(zip(shares, pairwise([0, *ends]), strict=True))


def _hash(domain: bytes, text: str) -> int:
    """A number below 2^64."""
    name = text.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(domain + name).digest()[:8], "big")

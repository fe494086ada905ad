"""Splits that have each class in the same shares, to within one record.

The classes of records are known from their catalogs, before the plan. Of a class with `n` records,
those up to rank `floor(n * c + u)` by a keyed hash are in the splits up to the one whose cumulative
share is `c`. So a split with the share `s` has `n * s` of them, rounded down or up. `u`, from 0 to
1, is a hash of the class: it rounds up some classes and down others, so that a split has its share
of many small classes, too. The records of a class depend on no other class.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import accumulate, pairwise

from tfrecreg.sources.deal import Deal, DealOptions
from tfrecreg.sources.interface import Item, Remark, Skipped
from tfrecreg.sources.splitter import Splitter, parse_shares

_RANK = b"tfrecreg derived stratum rank v1\0"
_ROUNDING = b"tfrecreg derived stratum rounding v1\0"
_HASHES = 1 << 64

ListedEntry = Item | Skipped | Remark


class _Dealt(Splitter):
    """Knows the split of each item."""

    def __init__(self, options: DealOptions, splits: Mapping[str, str]) -> None:
        super().__init__(options.split)
        self._splits = splits

    def split(self, path: str, below: str) -> str:
        del below
        return self._splits[path]


def deal_strata(
    options: DealOptions, entries: Iterable[tuple[ListedEntry, str | None]]
) -> Iterator[ListedEntry]:
    """Deal the items of one split to several, class by class.

    All items are in memory, as they are in a plan.

    Args:
        options: with shares, and without a group.
        entries: what is listed, and the class of an item. None is a class, too.

    Raises:
        RawDataError, UsageError: as :meth:`tfrecreg.sources.deal.Deal.listed`.
    """
    listed: list[ListedEntry] = []
    strata: dict[str | None, list[str]] = {}
    for entry, stratum in entries:
        listed.append(entry)
        if isinstance(entry, Item) and entry.split == options.split_of:
            strata.setdefault(stratum, []).append(entry.key)
    splits: dict[str, str] = {}
    for stratum, keys in strata.items():
        keys.sort(key=lambda key: (_hash(_RANK, key), key))
        bounds = _bounds(parse_shares(options.split), len(keys), stratum)
        for name, (start, end) in bounds.items():
            splits.update(dict.fromkeys(keys[start:end], name))
    yield from Deal(options, _Dealt(options, splits)).listed(listed)


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

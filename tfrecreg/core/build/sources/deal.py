"""Deals items to the splits that the user wants, instead of the splits of the source.

Every source has the options of :class:`DealOptions`, unless one of its own options has the same
name. A keyed hash of an item's group decides its split, so adding items does not move other items.

With `stratify`, each split gets its share of every class, to within one record. So the classes are
read before the plan is made. An item with objects of several classes counts as an item of its
rarest class. The `n` records of a class are ranked by a keyed hash. If the shares of the first
splits add up to `c`, these splits get the records up to the rank `floor(n * c + u)`. So a split
with the share `s` has `n * s` records, rounded down or up. `u` is a hash of the class, from 0 to 1.
It rounds some classes up and others down, so a split gets its share even if all classes are small.
The records of one class do not depend on other classes.
"""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.shards import is_split_name, normal_splits
from tfrecreg.core.values.text import listed, safe

if TYPE_CHECKING:
    from fractions import Fraction

    import numpy as np
    import numpy.typing as npt

DEFAULT_SPLIT = "train"

_DOMAIN = b"tfrecreg imagefolder shares v1\0"  # named after the source that had it first
_HASHES = 1 << 64
BY_HASHES = (
    "`split` deals items by hashes of their keys, so shares are approximate, and adding items does "
    "not move other items; `stratify=yes` keeps the shares of each class"
)


def parse_shares(texts: Sequence[str]) -> dict[str, Fraction]:
    """The shares by split, in the order given. `0.8` and `0.2` mean the same as `80` and `20`."""
    from fractions import Fraction  # few builds deal items

    shares: dict[str, Fraction] = {}
    for text in texts:
        name, _, number = text.partition("=")
        name = name.strip()
        try:
            share = Fraction(number.strip()) if len(number) <= 40 else Fraction(0)
        except (ValueError, ZeroDivisionError):
            share = Fraction(0)
        if not is_split_name(name) or not 0 < share < 1 << 64:
            raise UsageError(
                f"the option `split` has `{text[:60]}`: expected a name, `=` and a share above 0, "
                "such as `train=0.8` or `test=1/5`"
            )
        name = normal_splits([name])[name]
        if name in shares:
            raise UsageError(f"the option `split` names the split `{name}` twice")
        shares[name] = share
    if len(shares) < 2:
        raise UsageError(f"the option `split` is `{','.join(texts)}`: expected at least two splits")
    return shares


ListedEntry = Item | Skipped | Remark


@dataclass(frozen=True)
class DealOptions:
    """Options that every source has in addition to its own."""

    split: tuple[str, ...] = ()
    """Distribute the items of one split among several splits, in these shares:
    `train=0.9,validation=0.1`. Default: the splits of the source."""
    split_of: str = DEFAULT_SPLIT
    """With `split`: the split whose items are distributed. Other splits of the source do not
    change."""
    group: str | None = None
    """With `split`: a regular expression that matches a part of an item's key. Items with the same
    text in its first group stay in one split: `(patient[0-9]+)_`."""
    stratify: bool = False
    """With `split`: each split has its share of the items of every class, to within one item. An
    image with objects counts for its rarest class."""

    def __post_init__(self) -> None:
        if self.split:
            parse_shares(self.split)
        elif (self.split_of, self.group, self.stratify) != (DEFAULT_SPLIT, None, False):
            raise UsageError(
                "the options `split_of`, `group` and `stratify` need `split`",
                hint="--option split=train=0.9,validation=0.1",
            )
        if self.stratify and self.group is not None:
            raise UsageError("the options `stratify` and `group` exclude each other")
        try:
            if not re.compile(self.group or "()").groups:
                raise ValueError("it has no group in parentheses")
        except (re.error, RecursionError, OverflowError, ValueError) as error:
            raise UsageError(
                f"the option `group` is not a regular expression with a group: {error}"
            ) from None
        if not is_split_name(self.split_of):
            shown = safe(self.split_of, limit=60)
            raise UsageError(f"the option `split_of` is `{shown}`, not the name of a split")


DEAL_OPTIONS = frozenset(each.name for each in fields(DealOptions))


def shared_options(own: type[Any]) -> frozenset[str]:
    """The names in :class:`DealOptions`; none if `own` has an option with one of these names."""
    taken = not DEAL_OPTIONS.isdisjoint(each.name for each in fields(own))
    return frozenset() if taken else DEAL_OPTIONS


@dataclass(frozen=True, slots=True)
class SourceOptions:
    own: Any
    deal: DealOptions


class Deal:
    """Distributes the items of one split among several splits. Picklable.

    Each split gets its share of all hashes, so its size is approximate, and adding groups moves no
    other groups. If a share changes, groups move only between neighbouring splits.
    """

    def __init__(self, options: DealOptions) -> None:
        self.options = options
        self._of = options.split_of
        self._pattern = None if options.group is None else re.compile(options.group)
        shares = parse_shares(options.split)
        self._names = list(shares)
        total = sum(shares.values())
        self._bounds = [int(each / total * _HASHES) for each in accumulate(shares.values())]

    def listed(
        self,
        entries: Iterable[ListedEntry],
        splits: Iterator[str] | None = None,
        grouped: Callable[[str], str] = str,
    ) -> Iterator[ListedEntry]:
        """The entries of a source in their new splits. An item gets the next split of `splits`;
        without `splits`, a hash decides. `grouped` returns the part of a key that `group` searches.
        """
        others: set[str] = set()
        filled: set[str] = set()
        for entry in entries:
            if entry.split != self._of:
                if entry.split in self._names:
                    raise UsageError(
                        f"`split` distributes `{self._of}` among {listed(self._names)}, but the "
                        f"source has a split `{entry.split}` of its own",
                        hint="`--option split_of=NAME` distributes the items of another split",
                    )
                others.add(entry.split)
                yield entry
            elif isinstance(entry, Item):
                group = entry.key
                if self._pattern is not None:
                    match = self._pattern.search(grouped(group))
                    if match is None or match[1] is None:
                        raise RawDataError(
                            f"`group` finds nothing in `{entry.key}`: every item needs a group"
                        )
                    group = match[1]
                split = self.split_of_group(group) if splits is None else next(splits)
                filled.add(split)
                yield entry._replace(split=split)
            else:
                yield entry._replace(split=self.split_of_group(entry.key))
        if not filled:
            there = f"its splits are {listed(sorted(others))}" if others else "it has no items"
            raise RawDataError(
                f"`split` needs items of the split `{self._of}`, but the source has no such items: "
                f"{there}",
                hint=f"`--option split_of={others.pop() if len(others) == 1 else 'NAME'}` "
                "distributes the items of another split",
            )
        if missing := {*self._names} - filled:
            raise RawDataError(
                f"the split `{min(missing)}` got no item: there are too few items, or groups of "
                "items, for its share"
            )

    def split_of_group(self, group: str) -> str:
        """The split of a group. For an entry that is not an item, the group is its key."""
        return self._names[bisect_right(self._bounds, key_hash(_DOMAIN, group))]

    def source_split(self, split: str) -> str:
        """The original split of an item whose new split is `split`."""
        return self._of if split in self._names else split


_RANK = b"tfrecreg derived stratum rank v1\0"
_ROUNDING = b"tfrecreg derived stratum rounding v1\0"

ItemClass = str | tuple[str, ...] | None
"""The class of an item, or the classes of its objects; None if it has no class."""


def deal_strata(
    options: DealOptions,
    classes: Iterable[tuple[ListedEntry, ItemClass]],
    entries: Iterable[ListedEntry],
) -> Iterator[ListedEntry]:
    """Deal the items of one split to several splits, class by class. First, `classes` is read: the
    same entries, each with the class of its item.
    """
    names = list(parse_shares(options.split))
    splits = (names[place] for place in _places(options, classes).tolist())
    yield from Deal(options).listed(entries, splits)


def _places(
    options: DealOptions, entries: Iterable[tuple[ListedEntry, ItemClass]]
) -> npt.NDArray[np.uint16]:
    """For each item, in listed order, the number of its new split: 0 for the first share."""
    from fractions import Fraction

    import numpy as np  # most builds have no strata

    found: dict[ItemClass, int] = {}
    ranks, listed = array("Q"), array("i")
    for entry, stratum in entries:
        if isinstance(entry, Item) and entry.split == options.split_of:
            ranks.append(key_hash(_RANK, entry.key))
            listed.append(found.setdefault(stratum, len(found)))
    places = np.empty(len(ranks), np.uint16)
    if not ranks:
        return places
    known, strata = _rarest(list(found), np.asarray(listed))
    # By class, then by rank; items of equal rank in listed order.
    order = np.lexsort((np.asarray(ranks), strata))
    ends = np.cumsum(np.bincount(strata))
    reached = [*accumulate(parse_shares(options.split).values())]
    for stratum, rows in zip(known, np.split(order, ends[:-1]), strict=True):
        name = "" if stratum is None else f"={stratum}"
        rounding = Fraction(key_hash(_ROUNDING, name), _HASHES)
        bounds = (math.floor(len(rows) * each / reached[-1] + rounding) for each in reached)
        for place, (start, end) in enumerate(pairwise([0, *bounds])):
            places[rows[start:end]] = place
    return places


def _rarest(
    found: Sequence[ItemClass], listed: npt.NDArray[np.int32]
) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The classes, and the class of each item. If an item has several, its rarest class counts."""
    import numpy as np

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


def key_hash(domain: bytes, text: str) -> int:
    """A hash below 2^64. It depends only on `domain` and `text`, not on other keys."""
    name = text.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(domain + name).digest()[:8], "big")

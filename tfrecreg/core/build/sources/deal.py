"""Splits that a build asks for, in place of those of its source: the plan splits, not the plugin.

Every source has the options of :class:`DealOptions`, unless its own have one of these names.

Splits that have each class in the same shares, to within one record.

The classes are known before the plan. An item with objects of several classes counts for the one
that fewest items have. Of a class with `n` records,
those up to rank `floor(n * c + u)` by a keyed hash are in the splits up to the one whose cumulative
share is `c`. So a split with the share `s` has `n * s` of them, rounded down or up. `u`, from 0 to
1, is a hash of the class: it rounds up some classes and down others, so that a split has its share
of many small classes as well. The records of a class depend on no other class.

Splits by fractions: which split an item is dealt to, the same on every machine.

A keyed hash of an item's group decides, so nothing moves where items are added.
"""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
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

_DOMAIN = b"tfrecreg imagefolder shares v1\0"  # it was a part of that source at first
_HASHES = 1 << 64
BY_HASHES = (
    "`split` deals items by hashes of their keys, so that shares are approximate and added items "
    "move no others; `stratify=yes` keeps the shares of each class"
)
_GROUP_EXAMPLE = "--option 'group=^(patient[0-9]+)_'"


class Splitter:
    """Deals items to splits by fractions, or gives all of them to one split.

    The share of a split is that part of all possible hashes, so with more groups the sizes come
    closer to it. Adding groups moves none; changing a share moves only what has to move from its
    neighbours in the order given.

    Args:
        shares: each ``NAME=SHARE``. Shares are decimal numbers or fractions above 0, and only their
            proportions count: ``0.8``, ``80`` and ``4/5`` beside ``0.2``, ``20`` and ``1/5``. Empty
            for one split.
        group: a regular expression; items with the same text in its first group stay together.
            Without it each item is a group of its own.
        default: the split without shares.

    Raises:
        UsageError: a share has another form, a name occurs twice, there is only one share, or the
            group is not a regular expression with a group.
    """

    def __init__(
        self, shares: Sequence[str], group: str | None = None, default: str = DEFAULT_SPLIT
    ) -> None:
        self._default = default
        self._bounds: list[tuple[int, str]] = []  # where the hashes of each split end
        self._pattern: re.Pattern[str] | None = None
        if shares:
            found = parse_shares(shares)
            total = sum(found.values())
            reached: Fraction | int = 0
            for name, share in found.items():
                reached += share
                self._bounds.append((int(reached / total * _HASHES), name))
        if group is not None:
            self._pattern = _parse_group(group, shares)

    @property
    def names(self) -> list[str]:
        """The splits, in the order given."""
        return [name for _, name in self._bounds] or [self._default]

    def split(self, path: str, below: str) -> str:
        """The split of an item.

        Args:
            below: the part of the path that the expression for groups is searched in.

        Raises:
            RawDataError: there is such an expression, and it finds no group.
        """
        if self._pattern is None:
            return self.split_of_group(path)
        match = self._pattern.search(below)
        if match is None or match[1] is None:
            raise RawDataError(
                f"`group` finds nothing in `{safe(path)}`: every item needs a group, or it "
                "could land in another split than those it belongs to",
                hint="widen the pattern, or take the file out of the raw folder",
            )
        return self.split_of_group(match[1])

    def split_of_group(self, group: str) -> str:
        """The split of a group, and of the path of a skipped item."""
        if not self._bounds:
            return self._default
        name = group.encode("utf-8", "surrogateescape")
        place = int.from_bytes(hashlib.sha256(_DOMAIN + name).digest()[:8], "big")
        return next(name for bound, name in self._bounds if place < bound)

    def require_all(self, entries: Iterable[Item | Skipped]) -> None:
        """Refuse shares so small that a split got nothing.

        Raises:
            RawDataError: a split of the shares has no item among `entries`.
        """
        self.require_filled({entry.split for entry in entries if isinstance(entry, Item)})

    def require_filled(self, splits: Set[str]) -> None:
        """As :meth:`require_all`, for the splits that have items."""
        missing = {name for _, name in self._bounds} - splits
        if missing:
            raise RawDataError(
                f"the split `{safe(min(missing))}` got no item: there are too few of them, or of "
                "their groups, for its share",
                hint="make its share larger, or leave it out",
            )


def parse_shares(texts: Sequence[str]) -> dict[str, Fraction]:
    """The shares by split, in the order given; :class:`Splitter` has their form and its errors."""
    from fractions import Fraction  # few builds deal items

    shares: dict[str, Fraction] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        name = name.strip()
        if not equals or not is_split_name(name):
            raise _bad_share(text, "expected a name, `=` and a number")
        try:
            share = Fraction(number.strip()) if len(number) <= 40 else Fraction(0)
        except (ValueError, ZeroDivisionError):
            share = Fraction(0)
        if not 0 < share < 1 << 64:
            raise _bad_share(text, "expected a share above 0, as `0.8` or `4/5`")
        name = normal_splits([name])[name]
        if name in shares:
            raise _bad_share(text, f"the split `{safe(name)}` is named twice")
        shares[name] = share
    if len(shares) < 2:
        raise _bad_share(",".join(texts), "expected at least two splits")
    return shares


def _bad_share(text: str, reason: str) -> UsageError:
    return UsageError(
        f"the option `split` has `{safe(text, limit=60)}`: {reason}",
        hint="--option split=train=0.8,validation=0.1,test=0.1",
    )


def _parse_group(group: str, shares: Sequence[str]) -> re.Pattern[str]:
    if not shares:
        raise UsageError(
            "the option `group` needs `split`: it says which items stay together when items are "
            "dealt to splits",
            hint="--option split=train=0.9,test=0.1",
        )
    try:
        pattern = re.compile(group)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(
            f"the option `group` is not a regular expression: {safe(str(error))}",
            hint=_GROUP_EXAMPLE,
        ) from error
    if not pattern.groups:
        raise UsageError(
            f"the option `group` has no group in parentheses: `{safe(group, limit=60)}`",
            hint=_GROUP_EXAMPLE,
        )
    return pattern


_Entry = Item | Skipped | Remark


@dataclass(frozen=True)
class DealOptions:
    """Options of all sources, beside their own."""

    split: tuple[str, ...] = ()
    """Deal the items of one split to several, by shares: `train=0.9,validation=0.1`. Default: the
    splits of the source."""
    split_of: str = DEFAULT_SPLIT
    """With `split`: the split whose items are dealt. Other splits of the source do not change."""
    group: str | None = None
    """With `split`: a regular expression, searched in the keys of items. Items with the same text
    in its first group stay in one split: `(patient[0-9]+)_`."""
    stratify: bool = False
    """With `split`: each split has its share of the items of every class, to within one item. An
    image with objects counts for its rarest class."""

    def __post_init__(self) -> None:
        Splitter(self.split, self.group)  # which checks both
        check_stratify(self.stratify, self.split, self.group)
        if not is_split_name(self.split_of):
            raise UsageError(
                f"the option `split_of` is `{safe(self.split_of, limit=60)}`, expected the name of "
                "a split",
                hint="--option split_of=train",
            )
        if self.split_of != DEFAULT_SPLIT and not self.split:
            raise UsageError(
                "the option `split_of` needs `split`: it names the split whose items are dealt",
                hint="--option split=test=0.5,validation=0.5",
            )


def check_stratify(stratify: object, split: Sequence[str], group: str | None) -> None:
    """Refuse the option `stratify` without `split`, or beside `group`."""
    if stratify and not split:
        raise UsageError(
            "the option `stratify` needs `split`: it says of what each split has its share",
            hint="--option split=train=0.9,validation=0.1",
        )
    if stratify and group is not None:
        raise UsageError(
            "the options `stratify` and `group` exclude each other: groups that stay together "
            "cannot be dealt to the item",
            hint="leave out one of them",
        )


DEAL_OPTIONS = frozenset(each.name for each in fields(DealOptions))


def shared_options(own: type[Any]) -> frozenset[str]:
    """The names of :class:`DealOptions`; empty if a source has one of them among its own."""
    taken = not DEAL_OPTIONS.isdisjoint(each.name for each in fields(own))
    return frozenset() if taken else DEAL_OPTIONS


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """All options of a source."""

    own: Any
    """An object of its `Options`."""
    deal: DealOptions


class Deal:
    """Deals the items of one split to several, by `splitter` if there is one. Picklable."""

    def __init__(self, options: DealOptions, splitter: Splitter | None = None) -> None:
        self.options = options
        self._of = options.split_of
        self._splitter = splitter or Splitter(options.split, options.group)
        self._names = frozenset(self._splitter.names)

    def listed(self, entries: Iterable[_Entry]) -> Iterator[_Entry]:
        """What a source lists, with the splits that it is dealt to."""
        others: set[str] = set()
        filled: set[str] = set()
        for entry in entries:
            if entry.split != self._of:
                others.add(entry.split)
                self._expect_apart(entry.split)
                yield entry
            elif isinstance(entry, Item):
                split = self._splitter.split(entry.key, entry.key)
                filled.add(split)
                yield entry._replace(split=split)
            else:
                yield entry._replace(split=self._splitter.split_of_group(entry.key))
        if not filled:
            there = f"it has {listed(sorted(others))}" if others else "it has no items"
            raise RawDataError(
                f"the source has no item in the split `{self._of}`, which `split` deals: {there}",
                hint=f"--option split_of={others.pop() if len(others) == 1 else 'NAME'} names the "
                "split to deal",
            )
        self._splitter.require_filled(filled)

    def source_split(self, split: str) -> str:
        """The source's split of an item that is in `split` now."""
        return self._of if split in self._names else split

    def _expect_apart(self, split: str) -> None:
        if split in self._names:
            raise UsageError(
                f"`split` deals `{self._of}` to {listed(self._splitter.names)}, and the source has "
                f"a split `{split}` of its own",
                hint="give the new split another name, or deal another one: --option split_of=NAME",
            )


_RANK = b"tfrecreg derived stratum rank v1\0"
_ROUNDING = b"tfrecreg derived stratum rounding v1\0"
_STRATA_HASHES = 1 << 64

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
    import numpy as np  # most builds have no strata

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


def _bounds(
    shares: Mapping[str, Fraction], count: int, stratum: str | None
) -> dict[str, tuple[int, int]]:
    """The ranks of the records of a class that each split has."""
    from fractions import Fraction

    rounding = Fraction(_hash(_ROUNDING, "" if stratum is None else f"={stratum}"), _STRATA_HASHES)
    total = sum(shares.values())
    reached = accumulate(shares.values())
    ends = [math.floor(count * each / total + rounding) for each in reached]
    return dict(zip(shares, pairwise([0, *ends]), strict=True))


def _hash(domain: bytes, text: str) -> int:
    """A number below 2^64."""
    name = text.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(domain + name).digest()[:8], "big")

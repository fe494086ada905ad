"""Splits by fractions: which split an item is dealt to, the same on every machine.

A keyed hash of an item's group decides, so nothing moves where items are added.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence, Set
from typing import TYPE_CHECKING

from tfrecreg.core.build.sources.interface import Item, Skipped
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.shards import is_split_name, normal_splits
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from fractions import Fraction

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

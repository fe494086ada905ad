"""Splits that a build asks for, in place of those of its source: the plan splits, not the plugin.

Every source has the options of :class:`DealOptions`, unless its own have one of these names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.build.sources.splitter import DEFAULT_SPLIT, Splitter
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.shards import is_split_name
from tfrecreg.core.values.suggest import listed
from tfrecreg.core.values.text import safe

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

"""The plan of a build: the shard of each item. Made before any work starts.

The order of the records is that of a keyed hash of (split, key): a global shuffle that anyone can
reproduce, and that neither the machine, the workers, the locale nor the order of a folder can
change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from blake3 import blake3

from tfrecreg.core.build.planning.base import Base, BaseShard, ShardItems, deal_from
from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.registry.manifest.model import INDEX_FOLDER
from tfrecreg.core.values.errors import PluginError, UsageError
from tfrecreg.core.values.shards import ShardPolicy, bounds, is_split_name, shard_count, shard_name
from tfrecreg.core.values.text import DOCS, safe

if TYPE_CHECKING:
    from tfrecreg.core.build.planning.item_store import ItemStore
    from tfrecreg.core.build.sources.guarded import GuardedSource

SEGMENT_BYTES = 2 << 20
"""Small enough for all cores to end at about the same time, large enough to be worth a task."""

_LEAST_ITEM = 256
"""Minimum weight of an item in bytes: small items take time, too."""


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """One shard to make."""

    split: str
    number: int
    path: str
    """Its file name in the build's folder."""
    index: str
    """The path of its index in the build's folder."""
    items: Sequence[Item]
    """Items in the order of the records; slices of them are tuples."""
    base: BaseShard | None = None
    """The shard of the base that it is, if no record of these items changed."""
    lost_items: bool = False
    """It is a shard of the base that has lost items."""
    size: int | None = None
    """Estimated size of the items in bytes; None if only the size of each item is known."""

    def segments(self) -> Iterator[tuple[Item, ...]]:
        """The items in stretches of about :data:`SEGMENT_BYTES`, which can be made apart.

        They depend on the plan alone: a gzip member ends where a segment ends.
        """
        weight = sum(max(item.size, _LEAST_ITEM) for item in self.items)
        count = max(1, min(-(-weight // SEGMENT_BYTES), len(self.items)))
        for start, stop in bounds(len(self.items), count):
            yield tuple(self.items[start:stop])


@dataclass(frozen=True, slots=True)
class Plan:
    """All shards to make, and the items that the source skipped while it listed them."""

    dataset: str
    shards: tuple[PlannedShard, ...]
    """Shards in order of split and number."""
    skipped: tuple[Skipped, ...]
    """Skipped items in order of split and key."""
    digest: str
    """Hex. Equal plans make equal bytes: the journal of a killed build is found by it."""
    remarks: tuple[Remark, ...] = ()
    """Remarks of the source from listing, in order of split and key."""
    base: Base | None = None
    """The release that it grows from."""

    @property
    def items(self) -> int:
        """Items that get an example, if nothing is wrong with them."""
        return sum(len(shard.items) for shard in self.shards)

    def splits(self) -> dict[str, int]:
        """Items a split, in order of its name."""
        counts: dict[str, int] = {}
        for shard in self.shards:
            counts[shard.split] = counts.get(shard.split, 0) + len(shard.items)
        return counts


def make_plan(
    dataset: str,
    listed: Iterable[Item | Skipped | Remark],
    policy: ShardPolicy,
    salt: Mapping[str, str],
    base: Base | None = None,
    *,
    source: GuardedSource | None = None,
) -> Plan:
    """Order the items and deal them to shards."""
    from tfrecreg.core.build.planning.item_store import ItemStore  # NumPy, which parts do not need

    who = str(source.plugin_id) if source is not None else "the source"
    splits: dict[str, ItemStore] = {}
    skipped: list[Skipped] = []
    remarks: list[Remark] = []
    for entry in listed:
        if isinstance(entry, Skipped):
            skipped.append(entry)
            continue
        if isinstance(entry, Remark):
            remarks.append(entry)
            continue
        store = splits.get(entry.split)
        if store is None:
            if not is_split_name(entry.split):
                raise PluginError(
                    f"{who} lists the split `{safe(entry.split)}`",
                    hint="this is an error in the plugin: a split is letters, digits and "
                    "underscores",
                )
            store = splits[entry.split] = ItemStore(entry.split)
        store.add(entry)
    if not splits and not skipped:
        raise UsageError(
            "the source found no items in the raw data",
            hint=f"check that this is the right folder; {DOCS}/sources has the supported layouts",
        )
    shards: list[PlannedShard] = []
    for split in sorted(splits):
        store = splits.pop(split)
        twice = store.sort()
        if twice is not None:
            place = source.place("items") if source is not None else ""
            raise PluginError(
                f"{who} lists `{safe(twice.key)}` twice in the split `{split}`{place}",
                hint="this is an error in the plugin: keys are unique in a split",
            )
        shards.extend(_shards(dataset, split, _deal(store, policy, base)))
    skipped.sort(key=lambda each: (each.split, each.key))
    remarks.sort()
    parent = base.manifest.digest if base is not None else None
    digest = _plan_digest(salt, parent, shards, (*skipped, *remarks))
    return Plan(dataset, tuple(shards), tuple(skipped), digest, tuple(remarks), base)


def _plan_digest(
    salt: Mapping[str, str],
    base: str | None,
    shards: Iterable[PlannedShard],
    rest: Iterable[Skipped | Remark],
) -> str:
    """The digest of a plan, as hex."""
    hasher = blake3(b"tfrecreg plan v1\n")
    for name, value in sorted(salt.items()):
        hasher.update(f"{name}={value}\n".encode("utf-8", "surrogateescape"))
    if base is not None:
        hasher.update(f"base={base}\n".encode())
    for shard in shards:
        hasher.update(f"{shard.path} {len(shard.items)}\n".encode())
        for items in shard.segments():
            told = (
                repr((item.key, item.size)).encode("utf-8", "backslashreplace") + item.state
                for item in items
            )
            hasher.update(b"".join(told))
    for each in rest:
        hasher.update(f"{tuple(each)!r}\n".encode("utf-8", "backslashreplace"))
    return hasher.hexdigest()


def _deal(store: ItemStore, policy: ShardPolicy, base: Base | None) -> Iterator[ShardItems]:
    import numpy as np

    added = np.arange(len(store))
    if base is not None:
        kept, added = deal_from(base, store)
        yield from kept
        if kept:
            policy = _of_growth(policy, base.of_split(store.split))
    if added.size:
        count = shard_count(policy, len(added), int(store.sizes(added).sum()))
        for start, stop in bounds(len(added), count):
            yield ShardItems(store.pick(added[start:stop]))


def _of_growth(policy: ShardPolicy, shards: list[BaseShard]) -> ShardPolicy:
    """A requested number of shards applies to added shards through their size."""
    if policy.shards is None and policy.hosts is None:
        return policy
    size = sum(shard.entry.payload_bytes for shard in shards) // len(shards)
    return ShardPolicy(shard_size=max(1, size))


def _shards(dataset: str, split: str, dealt: Iterable[ShardItems]) -> Iterator[PlannedShard]:
    every = list(dealt)
    for number, each in enumerate(every):
        path = shard_name(dataset, split, number, len(every))
        index = f"{INDEX_FOLDER}/{path}.index"
        yield PlannedShard(split, number, path, index, each.items, each.base, each.lost_items)

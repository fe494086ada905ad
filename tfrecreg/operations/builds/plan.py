"""The plan of a build: which item goes to which shard. Made before any work starts.

The order of the records is that of a keyed hash of (split, key): a global shuffle that anyone can
reproduce, and that neither the machine, the workers, the locale nor the order of a folder can
change.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from blake3 import blake3

from tfrecreg.errors import PluginError, UsageError
from tfrecreg.shards import ShardPolicy, bounds, shard_count, shard_name
from tfrecreg.sources import Item, Remark, Skipped
from tfrecreg.text import safe

__all__ = ["INDEX_FOLDER", "SEGMENT_BYTES", "Plan", "PlannedShard", "make_plan", "order_key"]

INDEX_FOLDER = "index"

SEGMENT_BYTES = 2 << 20
"""Small enough for all cores to end at about the same time, large enough to be worth a task."""

_LEAST_ITEM = 256
"""What an item weighs at least: making many small ones takes time, too."""

_ORDER_KEY = b"tfrecreg item order v1".ljust(32, b"\0")
_SPLIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """One shard to be made."""

    split: str
    number: int
    path: str
    """Its file name in the build's folder."""
    index: str
    """The path of its index in the build's folder."""
    items: tuple[Item, ...]
    """In the order of the records."""

    def segments(self) -> Iterator[tuple[Item, ...]]:
        """The items in stretches of about :data:`SEGMENT_BYTES`, which can be made apart.

        They depend on the plan alone: a gzip member ends where a segment ends, whoever makes it.
        """
        weight = sum(max(item.size, _LEAST_ITEM) for item in self.items)
        count = max(1, min(-(-weight // SEGMENT_BYTES), len(self.items)))
        for start, stop in bounds(len(self.items), count):
            yield self.items[start:stop]


@dataclass(frozen=True, slots=True)
class Plan:
    """All shards to be made, and the items that the source skipped while it listed them."""

    dataset: str
    shards: tuple[PlannedShard, ...]
    """In order of split and number."""
    skipped: tuple[Skipped, ...]
    """In order of split and key."""
    digest: str
    """Hex. Equal plans make equal bytes: the journal of a killed build is found by it."""
    remarks: tuple[Remark, ...] = ()
    """What the source remarked while it listed them, in order of split and key."""

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


def order_key(split: str, key: str) -> bytes:
    """Where an item stands in its split: 16 bytes of keyed blake3 over ``split NUL key``."""
    name = f"{split}\0{key}".encode("utf-8", "surrogateescape")
    return blake3(name, key=_ORDER_KEY).digest(16)


def make_plan(
    dataset: str,
    listed: Iterable[Item | Skipped | Remark],
    policy: ShardPolicy,
    salt: Mapping[str, str],
) -> Plan:
    """Order the items and deal them to shards.

    Args:
        dataset: its name, which the shards' names begin with.
        listed: what the source lists, in any order; taken once.
        policy: how many shards.
        salt: what else the bytes depend on (options, compression, the state of the raw data):
            part of the plan's digest.

    Raises:
        PluginError: the source lists a key twice, or a split that no file name can hold.
        UsageError: there are no items.
    """
    splits: dict[str, list[tuple[bytes, Item]]] = defaultdict(list)
    skipped: list[Skipped] = []
    remarks: list[Remark] = []
    for entry in listed:
        if isinstance(entry, Skipped):
            skipped.append(entry)
            continue
        if isinstance(entry, Remark):
            remarks.append(entry)
            continue
        if entry.split not in splits and not _SPLIT.fullmatch(entry.split):
            raise PluginError(f"the source lists the split `{safe(entry.split)}`")
        splits[entry.split].append((order_key(entry.split, entry.key), entry))
    if not splits and not skipped:
        raise UsageError("the source found no items in the raw data")
    hasher = blake3(b"tfrecreg plan v1\n")
    for name, value in sorted(salt.items()):
        hasher.update(f"{name}={value}\n".encode("utf-8", "surrogateescape"))
    shards: list[PlannedShard] = []
    for split in sorted(splits):
        shards.extend(_deal(dataset, split, splits.pop(split), policy))
    for shard in shards:
        hasher.update(f"{shard.path} {len(shard.items)}\n".encode())
        for items in shard.segments():
            told = (
                repr((item.key, item.size)).encode("utf-8", "backslashreplace") + item.state
                for item in items
            )
            hasher.update(b"".join(told))
    skipped.sort(key=lambda each: (each.split, each.key))
    remarks.sort()
    return Plan(dataset, tuple(shards), tuple(skipped), hasher.hexdigest(), tuple(remarks))


def _deal(
    dataset: str, split: str, keyed: list[tuple[bytes, Item]], policy: ShardPolicy
) -> list[PlannedShard]:
    keyed.sort(key=lambda pair: (pair[0], pair[1].key))
    for (_, left), (_, right) in pairwise(keyed):
        if left.key == right.key:
            raise PluginError(f"the source lists `{safe(left.key)}` twice in the split `{split}`")
    count = shard_count(policy, len(keyed), sum(item.size for _, item in keyed))
    planned = []
    for number, (start, stop) in enumerate(bounds(len(keyed), count)):
        path = shard_name(dataset, split, number, count)
        items = tuple(item for _, item in keyed[start:stop])
        planned.append(PlannedShard(split, number, path, f"{INDEX_FOLDER}/{path}.index", items))
    return planned

"""Plans a build: assigns each item to a shard. The plan is made before any work starts.

The records are ordered by a keyed hash of (split, key). This global shuffle can be reproduced by
anyone. The machine, the workers, the locale and the order of files in a folder do not change it.

If a build takes a release as its base, the shards in which nothing changed are kept:

- A shard of the base keeps its items, in the same order. An item is removed if it is missing from
  the raw data.
- Items that the base does not have go into new shards.
- Small shards at the end of a split are merged with the added items, if these shards have at most a
  tenth of the added bytes. So an incremental build writes little more than the additions, and small
  last shards do not accumulate.

To find out whether an item changed, a build makes its record again and compares the digests.

For each item, memory holds the item's data in packed form, and 40 bytes more: the order key, the
number in the order, the size, and the place of the data.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import msgspec
import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.core.build.sources.interface import Item, Remark, Skipped
from tfrecreg.core.plugins.guard import PluginId
from tfrecreg.core.records.index import INDEX_LIMIT, Index, read_index
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.indexes import find_index, index_places
from tfrecreg.core.registry.manifest import (
    INDEX_FOLDER,
    LEDGER_NAME,
    FileEntry,
    Manifest,
    ShardEntry,
)
from tfrecreg.core.registry.registry import Registry, not_yanked
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.documents import read_note, refusing
from tfrecreg.core.values.errors import ManifestError, MissingFileError, UsageError
from tfrecreg.core.values.shards import ShardPolicy, bounds, is_split_name, shard_count, shard_name

_MERGED = 10
"""Small shards are merged if their size is at most the added bytes divided by this number."""
_SMALL = 64 << 20
"""Shards of at least this size in bytes (TFDS's minimum) are never merged."""


@dataclass(frozen=True, slots=True)
class BaseShard:
    """A shard of the base. Picklable."""

    storage: Readable
    entry: ShardEntry
    index: FileEntry
    index_path: str
    """Path of the shard's index, relative to the registry."""
    path: str | None
    """Path of the shard, relative to the registry; None if it is not on this machine."""

    def read_index(self) -> Index:
        found = find_index([(self.storage, self.index_path)], self.index)
        if found is None:
            raise UsageError(
                f"the index `{self.index_path}` is damaged: restore it, or build with `--base none`"
            )
        return read_index(found[1], self.index_path)


@dataclass(frozen=True, slots=True)
class Base:
    """The release on which a build is based."""

    name: str
    """Reference as a user writes it: ``mnist@1.0.0``."""
    manifest: Manifest
    shards: tuple[BaseShard, ...]
    skipped: frozenset[tuple[str, str]] = frozenset()
    """The split and the key of each item without a record, if the ledger is on this machine."""

    def of_split(self, split: str) -> list[BaseShard]:
        return [shard for shard in self.shards if shard.entry.split == split]


def find_base(registry: Registry, dataset: str, wanted: str | None) -> Base | None:
    """The release that `wanted` names; by default, the latest release, or None if no release is
    left that was not yanked. None if `wanted` is ``none``.
    """
    if wanted == "none" or (wanted is None and not not_yanked(registry.dataset(dataset))):
        return None
    text = wanted or "latest"
    text = text if "@" in text or "#" in text else f"{dataset}@{text}"
    resolved = resolve(registry, text)
    if resolved.dataset.name != dataset:
        raise UsageError(f"`--base {text}` does not belong to the dataset `{dataset}`")
    files = {entry.path: entry for entry in resolved.manifest.files}
    shards = []
    for entry in resolved.manifest.shards:
        index = files.get(entry.index)
        places = [] if index is None else index_places(registry, resolved.folder, index)
        found = None if index is None else find_index(places, index)
        if index is None or found is None:
            raise UsageError(
                f"the index of `{entry.path}` in the base `{resolved.name}` is not on this machine",
                hint=f"`tfrecreg pull {resolved.name}` fetches it; `--base none` needs no base",
            )
        path = f"{resolved.folder}/{entry.path}" if resolved.folder is not None else None
        if path is not None and registry.storage.stat(path) is None:
            path = None
        shards.append(BaseShard(registry.storage, entry, index, found[0], path))
    skipped = _skipped(registry, resolved.folder)
    return Base(resolved.name, resolved.manifest, tuple(shards), skipped)


class _Row(msgspec.Struct):
    """A line of the ledger: a skipped item or a remark. Only a remark has `times`."""

    split: str
    key: str
    times: int | None = None


def _skipped(registry: Registry, folder: str | None) -> frozenset[tuple[str, str]]:
    if folder is None:
        return frozenset()
    path = f"{folder}/{LEDGER_NAME}"
    try:
        data = registry.storage.read(path, limit=INDEX_LIMIT)
    except MissingFileError:
        return frozenset()  # an adopted build has no ledger
    hint = "build without a base: --base none"
    with refusing(ManifestError, f"`{path}` is not a ledger", hint=hint):
        rows = [read_note(line, _Row) for line in data.splitlines()]
    return frozenset((row.split, row.key) for row in rows if row.times is None)


Positions = npt.NDArray[np.int64]
"""Positions of items in an :class:`ItemStore`."""


def deal_from(
    base: Base, store: ItemStore
) -> tuple[list[tuple[Positions, BaseShard | None]], Positions]:
    """The positions of a split's items in each shard of the base, and the positions of the items
    that go into new shards.

    The result has None in place of a shard that lost items. An item that the base skipped joins the
    last shard, which stays unchanged if the item is skipped again.
    """
    left = np.ones(len(store), np.bool_)
    dealt: list[tuple[Positions, BaseShard | None]] = []
    for shard in base.of_split(store.split):
        index = shard.read_index()
        positions = _taken(store.find(index.key(at) for at in range(len(index))), left)
        if positions.size:
            dealt.append((positions, shard if len(positions) == len(index) else None))
    if dealt:
        skipped = (key for split, key in sorted(base.skipped) if split == store.split)
        again = np.sort(_taken(store.find(skipped), left))
        positions, last = dealt[-1]
        dealt[-1] = np.concatenate((positions, again)), last
    added = int(store.sizes(np.flatnonzero(left)).sum())
    merged = 0
    while dealt:
        size = int(store.sizes(dealt[-1][0]).sum())
        if not left.any() or size >= _SMALL or (merged + size) * _MERGED > added:
            break
        merged += size
        left[dealt.pop()[0]] = True
    return dealt, np.flatnonzero(left)


def _taken(positions: Positions, left: npt.NDArray[np.bool_]) -> Positions:
    """The `positions` that are still free. Sets their values in `left` to false."""
    positions = positions[positions >= 0]
    positions = positions[left[positions]]
    left[positions] = False
    return positions


SEGMENT_BYTES = 2 << 20
"""Segments of this size are small enough for all cores to finish at about the same time, and large
enough to be worth a task."""

_LEAST_ITEM = 256
"""Minimum weight of an item in bytes, because small items also take time."""


@dataclass(frozen=True, slots=True)
class PlannedShard:
    split: str
    path: str
    items: Sequence[Item]
    """Items in the order of the records. Slices of this sequence are tuples."""
    base: BaseShard | None = None
    """The base's shard with these items. The new shard equals it unless a record changed."""
    lost_items: bool = False
    """Whether this shard comes from the base, but some of the items are gone."""

    @property
    def index(self) -> str:
        """The path of its index in the build's folder."""
        return f"{INDEX_FOLDER}/{self.path}.index"

    def cuts(self) -> list[tuple[int, int]]:
        """The bounds of each segment: its first item, and the item after its last item. A segment
        has about :data:`SEGMENT_BYTES`. A gzip member ends where a segment ends, so segments must
        depend only on the plan."""
        weight = sum(max(item.size, _LEAST_ITEM) for item in self.items)
        count = max(1, min(-(-weight // SEGMENT_BYTES), len(self.items)))
        return list(bounds(len(self.items), count))

    def segments(self) -> Iterator[tuple[Item, ...]]:
        return (tuple(self.items[start:stop]) for start, stop in self.cuts())


@dataclass(frozen=True, slots=True)
class Plan:
    """All shards to make, and the items that the source skipped while it listed the raw data."""

    dataset: str
    shards: tuple[PlannedShard, ...]
    skipped: tuple[Skipped, ...]
    digest: str
    """Hex. Equal plans make equal bytes, so it names the unfinished files of a killed build."""
    remarks: tuple[Remark, ...] = ()
    base: Base | None = None

    @property
    def items(self) -> int:
        """Number of items that get an example unless they are skipped later."""
        return sum(len(shard.items) for shard in self.shards)

    def splits(self) -> dict[str, int]:
        """Number of items per split, in order of name."""
        counts: dict[str, int] = {}
        for shard in self.shards:
            counts[shard.split] = counts.get(shard.split, 0) + len(shard.items)
        return counts


_UNKNOWN = PluginId("source", "unknown")


def make_plan(
    dataset: str,
    listed: Iterable[Item | Skipped | Remark],
    policy: ShardPolicy,
    salt: Mapping[str, str],
    base: Base | None = None,
    plugin_id: PluginId = _UNKNOWN,
) -> Plan:
    """Order the items and deal them to shards."""
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
                raise plugin_id.error(
                    f"lists the split `{entry.split}`, but the name of a split may have only "
                    "letters, digits and `_`"
                )
            store = splits[entry.split] = ItemStore(entry.split)
        store.add(entry)
    if not splits and not skipped:
        raise UsageError("the source found no items in the raw data")
    shards: list[PlannedShard] = []
    for split in sorted(splits):
        store = splits.pop(split)
        twice = store.sort()
        if twice is not None:
            raise plugin_id.error(f"lists `{twice.key}` twice in the split `{split}`")
        dealt = list(_deal(store, policy, base))
        for number, (positions, of_base, lost_items) in enumerate(dealt):
            path = shard_name(dataset, split, number, len(dealt))
            shards.append(PlannedShard(split, path, store.pick(positions), of_base, lost_items))
    skipped.sort(key=lambda each: (each.split, each.key))
    remarks.sort()
    digest = _plan_digest(salt, base, shards, (*skipped, *remarks))
    return Plan(dataset, tuple(shards), tuple(skipped), digest, tuple(remarks), base)


def _plan_digest(
    salt: Mapping[str, str],
    base: Base | None,
    shards: Iterable[PlannedShard],
    rest: Iterable[Skipped | Remark],
) -> str:
    hasher = blake3(b"tfrecreg plan v1\n")
    for name, value in sorted(salt.items()):
        hasher.update(f"{name}={value}\n".encode("utf-8", "surrogateescape"))
    if base is not None:
        hasher.update(f"base={base.manifest.digest}\n".encode())
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


def _deal(
    store: ItemStore, policy: ShardPolicy, base: Base | None
) -> Iterator[tuple[Positions, BaseShard | None, bool]]:
    """Yield for each shard: the positions of its items, its base shard if no items are missing, and
    whether items are missing."""
    added = np.arange(len(store))
    if base is not None:
        kept, added = deal_from(base, store)
        for positions, shard in kept:
            yield positions, shard, shard is None
        if kept and (policy.shards is not None or policy.hosts is not None):
            # If the dataset's settings name a number of shards, new shards get the average size.
            sizes = [shard.entry.payload_bytes for shard in base.of_split(store.split)]
            policy = ShardPolicy(shard_size=max(1, sum(sizes) // len(sizes)))
    if added.size:
        count = shard_count(policy, len(added), int(store.sizes(added).sum()))
        for start, stop in bounds(len(added), count):
            yield added[start:stop], None, False


_KEY = b"tfrecreg item order v1".ljust(32, b"\0")
_ORDER_KEY = np.dtype("S16")
"""An order key. NumPy drops its trailing zeros, but this does not change the order."""

_UNPACKED = 1 << 25
"""Maximum size in bytes of the packed items of a split that are unpacked all at once."""
_AT_ONCE = 1 << 12
"""Number of items that are decoded ahead."""

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[bytes, int, bytes])


def order_key(split: str, key: str) -> bytes:
    """The sort key of an item in its split: 16 bytes of keyed blake3 over ``split NUL key``."""
    name = f"{split}\0{key}".encode("utf-8", "surrogateescape")
    return blake3(name, key=_KEY).digest(_ORDER_KEY.itemsize)


class ItemStore:
    """Takes the items of a split in any order and returns them in the plan's order.

    A **position** is the number of an item in that order, from 0.
    """

    def __init__(self, split: str) -> None:
        self.split = split
        self._keys = bytearray()
        self._sizes = array("q")
        self._ends = array("q")
        self._data = bytearray()
        self._order: Positions = np.empty(0, np.int64)
        self._sorted: npt.NDArray[np.bytes_] = np.empty(0, _ORDER_KEY)

    def __len__(self) -> int:
        return len(self._ends)

    def add(self, item: Item) -> None:
        self._keys += order_key(self.split, item.key)
        name = item.key.encode("utf-8", "surrogateescape")
        self._data += _ENCODER.encode((name, item.size, item.state))
        self._sizes.append(item.size)
        self._ends.append(len(self._data))

    def sort(self) -> Item | None:
        """Order the items once all are added. Returns an item whose key occurs twice, if any."""
        keys = np.frombuffer(self._keys, _ORDER_KEY)
        self._keys = bytearray()
        self._order = np.argsort(keys, kind="stable")
        self._sorted = keys = keys[self._order]
        same = np.flatnonzero(keys[1:] == keys[:-1])
        return self.pick(same[:1])[0] if same.size else None

    def find(self, names: Iterable[str]) -> Positions:
        """The position of the item with each of these keys; -1 for an unknown key."""
        wanted = np.frombuffer(b"".join(order_key(self.split, name) for name in names), _ORDER_KEY)
        at = np.searchsorted(self._sorted, wanted)
        at[at == len(self)] = 0
        at[self._sorted[at] != wanted] = -1
        return at

    def sizes(self, positions: Positions) -> Positions:
        found: Positions = np.frombuffer(self._sizes, np.int64)[self._order[positions]]
        return found

    def pick(self, positions: Positions) -> Sequence[Item]:
        """The items at these positions, as a tuple unless the split has very many items."""
        rows = self._order[positions]
        return self._read(rows) if len(self._data) < _UNPACKED else ItemShare(self._read, rows)

    def _read(self, rows: Positions) -> tuple[Item, ...]:
        ends = np.frombuffer(self._ends, np.int64)
        starts = np.where(rows > 0, ends[rows - 1], 0).tolist()
        data, found = memoryview(self._data), []
        for first, last in zip(starts, ends[rows].tolist(), strict=True):
            name, size, state = _DECODER.decode(data[first:last])
            found.append(Item(self.split, name.decode("utf-8", "surrogateescape"), size, state))
        return tuple(found)


class ItemShare(Sequence[Item]):
    """Items of a store, unpacked when they are needed. Pickling makes them a tuple."""

    def __init__(self, read: Callable[[Positions], tuple[Item, ...]], rows: Positions) -> None:
        self._read = read
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, at: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(at, slice):
            return self._read(self._rows[at])
        return self._read(self._rows[[at]])[0]

    def __iter__(self) -> Iterator[Item]:
        for start in range(0, len(self), _AT_ONCE):
            yield from self._read(self._rows[start : start + _AT_ONCE])

    def __reduce__(self) -> tuple[type[tuple[Item, ...]], tuple[tuple[Item, ...]]]:
        return tuple, (self._read(self._rows),)

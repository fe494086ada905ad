"""Growing from a release: its shards stay where nothing in them changed.

- A shard of the base keeps its items, in its order. Items that are missing from the raw data are
  removed.
- Items that the base has not go into new shards, in the order of every plan.
- Small shards at the end of a split are merged with the added items, as long as they are a tenth of
  it at most: so an incremental build writes little more than the additions, and tails do not
  accumulate.

Only the record shows whether an item changed: it is made and compared by its digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from tfrecreg.core.build.sources.interface import Item
from tfrecreg.core.plugins.discovery import Announced
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.records.index import INDEX_LIMIT, Index, read_index
from tfrecreg.core.registry.lookup import resolve
from tfrecreg.core.registry.manifest import (
    LEDGER_NAME,
    FileEntry,
    Manifest,
    ShardEntry,
    is_python_data,
)
from tfrecreg.core.registry.registry import Registry, not_yanked
from tfrecreg.core.registry.shardset.indexes import find_index, index_places
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.documents import read_note, refusing
from tfrecreg.core.values.errors import (
    ManifestError,
    MissingFileError,
    NewerFormatError,
    UnknownPluginError,
    UsageError,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from tfrecreg.core.build.plan import ItemStore

_MERGED = 10
"""Merge small shards up to one part in this many of the added bytes."""
_SMALL = 64 << 20
"""Shards of at least this size in bytes (TFDS's minimum) are never merged."""


@dataclass(frozen=True, slots=True)
class BaseShard:
    """A shard of the base. Picklable."""

    storage: Readable
    """The registry."""
    entry: ShardEntry
    index: FileEntry
    index_path: str
    """Path of its index, relative to the registry."""
    path: str | None
    """Path of the shard, relative to the registry; None if it is not on this machine."""

    def read_index(self) -> Index:
        """Its index, as it was released."""
        found = find_index([(self.storage, self.index_path)], self.index)
        if found is None:
            raise UsageError(
                f"the index `{self.index_path}` is damaged",
                hint="restore it, or build with `--base none`",
            )
        return read_index(found[1], self.index_path)


@dataclass(frozen=True, slots=True)
class Base:
    """The release that a build grows from."""

    name: str
    """Reference as a user writes it: ``mnist@1.0.0``."""
    manifest: Manifest
    shards: tuple[BaseShard, ...]
    skipped: frozenset[tuple[str, str]] = frozenset()
    """Split and key of items that had no record, as far as its ledger is on this machine."""

    def of_split(self, split: str) -> list[BaseShard]:
        """The shards of a split, in their order."""
        return [shard for shard in self.shards if shard.entry.split == split]


@dataclass(frozen=True, slots=True)
class ShardItems:
    """Items of one planned shard, and the base's shard that they were in."""

    items: Sequence[Item]
    base: BaseShard | None = None
    """None for a new shard, and for one that lost items."""
    lost_items: bool = False
    """Whether it is a shard of the base that lost items."""


def find_base(registry: Registry, dataset: str, wanted: str | None) -> Base | None:
    """The base that was asked for, or the latest release."""
    if wanted == "none" or (wanted is None and not not_yanked(registry.dataset(dataset))):
        return None
    named = wanted is not None and ("@" in wanted or "#" in wanted)
    text = wanted if wanted is not None and named else f"{dataset}@{wanted or 'latest'}"
    resolved = resolve(registry, text)
    if resolved.dataset.name != dataset:
        raise UsageError(
            f"`--base {text}` is a release of another dataset than `{dataset}`",
            hint=f"`tfrecreg log {dataset}` shows its releases",
        )
    files = {entry.path: entry for entry in resolved.manifest.files}
    shards = []
    for entry in resolved.manifest.shards:
        index = files.get(entry.index)
        places = [] if index is None else index_places(registry, resolved.folder, index)
        found = None if index is None else find_index(places, index)
        if index is None or found is None:
            raise UsageError(
                f"the index of `{entry.path}` of the base `{resolved.name}` is not on this machine",
                hint=f"fetch its bytes: tfrecreg pull {resolved.name}; or build without a "
                "base: --base none",
            )
        path = f"{resolved.folder}/{entry.path}" if resolved.folder is not None else None
        if path is not None and registry.storage.stat(path) is None:
            path = None
        shards.append(BaseShard(registry.storage, entry, index, found[0], path))
    skipped = _skipped(registry, resolved.folder)
    return Base(resolved.name, resolved.manifest, tuple(shards), skipped)


class _Row(msgspec.Struct):
    """A line of the ledger about an item, or about a remark, which has `times`."""

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
        return frozenset()  # an adopted build has none
    hint = "restore it from DVC, or build without a base: --base none"
    with refusing(ManifestError, f"`{path}` is not a ledger", hint=hint):
        rows = [read_note(line, _Row) for line in data.splitlines()]
    return frozenset((row.split, row.key) for row in rows if row.times is None)


def deal_from(base: Base, store: ItemStore) -> tuple[list[ShardItems], npt.NDArray[np.int64]]:
    """Give the items of a split to the shards that they lie in.

    What had no record in the base goes with the last of its shards: without items, that shard stays
    unchanged, and no empty shard is made.
    """
    import numpy as np

    left = np.ones(len(store), np.bool_)
    dealt = list(_kept(base.of_split(store.split), store, left))
    if dealt:
        skipped = (key for split, key in sorted(base.skipped) if split == store.split)
        again = np.sort(_taken(store.find(skipped), left))
        last = dealt[-1]
        dealt[-1] = replace(last, positions=np.concatenate((last.positions, again)))
    added = int(store.sizes(np.flatnonzero(left)).sum())
    merged = 0
    while dealt:
        last = dealt[-1]
        size = int(store.sizes(last.positions).sum())
        if not left.any() or size >= _SMALL or (merged + size) * _MERGED > added:
            break
        merged += size
        left[dealt.pop().positions] = True
    kept = [ShardItems(store.pick(each.positions), each.base, each.lost_items) for each in dealt]
    return kept, np.flatnonzero(left)


@dataclass(frozen=True, slots=True)
class _Positions:
    """As :class:`ShardItems`, with the positions of the items."""

    positions: npt.NDArray[np.int64]
    base: BaseShard | None
    lost_items: bool


def _kept(
    shards: Sequence[BaseShard], store: ItemStore, left: npt.NDArray[np.bool_]
) -> Iterator[_Positions]:
    """Take from `left` the items of each shard of the base."""
    for shard in shards:
        index = shard.read_index()
        positions = _taken(store.find(index.key(at) for at in range(len(index))), left)
        if positions.size:
            whole = len(positions) == len(index)
            yield _Positions(positions, shard if whole else None, lost_items=not whole)


def _taken(positions: npt.NDArray[np.int64], left: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Those that are left, which are taken."""
    positions = positions[positions >= 0]
    positions = positions[left[positions]]
    left[positions] = False
    return positions


def made_before(registry: Registry, name: str) -> tuple[str, Manifest | None]:
    """The newest release, which the next one is compared with, or the build without one.

    A damaged one is ignored.
    """
    versions = registry.dataset(name).versions
    try:
        if versions:
            release = registry.dataset(name).release_manifest(versions[-1])
            return f"`{name}@{versions[-1]}`", release
        return f"the build of `{name}` before", registry.dataset(name).build_manifest()
    except (ManifestError, NewerFormatError):
        return "", None


def made_of_python_data(registry: Registry, name: str) -> bool:
    """Whether a program handed its data to the newest release, or to the build."""
    manifest = made_before(registry, name)[1]
    return manifest is not None and is_python_data(manifest)


def announced_source(registry: Registry, name: str, source: str) -> Announced[SourceRecord]:
    """The source of that name, to make the dataset `name` with."""
    try:
        return plugins_of(registry.config).find(SourceRecord, source)
    except UnknownPluginError as error:
        where, manifest = made_before(registry, name)
        if manifest is None or manifest.source.name != source.rpartition(":")[2]:
            raise
        if is_python_data(manifest):
            raise  # no distribution has that source
        raise error.brought_by(
            manifest.source.distribution, manifest.source.version, where
        ) from None

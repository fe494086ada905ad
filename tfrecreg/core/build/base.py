"""Grow a dataset from a release. Shards in which nothing changed are kept.

- A shard of the base keeps its items, in the same order. An item is removed if it is missing from
  the raw data.
- Items that the base does not have go into new shards. The plan decides their order.
- Small shards at the end of a split are merged with the added items, if these shards have at most a
  tenth of the added bytes. So an incremental build writes little more than the additions, and small
  last shards do not accumulate.

To find out whether an item changed, a build makes its record again and compares the digests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from tfrecreg.core.plugins.discovery import Announced
from tfrecreg.core.plugins.manager import plugins_of
from tfrecreg.core.plugins.records import SourceRecord
from tfrecreg.core.records.index import INDEX_LIMIT, Index, read_index
from tfrecreg.core.registry.data import resolve
from tfrecreg.core.registry.indexes import find_index, index_places
from tfrecreg.core.registry.manifest import (
    LEDGER_NAME,
    FileEntry,
    Manifest,
    ShardEntry,
    is_python_data,
)
from tfrecreg.core.registry.registry import Registry, not_yanked
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
    from tfrecreg.core.build.plan import ItemStore

_MERGED = 10
"""Small shards are merged if their size is at most the added bytes divided by this number."""
_SMALL = 64 << 20
"""Shards of at least this size in bytes (TFDS's minimum) are never merged."""


@dataclass(frozen=True, slots=True)
class BaseShard:
    """A shard of the base. Picklable."""

    storage: Readable
    """The registry's storage."""
    entry: ShardEntry
    index: FileEntry
    index_path: str
    """Path of the shard's index, relative to the registry."""
    path: str | None
    """Path of the shard, relative to the registry; None if it is not on this machine."""

    def read_index(self) -> Index:
        """The shard's index, as it was released."""
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
        """The shards of a split, in their order."""
        return [shard for shard in self.shards if shard.entry.split == split]


def find_base(registry: Registry, dataset: str, wanted: str | None) -> Base | None:
    """The release that `wanted` names, or the latest. None if `wanted` is ``none``, or if no
    release exists.
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
                hint=f"tfrecreg pull {resolved.name}; or build without a base: --base none",
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
"""Positions of items in an :class:`~tfrecreg.core.build.plan.ItemStore`."""


def deal_from(
    base: Base, store: ItemStore
) -> tuple[list[tuple[Positions, BaseShard | None]], Positions]:
    """Assign each item of a split to the shard of the base that contains the item.

    Returns the positions of the items in each of these shards, and the positions of the items that
    go into new shards. The shard of the base is None if it lost items. An item that the base
    skipped joins the last shard. If it is skipped again, that shard stays unchanged.
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


def made_before(registry: Registry, name: str) -> tuple[str, Manifest | None]:
    """The newest release or, if there is none, the last build. New builds are compared with it.

    Returns its name for messages, and its manifest. The manifest is None if it is damaged.
    """
    versions = registry.dataset(name).versions
    try:
        if versions:
            release = registry.dataset(name).release_manifest(versions[-1])
            return f"`{name}@{versions[-1]}`", release
        return f"the previous build of `{name}`", registry.dataset(name).build_manifest()
    except (ManifestError, NewerFormatError):
        return "", None


def announced_source(registry: Registry, name: str, source: str) -> Announced[SourceRecord]:
    """The source named `source`, for the dataset `name`."""
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

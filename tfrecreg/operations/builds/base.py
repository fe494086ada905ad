"""Growing from a release: its shards stay where nothing in them changed.

- A shard of the base keeps its items, in its order. What is gone from the raw data leaves it.
- Items that the base has not go into new shards, in the order of every plan.
- Small shards at the end of a split are merged with what is added, as long as they are a tenth of
  it at most: so growth writes what was added and little more, and tails do not pile up.

Whether an item's record changed, only its record can tell: it is made and compared by its digest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
from blake3 import blake3

from tfrecreg.errors import (
    ManifestError,
    MissingFileError,
    NewerFormatError,
    UnknownPluginError,
    UsageError,
)
from tfrecreg.index import INDEX_LIMIT, Index, index_bytes, read_index
from tfrecreg.manifest import FileEntry, Manifest, ShardEntry
from tfrecreg.manifest.canonical import canonical_json
from tfrecreg.operations.builds.assemble import LABELS_NAME, LEDGER_NAME, ledger_lines
from tfrecreg.operations.builds.plan import Plan
from tfrecreg.operations.builds.request import BuildRequest, Prepared
from tfrecreg.plugins import Announced, plugins
from tfrecreg.registry import Registry, resolve
from tfrecreg.registry.indexes import find_index
from tfrecreg.registry.yanks import held
from tfrecreg.sources import Item, SourceRecord
from tfrecreg.storage import Storage

__all__ = [
    "Base",
    "BaseShard",
    "Dealt",
    "Growth",
    "PushCost",
    "announced_source",
    "choose_base",
    "deal_from",
    "find_base",
    "growth_of",
    "made_before",
    "push_cost",
    "sizes_of",
]


_MERGED = 10
"""What is merged is at most this part of what is added."""
_SMALL = 64 << 20
"""Bytes of a shard from which on it is none of the small ones: the least of TFDS's rule."""


@dataclass(frozen=True, slots=True)
class BaseShard:
    """A shard of the base. Picklable."""

    storage: Storage
    """The registry."""
    entry: ShardEntry
    index: FileEntry
    index_path: str
    """Where its index is, in the registry."""
    path: str | None
    """Where its bytes are, in the registry; None where they are not on this machine."""

    def read_index(self) -> Index:
        """Its index, as it was released.

        Raises:
            UsageError: it is damaged.
        """
        data = self.storage.read(self.index_path, limit=INDEX_LIMIT)
        if blake3(data).hexdigest() != self.index.blake3:
            raise UsageError(
                f"the index `{self.index_path}` is damaged",
                hint="restore it, or build with `--base none`",
            )
        return read_index(data, self.index_path)


@dataclass(frozen=True, slots=True)
class Base:
    """The release that a build grows from."""

    name: str
    """As a user writes it: ``mnist@1.0.0``."""
    manifest: Manifest
    shards: tuple[BaseShard, ...]
    skipped: frozenset[tuple[str, str]] = frozenset()
    """Split and key of items that had no record, as far as its ledger is on this machine."""

    def of_split(self, split: str) -> list[BaseShard]:
        """The shards of a split, in their order."""
        return [shard for shard in self.shards if shard.entry.split == split]


@dataclass(frozen=True, slots=True)
class Dealt:
    """Items of one shard to be, and the base's shard that they lay in."""

    items: tuple[Item, ...]
    base: BaseShard | None = None
    """None for a new shard, and for one that lost items."""
    mended: bool = False
    """Whether it is a shard of the base that lost items."""


def find_base(registry: Registry, dataset: str, wanted: str | None) -> Base | None:
    """The base that was asked for, or the latest release.

    Args:
        registry: where releases are.
        dataset: the dataset to build.
        wanted: ``none``, a version, or a reference to a release; None for the latest, if any.

    Raises:
        UsageError: there is no such release, or its indexes are not on this machine.
    """
    if wanted == "none" or (wanted is None and not held(registry, dataset)):
        return None
    named = wanted is not None and ("@" in wanted or "#" in wanted)
    text = wanted if wanted is not None and named else f"{dataset}@{wanted or 'latest'}"
    resolved = resolve(registry, text)
    if resolved.dataset != dataset:
        raise UsageError(
            f"`--base {text}` is a release of another dataset than `{dataset}`",
            hint=f"`tfrecreg log {dataset}` shows its releases",
        )
    files = {entry.path: entry for entry in resolved.manifest.files}
    shards = []
    for entry in resolved.manifest.shards:
        index = files.get(entry.index)
        found = find_index(registry, resolved.folder, index) if index is not None else None
        if index is None or found is None:
            raise UsageError(
                f"the index of `{entry.path}` of the base `{resolved.name}` is not on this machine",
                hint=f"bring its bytes back: tfrecreg pull {resolved.name}; or build afresh: "
                "--base none",
            )
        path = f"{resolved.folder}/{entry.path}" if resolved.folder is not None else None
        if path is not None and registry.storage.stat(path) is None:
            path = None
        shards.append(BaseShard(registry.storage, entry, index, found[0], path))
    skipped = frozenset(_skipped(registry, resolved.folder))
    return Base(resolved.name, resolved.manifest, tuple(shards), skipped)


def _skipped(registry: Registry, folder: str | None) -> Iterator[tuple[str, str]]:
    if folder is None:
        return
    try:
        lines = registry.storage.read(f"{folder}/{LEDGER_NAME}", limit=INDEX_LIMIT).splitlines()
    except MissingFileError:
        return  # an adopted build has none
    for line in lines:
        entry = msgspec.json.decode(line)
        if "times" not in entry:
            yield entry["split"], entry["key"]


def deal_from(base: Base, split: str, ordered: Sequence[Item]) -> tuple[list[Dealt], list[Item]]:
    """Give the items of a split to the shards that they lay in.

    What had no record in the base goes with the last of its shards: as long as it has none, that
    shard stays as it is, and no shard is made for nothing.

    Args:
        base: what to grow from.
        split: the split.
        ordered: the split's items, in the order of a plan.

    Returns:
        the shards that stay, whole or without what is gone; and the items for new shards, in the
        order of a plan: those that the base has not, and those of small shards at its end.
    """
    left = {item.key: item for item in ordered}
    dealt = list(_kept(base.of_split(split), left))
    if dealt:
        again = tuple(item for item in left.values() if (split, item.key) in base.skipped)
        dealt[-1] = replace(dealt[-1], items=dealt[-1].items + again)
        for item in again:
            del left[item.key]
    added = sum(item.size for item in left.values())
    merged = 0
    while dealt:
        last = dealt[-1]
        size = sum(item.size for item in last.items)
        if not left or size >= _SMALL or (merged + size) * _MERGED > added:
            break
        merged += size
        left.update((item.key, item) for item in dealt.pop().items)
    return dealt, [item for item in ordered if item.key in left]


def _kept(shards: Sequence[BaseShard], left: dict[str, Item]) -> Iterator[Dealt]:
    """Take from `left` what each shard of the base holds."""
    for shard in shards:
        index = shard.read_index()
        keys = [index.key(number) for number in range(len(index))]
        items = tuple(left.pop(key) for key in keys if key in left)
        if items:
            whole = len(items) == len(keys)
            yield Dealt(items, shard if whole else None, mended=not whole)


def made_before(registry: Registry, name: str) -> tuple[str, Manifest | None]:
    """The newest release, which the next one is compared with, or the build where there is none.

    One that is damaged says nothing here.
    """
    versions = registry.versions(name)
    try:
        if versions:
            release = registry.release_manifest(name, versions[-1])
            return f"`{name}@{versions[-1]}`", release
        return f"the build of `{name}` before", registry.build_manifest(name)
    except (ManifestError, NewerFormatError):
        return "", None


def announced_source(registry: Registry, name: str, source: str) -> Announced[SourceRecord]:
    """The source of that name, to make the dataset `name` with.

    Raises:
        UnknownPluginError: there is none; the message says which distribution brought it when the
            dataset was made before.
        PluginError: there is more than one.
    """
    try:
        return plugins().source(source)
    except UnknownPluginError as error:
        where, manifest = made_before(registry, name)
        if manifest is None or manifest.source.name != source.rpartition(":")[2]:
            raise
        raise error.brought_by(
            manifest.source.distribution, manifest.source.version, where
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What a build keeps of its base, and what it writes.

    Sizes of shards that do not exist yet are estimates of the source, scaled by the ratio of real
    to estimated size in the base.
    """

    base: str
    """``mnist@1.0.0``."""
    kept: int
    """Number of unchanged shards of the base."""
    kept_bytes: int
    rewritten: int
    """Number of shards of the base in which records changed or were removed."""
    rewritten_bytes: int
    new: int
    """Number of shards with records that the base does not have."""
    new_bytes: int

    @property
    def written_bytes(self) -> int:
        """Size of all shards that are written."""
        return self.rewritten_bytes + self.new_bytes


def sizes_of(plan: Plan, kept: set[str]) -> dict[str, int]:
    """Size in bytes by shard path; estimated for shards that do not exist yet.

    Estimates of the source are scaled by the ratio of real to estimated size in the base.

    Args:
        plan: plan of the build.
        kept: paths of the shards that do not change.
    """
    estimates = {shard.path: sum(item.size for item in shard.items) for shard in plan.shards}
    of_base = {shard.path: shard.base.entry.bytes for shard in plan.shards if shard.base}
    estimated = sum(estimates[path] for path in of_base)
    scale = sum(of_base.values()) / estimated if estimated else 1.0
    return {
        path: of_base[path] if path in kept and path in of_base else round(estimate * scale)
        for path, estimate in estimates.items()
    }


def growth_of(plan: Plan, kept: set[str], sizes: Mapping[str, int]) -> Growth | None:
    """Count and sum the shards of a plan; None without a base.

    Args:
        plan: plan of the build.
        kept: paths of the shards that do not change.
        sizes: size in bytes by shard path.
    """
    if plan.base is None:
        return None
    counts: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    for shard in plan.shards:
        if shard.path in kept and shard.base is not None:
            what = "kept"
        else:
            what = "rewritten" if shard.base is not None or shard.mended else "new"
        counts[what] += 1
        amounts[what] += sizes[shard.path]
    return Growth(
        base=plan.base.name,
        kept=counts["kept"],
        kept_bytes=amounts["kept"],
        rewritten=counts["rewritten"],
        rewritten_bytes=amounts["rewritten"],
        new=counts["new"],
        new_bytes=amounts["new"],
    )


def choose_base(registry: Registry, request: BuildRequest, prepared: Prepared) -> Base | None:
    """The release to grow from; None where the request asks for another layout or there is none.

    Raises:
        UsageError: `--base` names a release that does not fit the request.
    """
    named = request.base not in (None, "none")
    if named and request.policy is not None:
        raise UsageError(
            "`--base` and the number of shards exclude each other: shards of the base stay",
            hint="`--base none` rewrites all shards, as many as you ask for",
        )
    if request.policy is not None:
        return None
    base = find_base(registry, request.name, request.base)
    if base is None or base.manifest.compression == prepared.compression:
        return base
    if named:
        raise UsageError(
            f"the base `{base.name}` has compression {base.manifest.compression}, the build has "
            f"{prepared.compression}",
            hint="`--base none` rewrites all shards",
        )
    return None


_FIXED, _PER_SHARD = 1_750, 850
"""Approximate bytes of the manifest and of DVC's list of files: per build, and per shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushCost:
    """Estimated bytes that a push of the build's release sends to a remote that has the base.

    DVC sends files by their hash: a kept shard and its index cost nothing.
    """

    shards: int
    """Size of the new and rewritten shards."""
    indexes: int
    """Size of their indexes."""
    manifests: int
    """Size of the manifest, the labels, the ledger and DVC's list of files."""

    @property
    def total(self) -> int:
        """Sum of the above."""
        return self.shards + self.indexes + self.manifests


def push_cost(
    plan: Plan, kept: set[str], sizes: Mapping[str, int], labels: Mapping[str, Sequence[str]]
) -> PushCost:
    """Estimate what a push sends, before anything is built.

    Args:
        plan: plan of the build.
        kept: paths of the shards that do not change.
        sizes: size in bytes by shard path.
        labels: label maps of the source.
    """
    fresh = [shard for shard in plan.shards if shard.path not in kept]
    named = canonical_json({name: list(names) for name, names in labels.items()})
    base = plan.base
    there = {entry.blake3 for entry in base.manifest.files} if base is not None else set()
    beside = {LABELS_NAME: named + b"\n", LEDGER_NAME: ledger_lines(plan, ())}
    sent = sum(len(data) for data in beside.values() if blake3(data).hexdigest() not in there)
    if base is not None and not sent and kept == {shard.entry.path for shard in base.shards}:
        return PushCost(shards=0, indexes=0, manifests=0)  # identical to the base
    return PushCost(
        shards=sum(sizes[shard.path] for shard in fresh),
        indexes=sum(index_bytes(item.key for item in shard.items) for shard in fresh),
        manifests=sent + len(named) + _FIXED + _PER_SHARD * len(plan.shards),
    )

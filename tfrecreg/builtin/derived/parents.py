"""The versions that a dataset is derived from, as workers and the listing need them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.records.framing import OVERHEAD
from tfrecreg.core.registry.lookup import Build, Release, expect_schema, resolve
from tfrecreg.core.registry.manifest.model import ParentVersion
from tfrecreg.core.registry.registry import Registry, open_registry
from tfrecreg.core.registry.shardset.target import target_of
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import RawDataError, UsageError
from tfrecreg.core.values.text import safe


@dataclass(frozen=True, slots=True)
class ParentShard:
    """A shard of a parent. Picklable."""

    split: str
    path: str
    """Below the root of the registry, as that of the index."""
    index: str
    index_blake3: str
    """Hex digest of the index by the manifest."""
    size: int
    """Bytes of the file."""
    stream: int
    """Bytes of its decompressed stream."""
    records: int
    gzip: bool


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A version. Picklable."""

    dataset: str
    version: ParentVersion
    """As the manifest of a child names it."""
    shards: tuple[ParentShard, ...]
    labels: Mapping[str, Sequence[str]]
    """Class names in order of their numbers, by feature."""
    features: tuple[str, ...]
    """Names of the features that its records have."""
    schema: str
    note: str
    """The note that it is yanked; empty if it is not."""

    @property
    def name(self) -> str:
        """``street@2.1.0``."""
        return self.version.reference


def find_parents(raw: Readable, inputs: Sequence[str]) -> tuple[Ancestor, ...]:
    """The versions that these references name now."""
    registry = _registry(raw)
    found: dict[str, Ancestor] = {}
    for text in inputs:
        parent = _parent(registry, raw, resolve(registry, text))
        other = found.setdefault(parent.dataset, parent)
        if other is not parent:
            raise UsageError(
                f"`inputs` names `{parent.dataset}` twice, as `{other.name}` and `{parent.name}`",
                hint="name one version of each dataset: records of two would have the same keys",
            )
    return tuple(found.values())


def ancestor_target(raw: Readable, parent: Ancestor) -> Target:
    """A parent, to be asked for the records that meet a condition."""
    return target_of(resolve(_registry(raw), parent.name))


def expect_shards_here(raw: Readable, parent: Ancestor) -> None:
    """Refuse a parent with a missing shard or one of another size."""
    for shard in parent.shards:
        entry = raw.stat(shard.path, follow="all")
        if entry is None or entry.kind != "file":
            raise _damaged(parent, shard, "it is missing")
        if entry.size != shard.size:
            what = f"it should have {shard.size:,} bytes, found {entry.size:,}"
            raise _damaged(parent, shard, what)


def damaged_record(parent: Ancestor, shard: ParentShard, number: int, why: str) -> RawDataError:
    """The error about a record that is not what the index of its shard says."""
    return _damaged(parent, shard, f"record {number}: {why}")


def _damaged(parent: Ancestor, shard: ParentShard, why: str) -> RawDataError:
    return RawDataError(
        f"`{safe(shard.path, limit=1000)}` of the parent `{parent.name}` is damaged: {why}",
        hint=f"tfrecreg repair {parent.name}",
    )


def _registry(raw: Readable) -> Registry:
    root = raw.root
    try:
        registry = open_registry(root)
    except UsageError:
        registry = None
    if registry is None or os.path.realpath(root) != os.path.realpath(registry.storage.root):
        raise RawDataError(
            f"`{safe(root, limit=1000)}` is not the folder of a registry, and the raw data of the "
            "source `tfrecreg` are versions in one",
            hint="leave out --raw for this registry, or name the folder with its `tfrecreg.toml`",
        )
    return registry


def _parent(registry: Registry, raw: Readable, resolved: Build | Release) -> Ancestor:
    manifest = resolved.manifest
    storage = resolved.storage()
    folder = os.path.relpath(storage.root, registry.storage.root).replace(os.sep, "/")
    indexes = {each.path: each.blake3 for each in manifest.files}
    parent = Ancestor(
        dataset=manifest.dataset,
        version=ParentVersion(
            reference=resolved.name, digest=manifest.digest, content=manifest.content
        ),
        shards=tuple(
            ParentShard(
                split=each.split,
                path=f"{folder}/{each.path}",
                index=f"{folder}/{each.index}",
                index_blake3=indexes.get(each.index, ""),
                size=each.bytes,
                stream=each.payload_bytes + OVERHEAD * each.records,
                records=each.records,
                gzip=manifest.compression == "gzip",
            )
            for each in manifest.shards
        ),
        labels=manifest.labels,
        features=tuple(manifest.features),
        schema=expect_schema(resolved),
        note="; ".join(_yanks(resolved)),
    )
    if not all(each.index_blake3 for each in parent.shards):
        raise UsageError(
            f"the parent `{parent.name}` has shards without an index, so its records have no keys",
            hint=f"tfrecreg adopt {parent.dataset} --in-place writes one",
        )
    expect_shards_here(raw, parent)
    return parent


def _yanks(resolved: Build | Release) -> Iterator[str]:
    for each in resolved.yanks[-1:]:
        yield (
            f"the parent `{resolved.name}` was yanked on {safe(each.created)} by {safe(each.by)}: "
            f"{safe(each.reason)}"
        )

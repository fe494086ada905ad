"""What a push of a build's release will send, before anything is built.

DVC sends files by their hash. So a shard of the base that stays costs nothing, nor does its index;
what is always sent is the build's manifest and DVC's own list of the files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from blake3 import blake3

from tfrecreg.index import index_bytes
from tfrecreg.manifest import MANIFEST_NAME, FileEntry, ShardEntry
from tfrecreg.manifest.canonical import canonical_json
from tfrecreg.operations.builds.assemble import ledger_lines
from tfrecreg.operations.builds.names import LABELS_NAME, LEDGER_NAME
from tfrecreg.operations.builds.plan import Plan, PlannedShard

__all__ = ["PushCost", "push_cost"]

_HASH = "0" * 64
_FIXED = 1_000
"""Bytes of a manifest beside its shards, files, splits, features and labels, about."""
_OF_SPLIT, _OF_FEATURE, _FEATURES = 250, 30, 8
"""Bytes of a split and of a feature in it, about; how many features where there is no base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushCost:
    """Bytes that a push of the build's release sends to a remote, which has the base already.

    Estimates, as the bytes of shards are that are not made yet.
    """

    shards: int
    """Of shards that are new or rewritten."""
    indexes: int
    """Of their indexes."""
    manifests: int
    """Of the manifest, the labels, the ledger and DVC's list of the files."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.shards + self.indexes + self.manifests


def push_cost(
    plan: Plan, kept: set[str], sizes: Mapping[str, int], labels: Mapping[str, Sequence[str]]
) -> PushCost:
    """Sums over what the base has not.

    Args:
        plan: of the build.
        kept: paths of shards that stay as they are.
        sizes: path to bytes, of every shard of the plan.
        labels: of the source.
    """
    fresh = [shard for shard in plan.shards if shard.path not in kept]
    named = canonical_json({name: list(names) for name, names in labels.items()})
    base = plan.base
    there = {entry.blake3 for entry in base.manifest.files} if base is not None else set()
    beside = {LABELS_NAME: named + b"\n", LEDGER_NAME: ledger_lines(plan, ())}
    sent = sum(len(data) for data in beside.values() if blake3(data).hexdigest() not in there)
    if base is not None and not sent and kept == {shard.entry.path for shard in base.shards}:
        return PushCost(shards=0, indexes=0, manifests=0)  # the base again, to the byte
    return PushCost(
        shards=sum(sizes[shard.path] for shard in fresh),
        indexes=sum(index_bytes(item.key for item in shard.items) for shard in fresh),
        manifests=sent + _manifest_bytes(plan, sizes) + len(named) + _list_bytes(plan),
    )


def _manifest_bytes(plan: Plan, sizes: Mapping[str, int]) -> int:
    base = plan.base.manifest if plan.base is not None else None
    features = len(base.features) if base is not None else _FEATURES
    entries = sum(_entry_bytes(shard, sizes[shard.path]) for shard in plan.shards)
    return _FIXED + len(plan.splits()) * _OF_SPLIT + features * _OF_FEATURE + entries


def _entry_bytes(shard: PlannedShard, size: int) -> int:
    """Of what the manifest says of a shard and of its index."""
    entry = ShardEntry(
        path=shard.path,
        bytes=size,
        blake3=_HASH,
        sha256=_HASH,
        split=shard.split,
        records=len(shard.items),
        payload_bytes=size,
        stream_blake3=_HASH,
        index=shard.index,
    )
    index = FileEntry(path=shard.index, bytes=size, blake3=_HASH, sha256=_HASH)
    return len(canonical_json([asdict(entry), asdict(index)]))


def _list_bytes(plan: Plan) -> int:
    """Of the list of files by which DVC knows a folder."""
    paths = [path for shard in plan.shards for path in (shard.path, shard.index)]
    paths += [LABELS_NAME, LEDGER_NAME, MANIFEST_NAME]
    return len(json.dumps([{"md5": _HASH[:32], "relpath": path} for path in paths]))

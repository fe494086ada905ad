"""Which shards of one side the other has, too: what a pull of the second would have to bring."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tfrecreg.manifest import Manifest

__all__ = ["ShardCounts", "shard_counts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardCounts:
    """Shards of the second side against those of the first, by their bytes and not their names."""

    kept: int
    """The same file, perhaps under another name."""
    kept_bytes: int
    recoded: int
    """The same records in the same order, compressed otherwise."""
    new: int
    """Every other one of the second side: rewritten or added."""
    new_bytes: int
    """Of these and of those that are compressed otherwise."""
    gone: int
    """Shards of the first side that the second has not, in no compression."""


def shard_counts(before: Manifest, after: Manifest) -> ShardCounts:
    """Compare the shards of two manifests. Shards that occur twice count twice."""
    files = Counter((shard.split, shard.blake3) for shard in before.shards)
    kept = kept_bytes = 0
    others = []
    for shard in after.shards:
        if files[shard.split, shard.blake3] > 0:
            files[shard.split, shard.blake3] -= 1
            kept += 1
            kept_bytes += shard.bytes
        else:
            others.append(shard)
    streams: Counter[tuple[str, str]] = Counter()
    for shard in before.shards:
        if files[shard.split, shard.blake3] > 0:
            files[shard.split, shard.blake3] -= 1
            streams[shard.split, shard.stream_blake3] += 1
    gone, recoded = sum(streams.values()), 0
    for shard in others:
        if streams[shard.split, shard.stream_blake3] > 0:
            streams[shard.split, shard.stream_blake3] -= 1
            recoded += 1
    return ShardCounts(
        kept=kept,
        kept_bytes=kept_bytes,
        recoded=recoded,
        new=len(others) - recoded,
        new_bytes=sum(shard.bytes for shard in others),
        gone=gone - recoded,
    )

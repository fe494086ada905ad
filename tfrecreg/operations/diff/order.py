"""Whether two sides with the same examples have them in the same order."""

from __future__ import annotations

from typing import Literal

from blake3 import blake3

from tfrecreg.operations.diff.side import Side

__all__ = ["Order", "order_of"]

Order = Literal["same", "other", "unknown"]
"""``unknown`` where an index is not on this machine."""


def order_of(before: Side, after: Side) -> Order:
    """The order of the second side against that of the first, whose examples are the same.

    Raises:
        ManifestError: an index is none.
    """
    if _streams(before) == _streams(after):
        return "same"
    sequences = _sequences(before), _sequences(after)
    if None in sequences:
        return "unknown"
    return "same" if sequences[0] == sequences[1] else "other"


def _streams(side: Side) -> list[tuple[str, str]]:
    return [(shard.split, shard.stream_blake3) for shard in side.manifest.shards if shard.records]


def _sequences(side: Side) -> dict[str, str] | None:
    """A digest over the record digests of each split, in the order of its shards."""
    hashers: dict[str, blake3] = {}
    for number, shard in enumerate(side.manifest.shards):
        if not shard.records:
            continue
        index = side.index(number)
        if index is None:
            return None
        hashers.setdefault(shard.split, blake3()).update(index.digests.tobytes())
    return {split: hasher.hexdigest() for split, hasher in hashers.items()}

"""Whether growth has left a split so far from a global shuffle that a fresh one is due."""

from __future__ import annotations

from dataclasses import dataclass

from tfrecreg.errors import TfrecregError
from tfrecreg.manifest.model import Manifest, ShardEntry
from tfrecreg.reference import parse_version
from tfrecreg.registry.registry import Registry

_ADDED = 4
"""A tail is long if it holds more than one in this many records of its split ..."""
_SHARDS = 10
"""... or at least this many small shards ..."""
_SMALL = 2
"""... each with less than one in this many parts of the largest shard's payload."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTail:
    """A split that growth has made long."""

    split: str
    since: str
    """The release that was shuffled afresh last, as far as the chain of bases can be followed."""
    added: int
    """Records more than that release has in the split."""
    records: int
    """Total number of records in the split."""
    small_shards: int
    """At its end, each smaller than half of its largest one."""


def long_tails(registry: Registry, manifest: Manifest) -> tuple[LongTail, ...]:
    """The splits of a build or release whose tail is long, in order of name.

    Long is a tail with more than a quarter of the split's records, added since the last fresh
    shuffle, or with ten small shards. Nothing that was not grown has a tail.
    """
    origin = _origin(registry, manifest)
    if manifest.base is None or origin is None or origin.release is None:
        return ()
    before = {split.name: split.records for split in origin.splits}
    found = []
    for split in manifest.splits:
        if split.name not in before:
            continue  # it was shuffled when it was added
        tail = LongTail(
            split=split.name,
            since=origin.release.version,
            added=max(0, split.records - before[split.name]),
            records=split.records,
            small_shards=_small([each for each in manifest.shards if each.split == split.name]),
        )
        if tail.added * _ADDED > tail.records or tail.small_shards >= _SHARDS:
            found.append(tail)
    return tuple(found)


def _small(shards: list[ShardEntry]) -> int:
    """How many shards at the end of a split are small."""
    largest = max((shard.payload_bytes for shard in shards), default=0)
    number = 0
    for shard in reversed(shards):
        if shard.payload_bytes * _SMALL >= largest:
            break
        number += 1
    return number


def _origin(registry: Registry, manifest: Manifest) -> Manifest | None:
    """The release at the beginning of the chain of bases; the last one that can be read."""
    origin: Manifest | None = None
    base = manifest.base
    while base is not None:
        try:
            found = registry.dataset(manifest.dataset).release_manifest(parse_version(base.version))
        except TfrecregError:
            break  # `check` reports the damage
        if found.digest != base.digest:
            break
        origin, base = found, found.base
    return origin

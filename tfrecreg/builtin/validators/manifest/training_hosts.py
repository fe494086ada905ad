"""SHD008: enough shards for every training host, by TensorFlow's advice.

The advice (https://www.tensorflow.org/tutorials/load_data/tfrecord) is at least ten shards
per host, of at least 10 MB each. A split too small for both should have as many shards as ``build
--hosts`` would give it, so a build planned for its hosts has no finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from msgspec import Meta

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.check.scan.tally import Tally
from tfrecreg.core.registry.foreign.bare_files import shard_sets
from tfrecreg.core.registry.manifest.model import ShardEntry
from tfrecreg.core.values.codes import SHD008
from tfrecreg.core.values.findings import Location
from tfrecreg.core.values.shards import FRAMING, MIN_HOST_SHARD, ShardPolicy, shard_count
from tfrecreg.core.values.text import si_bytes


@dataclass(frozen=True, slots=True)
class HostsOptions:
    """The options of the validator `manifest`."""

    hosts: Annotated[int, Meta(ge=1)] | None = None
    """The number of training hosts that share the shards."""


class HostLoad(NamedTuple):
    """The shards that the hosts would share: a split, or a set of bare files."""

    split: str
    subject: str
    """Name of a set of bare files; empty for a split of a build."""
    shards: int
    records: int
    payload_bytes: int


def listed_loads(entries: Iterable[ShardEntry]) -> Iterator[HostLoad]:
    """The splits of a manifest."""
    splits: dict[str, list[ShardEntry]] = defaultdict(list)
    for entry in entries:
        splits[entry.split].append(entry)
    for split, members in sorted(splits.items()):
        records = sum(entry.records for entry in members)
        yield HostLoad(
            split, "", len(members), records, sum(each.payload_bytes for each in members)
        )


def seen_loads(seen: Mapping[str, tuple[int, int]], shards: Iterable[Shard]) -> Iterator[HostLoad]:
    """The sets of bare files."""
    for subject, members in shard_sets(shards):
        read = [seen[shard.path] for shard, _ in members if shard.path in seen]
        if len(read) == len(members):
            records, size = (sum(each) for each in zip(*read, strict=True))
            yield HostLoad(members[0][0].split, subject, len(members), records, size)


def check_hosts(tally: Tally, loads: Iterable[HostLoad], hosts: int) -> None:
    """Compare each split or set with the needs of `hosts` hosts."""
    for load in loads:
        best = shard_count(ShardPolicy(hosts=hosts), load.records, load.payload_bytes)
        size = (load.payload_bytes + FRAMING * load.records) // max(1, load.shards)
        if load.shards < best:
            message = f"expected at least {best} shards for {hosts} hosts, found {load.shards}"
        elif load.shards > best and size < MIN_HOST_SHARD:
            message = (
                f"expected at most {best} shards for {hosts} hosts, found {load.shards} of "
                f"{si_bytes(size)} on average, less than {si_bytes(MIN_HOST_SHARD)}"
            )
        else:
            continue
        where = Location(split=load.split) if load.split else None
        tally.add(SHD008, message, where, split=load.split, subject=load.subject)

"""The keys of the records that findings name, from the indexes beside the shards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tfrecreg.findings import Finding, Location
from tfrecreg.scan import Shard
from tfrecreg.scan.keys import keys_of

__all__ = ["with_keys"]


def with_keys(findings: Sequence[Finding], shards: Sequence[Shard]) -> list[Finding]:
    """The findings, each location with its record's key where an index knows it."""
    wanted: dict[str, set[int]] = {}
    for finding in findings:
        for each in finding.locations:
            if each.shard is not None and each.record is not None and each.key is None:
                wanted.setdefault(each.shard, set()).add(each.record)
    keys = keys_of(shards, wanted)
    return [
        replace(finding, locations=tuple(_with_key(each, keys) for each in finding.locations))
        for finding in findings
    ]


def _with_key(location: Location, keys: dict[tuple[str | None, int | None], str]) -> Location:
    key = keys.get((location.shard, location.record))
    return location if key is None or location.key is not None else replace(location, key=key)

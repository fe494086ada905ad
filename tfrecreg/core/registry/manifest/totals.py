"""The size of a build or release, from its manifest, in a fraction of the time of parsing it."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from blake3 import blake3

from tfrecreg.core.registry.manifest.model import FORMAT_VERSION, Change, Manifest
from tfrecreg.core.values.text import count, safe


class Totals(NamedTuple):
    """Sums over a manifest."""

    records: int
    bytes: int
    """Size of the shards in bytes."""


class _Split(msgspec.Struct):
    records: int


class _Shard(msgspec.Struct):
    bytes: int


class _Release(msgspec.Struct):
    version: str


class _Part(msgspec.Struct):
    """The fields of :class:`Manifest` that are read."""

    format_version: int
    dataset: str
    digest: str
    splits: list[_Split]
    shards: list[_Shard]
    release: _Release


_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_PART = msgspec.json.Decoder(_Part)


def totals_of(manifest: Manifest) -> Totals:
    """The sums of a parsed manifest."""
    return Totals(
        records=sum(split.records for split in manifest.splits),
        bytes=sum(shard.bytes for shard in manifest.shards),
    )


def quick_totals(data: bytes, dataset: str, version: str) -> Totals | None:
    """The sums of a release whose manifest is unchanged since it was sealed.

    The digest is compared with that of the members that it covers, joined again: if the file is
    canonical JSON, these are the bytes that the digest was computed from.
    """
    try:
        members = _MEMBERS.decode(data)
        part = _PART.decode(data)
    except (ValueError, RecursionError):
        return None
    whole = [b'"%b":%b' % (name.encode(), bytes(raw)) for name, raw in members.items()]
    covered = [
        text
        for name, text in zip(members, whole, strict=True)
        if name not in ("digest", "provenance")
    ]
    if (
        b"{%b}\n" % b",".join(whole) != data  # white space, or a duplicate member
        or blake3(b"{%b}" % b",".join(covered)).hexdigest() != part.digest
        or part.format_version != FORMAT_VERSION
        or (part.dataset, part.release.version) != (dataset, version)
    ):
        return None
    return Totals(
        records=sum(split.records for split in part.splits),
        bytes=sum(shard.bytes for shard in part.shards),
    )


def change_line(name: str, records: int, change: Change, parent: str | None) -> str:
    """``signs 2.0.0 (major after 1.1.0): 413 labels changed; …``, the change since `parent`."""
    if parent is None:
        return f"{name} (the first): {count(records, 'record')}"
    reasons = "; ".join(safe(each, limit=300) for each in change.reasons)
    return f"{name} ({change.level} after {safe(parent)}): {reasons or 'no reason is known'}"

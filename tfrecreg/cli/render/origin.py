"""The provenance of a build or a release, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.commands.console import PlainTable, line, print_facts
from tfrecreg.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.operations.builds.parts.provenance import BuildProvenance
    from tfrecreg.operations.origin import Origin


def print_origin(console: Console, origin: Origin) -> None:
    """Facts, and for a build in parts the receipts, one row per shard."""
    console.print(line((f"provenance of {origin.reference}", "bold")))
    print_facts(console, _facts(origin))
    parts = origin.parts
    if parts is None:
        return
    right = ("records", "size", "skipped")
    table = PlainTable("shard", "records", "size", "skipped", "made", "on", right=right, indent=2)
    for receipt in parts.receipts:
        made = receipt.made
        how = "" if made is None else f"part {made.part}" if made.part else "when published"
        table.add_row(
            safe(receipt.shard.path),
            f"{receipt.shard.records:,}",
            si_bytes(receipt.shard.bytes),
            f"{len(receipt.skipped):,}",
            safe(how) + (", kept of the base" if receipt.kept else ""),
            "" if made is None else f"{safe(made.host)}, {safe(made.created)}",
        )
    console.print("")
    console.print(table)


def _facts(origin: Origin) -> Iterator[tuple[str, str]]:
    manifest = origin.manifest
    source, release, released = manifest.source, manifest.release, manifest.provenance
    if source.name:
        yield "source", f"{safe(source.name)} ({safe(source.distribution)} {safe(source.version)})"
        given = ", ".join(f"{safe(key)}={safe(value)}" for key, value in source.options.items())
        yield "options", given or "none"
    raw = manifest.raw
    stored = f"{count(raw.files, 'file')}, {si_bytes(raw.stored)} stored"
    yield "raw", stored if raw.files else "unknown"
    codecs = (f"{safe(name)} {safe(version)}" for name, version in manifest.codecs.items())
    yield "codecs", ", ".join(codecs) or "unknown"
    yield "schema", manifest.schema.blake3
    for each in manifest.parents:
        yield "from", f"{safe(each.reference)}, content {safe(each.content)}"
    if manifest.base is not None:
        base = manifest.base
        yield "base", f"{safe(manifest.dataset)}@{safe(base.version)}, manifest {safe(base.digest)}"
    if release is not None and release.parent is not None:
        yield "parent", f"{safe(release.parent.version)}, manifest {safe(release.parent.digest)}"
    if released is not None:
        yield (
            "released",
            f"{safe(released.created)} by {safe(released.by)} on {safe(released.host)}",
        )
        commit = f", commit {safe(released.commit)}" if released.commit else ""
        yield "with", f"tfrecreg {safe(released.tfrecreg)}, Python {safe(released.python)}{commit}"
    yield "gate", origin.gate
    yield "content", manifest.content
    yield "manifest", manifest.digest
    if origin.parts is not None:
        yield from _parts(origin.parts)
    else:
        yield "receipts", "none here: the build was not made in parts, or on another machine"


def _parts(parts: BuildProvenance) -> Iterator[tuple[str, str]]:
    yield "plan", safe(str(parts.plan.get("digest", "")))
    hosts = Counter(each.made.host for each in parts.receipts if each.made is not None)
    shown = ", ".join(f"{count(shards, 'shard')} on {safe(host)}" for host, shards in hosts.items())
    yield "receipts", f"{len(parts.receipts)}: {shown}"
    verified = count(len(parts.verified), "shard")
    yield "verified", f"{verified} rebuilt before publishing, and equal"

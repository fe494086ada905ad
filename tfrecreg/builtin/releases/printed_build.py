"""A build that was made, for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console

from tfrecreg.builtin.releases.commands import accepted, print_release
from tfrecreg.core.terminal.catalog import print_manifest
from tfrecreg.core.terminal.console import line
from tfrecreg.core.terminal.findings import print_accepted
from tfrecreg.core.terminal.session import Session
from tfrecreg.core.values.text import count, si_bytes

if TYPE_CHECKING:
    from tfrecreg.builtin.releases.release import ReleaseResult
    from tfrecreg.core.build.begin import Growth
    from tfrecreg.core.build.conclude import BuildResult


def print_built(
    session: Session,
    result: BuildResult,
    released: ReleaseResult | None,
    *,
    parts: object | None = None,
) -> None:
    """Print the new build, and its release if there is one."""
    manifest = result.manifest
    if session.as_json:
        document: dict[str, Any] = {
            "dataset": manifest.dataset,
            "folder": result.folder,
            "content": manifest.content,
            "digest": manifest.digest,
            "splits": {split.name: split.records for split in manifest.splits},
            "shards": len(manifest.shards),
            "bytes": sum(shard.bytes for shard in manifest.shards),
            "resumed_shards": result.resumed,
            "unchanged": result.unchanged,
            "settings": result.settings.to_json(),
            "growth": growth_json(result.growth),
            **accepted(result.report),
            "parts": parts,
            "release": None,
        }
        if released is not None:
            document["release"] = {
                "version": str(released.version),
                "created": released.created,
                **accepted(released.report),
            }
        session.print_json(document)
        return
    again = " again, the same as before" if result.unchanged else ""
    if result.resumed:
        kept = "shard" if result.resumed == 1 else "shards"
        session.err.print(
            f"reused {result.resumed} finished {kept} of an earlier run; --anew rebuilds every "
            "shard"
        )
    if result.growth is not None:
        print_growth(session.err, result.growth)
    if released is None or released.report is None:
        print_accepted(session.err, result.report)  # else it is among the gate's findings
    title = f"built {manifest.dataset}{again}, in {result.folder}"
    print_manifest(session.out, title, result.folder, manifest, brief=True)
    if released is not None:
        print_release(session, released)


def print_growth(console: Console, growth: Growth, *, would: bool = False) -> None:
    """The shards that a build keeps, rewrites and adds, on one line."""
    parts = [
        f"{count(number, 'shard')} {what} ({si_bytes(size)})"
        for number, what, size in (
            (growth.kept, "unchanged", growth.kept_bytes),
            (growth.rewritten, "rewritten", growth.rewritten_bytes),
            (growth.new, "new", growth.new_bytes),
        )
        if number
    ]
    sent = growth.written_bytes
    cost = "" if would or not sent else f"; a push sends {si_bytes(sent)} and the indexes"
    console.print(line(f"grown from {growth.base}: {', '.join(parts)}{cost}"))


def growth_json(growth: Growth | None) -> dict[str, Any] | None:
    """What a build grew from, for a JSON document."""
    return None if growth is None else {**asdict(growth), "written_bytes": growth.written_bytes}

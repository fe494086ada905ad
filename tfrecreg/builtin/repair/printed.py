"""The files of a release that were made or copied again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.terminal.console import line
from tfrecreg.core.values.text import count, safe

if TYPE_CHECKING:
    from tfrecreg.builtin.repair.run import RepairResult


def print_repair(console: Console, result: RepairResult) -> None:
    """The rebuilt shards and files, and the proof."""
    if not result.shards and not result.files and not result.copied:
        nothing = ("nothing to repair", "bold green")
        console.print(line(nothing, f": every file of {result.reference} is unchanged"))
        return
    console.print(line((f"repaired {result.reference}", "bold"), f", in {result.folder}"))
    for shard in result.shards:
        made = f"{count(shard.made, 'record')} rebuilt, {shard.taken:,} intact"
        console.print(line(f"  {safe(shard.entry.path)}: {made}"))
    for path in result.files:
        console.print(line(f"  {safe(path)}"))
    for path in result.copied:
        console.print(line(f"  {safe(path)}: restored from a copy"))
    proof = f"every file agrees with the manifest, digest {result.digest[:16]}…"
    console.print(line(("proven", "bold green"), f": {proof}"))

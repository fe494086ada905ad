"""What a repair did, for people."""

from __future__ import annotations

from rich.console import Console

from tfrecreg.operations.repair import RepairResult
from tfrecreg.report.layout import count, line
from tfrecreg.text import safe

__all__ = ["print_repair"]


def print_repair(console: Console, result: RepairResult) -> None:
    """What was made again, and what proves it."""
    if not result.shards and not result.files:
        nothing = ("nothing to repair", "bold green")
        console.print(line(nothing, f": every file of {result.reference} is what it was"))
        return
    console.print(line((f"repaired {result.reference}", "bold"), f", in {result.folder}"))
    for shard in result.shards:
        made = f"{count(shard.made, 'record')} made again, {shard.taken:,} were still there"
        console.print(line(f"  {safe(shard.entry.path)}: {made}"))
    for path in result.files:
        console.print(line(f"  {safe(path)}"))
    proof = f"every file agrees with the manifest, digest {result.digest[:16]}…"
    console.print(line(("proven", "bold green"), f": {proof}"))

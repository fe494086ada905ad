"""What a build would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.builtin.releases.printed_build import print_growth
from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.values.shards import in_reading_order
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.core.build.run import Preview


def print_preview(console: Console, found: Preview) -> None:
    """The plan of a build that was not run."""
    plan, raw = found.plan, found.raw
    made_of = f"{count(raw.files, 'raw file')}, {si_bytes(raw.stored)}"
    console.print(line(f"would build {plan.dataset} from {made_of}; nothing was written"))
    for name, text in found.found.items():
        console.print(line(f"  {safe(name)}: {safe(text, limit=1000)}"))
    console.print("")
    right = ("items", "shards", "at most about")
    table = PlainTable("split", "items", "shards", "at most about", right=right, indent=2)
    splits = plan.splits()
    for name in sorted(splits, key=in_reading_order):
        shards = [shard for shard in plan.shards if shard.split == name]
        size = si_bytes(sum(found.sizes[shard.path] for shard in shards))
        table.add_row(safe(name), f"{splits[name]:,}", f"{len(shards):,}", size)
    console.print(table)
    console.print("")
    if found.growth is not None:
        print_growth(console, found.growth, would=True)
    if plan.skipped:
        skipped = count(len(plan.skipped), "item")
        console.print("")
        console.print(line(f"the source would skip {skipped}"))

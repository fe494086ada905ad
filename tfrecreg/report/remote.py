"""What was sent, brought, or may go, for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from tfrecreg.operations.remote import Doomed, PullResult, PushResult
from tfrecreg.report.layout import count, line, new_table
from tfrecreg.text import safe, si_bytes

__all__ = ["print_gc", "print_pull", "print_push"]


def print_push(console: Console, result: PushResult) -> None:
    """What is in the remote now."""
    sent = count(result.objects, "object") if result.objects else "nothing new"
    console.print(line(f"the remote has {', '.join(result.releases)}: {sent} sent"))


def print_pull(console: Console, result: PullResult) -> None:
    """Where a release's bytes are."""
    if result.files:
        what = f"{count(result.files, 'file')}, {si_bytes(result.bytes)}, all as released"
    else:
        what = "here already"
    console.print(line(f"{result.name} is in {result.folder}: {what}"))


def print_gc(console: Console, doomed: Sequence[Doomed], *, applied: bool) -> None:
    """What went, or may go."""
    if not doomed:
        console.print(line("nothing to remove"))
        return
    table = new_table("what", "size", "why", "path", right=("size",))
    for each in doomed:
        table.add_row(each.kind, si_bytes(each.bytes), each.why, safe(each.path, limit=1000))
    console.print(table)
    size = si_bytes(sum(each.bytes for each in doomed))
    things = count(len(doomed), "thing")
    told = "removed" if applied else "nothing was removed; `tfrecreg gc --apply` removes"
    console.print(line(f"{told} {things}, {size}"))

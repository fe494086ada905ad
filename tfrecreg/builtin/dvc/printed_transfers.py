"""What was pushed, pulled and removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.builtin.dvc.garbage import Unneeded
    from tfrecreg.builtin.dvc.sending import PushResult
    from tfrecreg.builtin.dvc.transfer import PullResult


def print_push(console: Console, result: PushResult, *, verified: bool = False) -> None:
    """The releases that the remote has now."""
    sent = count(result.objects, "object") if result.objects else "nothing new"
    parts = [f"{sent} sent"]
    if result.replaced:
        parts.append(f"{result.replaced:,} of them replaced damaged ones")
    if verified:
        seen = result.verified
        read = f"{count(seen.read, 'object')} read ({si_bytes(seen.bytes)})"
        parts.append(f"{count(seen.checksums, 'checksum')} compared, {read}")
    console.print(line(f"the remote has {', '.join(result.releases)}: {', '.join(parts)}"))


def print_pull(console: Console, result: PullResult) -> None:
    """The folder with the bytes of a release."""
    if result.files:
        what = f"{count(result.files, 'file')}, {si_bytes(result.bytes)}, all verified"
    else:
        what = "already here"
    console.print(line(f"{result.name} is in {result.folder}: {what}"))


def print_gc(console: Console, doomed: Sequence[Unneeded], *, applied: bool) -> None:
    """The objects that were removed or may be removed."""
    if not doomed:
        console.print(line("nothing to remove"))
        return
    table = PlainTable("what", "size", "why", "path", right=("size",))
    for each in doomed:
        table.add_row(each.kind, si_bytes(each.bytes), each.why, safe(each.path, limit=1000))
    console.print(table)
    size = si_bytes(sum(each.bytes for each in doomed))
    things = count(len(doomed), "thing")
    told = "removed" if applied else "nothing was removed yet; `tfrecreg gc --apply` removes"
    console.print(line(f"{told} {things}, {size}"))

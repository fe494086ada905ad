"""What was pushed, pulled and removed.

The stages of a pipeline, and their changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.values.text import count, safe, si_bytes

if TYPE_CHECKING:
    from tfrecreg.builtin.dvc.garbage import Unneeded
    from tfrecreg.builtin.dvc.pipeline.run import Changes, PipelineResult
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


def print_pipeline(console: Console, result: PipelineResult, *, look: bool) -> None:
    """The changes of `dvc.yaml`."""
    datasets = count(len(result.datasets), "dataset")
    if result.current:
        console.print(line(("dvc.yaml", "bold"), f" is up to date, with {datasets}"))
        _print_tracked(console, result)
        return
    state = "is out of date" if look else "was written"
    console.print(line(("dvc.yaml", "bold"), f" {state}, with {datasets}"))
    would = "to be " if look else ""
    for title, names in (
        *_titled(would, result.stages),
        *_titled(f"artifacts {would}", result.artifacts),
        ("missing" if look else "made", result.made),
    ):
        if names:
            console.print(line((f"  {title}: ", "cyan"), ", ".join(safe(each) for each in names)))
    _print_tracked(console, result)


def _print_tracked(console: Console, result: PipelineResult) -> None:
    if result.tracked:
        title = "  no stages, tracked by data/NAME.dvc: "
        console.print(line((title, "cyan"), ", ".join(safe(each) for each in result.tracked)))


def _titled(before: str, changes: Changes) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return (
        (f"{before}added", changes.added),
        (f"{before}updated", changes.updated),
        (f"{before}removed", changes.removed),
    )

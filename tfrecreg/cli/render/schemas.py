"""Comparisons of schemas and proposed changes, for people."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.commands.console import count, line
from tfrecreg.render.findings import print_findings
from tfrecreg.text import safe

if TYPE_CHECKING:
    from tfrecreg.operations.schemas.accept import Proposal
    from tfrecreg.operations.schemas.compare import CompatibilityReport, SchemaDiff
    from tfrecreg.schema.differ import SchemaChange, Value

_SHOWN = 8
"""The number of values shown of a list; the others are counted."""

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_schema_diff(console: Console, diff: SchemaDiff) -> None:
    """Each feature that differs, with the expected and the found value of its fields."""
    console.print(line(("expected: ", "bold"), safe(diff.expected)))
    console.print(line(("found:    ", "bold"), safe(diff.found)))
    print_changes(console, diff.changes)
    same = "no difference" if not diff.changes else count(len(diff.changes), "difference")
    console.print(line(same))


def print_changes(console: Console, changes: Iterable[SchemaChange], *, indent: int = 0) -> None:
    """The fields that differ, below their feature."""
    before = " " * indent
    for (part, name), fields in groupby(changes, key=lambda each: (each.part, each.name)):
        shown = f" {safe(name)}" if name else ""
        console.print(line(before, (f"{part.replace('_', ' ')}{shown}", "bold")))
        for change in fields:
            console.print(line(f"{before}  {_change(change)}"))


def print_compatibility(console: Console, report: CompatibilityReport) -> None:
    """The schemas compared, the findings and the verdict."""
    others = ", ".join(safe(each) for each in report.against)
    if not others:
        console.print(line((safe(report.schema), "bold"), ": no release to compare with yet"))
    else:
        console.print(line((safe(report.schema), "bold"), f": {report.mode}, against {others}"))
    print_findings(console, report.findings)
    style = "bold green" if report.status == "pass" else "bold red"
    counts = [
        count(sum(each.severity.value == name for each in report.findings), name)
        for name in ("error", "warning")
    ]
    console.print(line((report.status, style), f": {', '.join(counts)}"))


def print_proposal(out: Console, err: Console, proposal: Proposal, *, written: bool) -> None:
    """The change as a diff on stdout; its edits and refusals on stderr."""
    for each in proposal.diff.splitlines():
        # A schema's own text: its tabs and its letters stay, but nothing drives the terminal.
        text = "".join(part if part == "\t" else safe(part, limit=10_000) for part in _cells(each))
        out.print(line((text, _DIFF_STYLES.get(each[:1], ""))))
    for edit in proposal.edits:
        err.print(line((f"{edit.code} ", "green"), f"{_of(edit.feature)}{edit.text}"))
    for refusal in proposal.refused:
        about = f"{_of(refusal.feature)}not accepted: {refusal.text}"
        err.print(line((f"{refusal.code} ", "bold red"), about))
    where = safe(proposal.schema)
    if written:
        err.print(line(f"wrote {where}: review it, commit it, build again"))
    elif proposal.before != proposal.after:
        err.print(line(("nothing was written: ", "bold"), f"--write puts the change into {where}"))
    elif not proposal.refused:
        err.print(line(f"{proposal.target} keeps {where}: there is nothing to accept"))


def _cells(text: str) -> list[str]:
    """The text split at its tabs, which are kept."""
    cells: list[str] = []
    for number, cell in enumerate(text.split("\t")):
        cells += [cell] if not number else ["\t", cell]
    return cells


def _of(feature: str) -> str:
    return f"`{safe(feature)}`: " if feature else ""


def _change(change: SchemaChange) -> str:
    if not change.field:
        if change.expected is None:
            return f"expected nothing, found {_value(change.found)}"
        return f"expected {_value(change.expected)}, found nothing"
    old, new = change.expected, change.found
    if isinstance(old, tuple) and isinstance(new, tuple) and set(old) != set(new):
        before, after = set(old), set(new)
        gone = tuple(each for each in old if each not in after)
        more = tuple(each for each in new if each not in before)
        pieces = [f"expected also {_value(gone)}"] if gone else []
        pieces += [f"found also {_value(more)}"] if more else []
        return f"{safe(change.field)}: {'; '.join(pieces)}"
    return f"{safe(change.field)}: expected {_value(old)}, found {_value(new)}"


def _value(value: Value | None) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return safe(value)
    shown = ", ".join(safe(each) for each in value[:_SHOWN])
    more = len(value) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown

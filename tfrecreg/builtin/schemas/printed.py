"""Comparisons of schemas and proposed changes, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.terminal.console import line
from tfrecreg.core.terminal.render.catalog import print_changes
from tfrecreg.core.terminal.render.findings import print_findings
from tfrecreg.core.values.text import count, safe

if TYPE_CHECKING:
    from tfrecreg.builtin.schemas.accept import Proposal
    from tfrecreg.builtin.schemas.compare import CompatibilityReport, SchemaDiff

_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_schema_diff(console: Console, diff: SchemaDiff) -> None:
    """Each feature that differs, with the expected and the found value of its fields."""
    console.print(line(("expected: ", "bold"), safe(diff.expected)))
    console.print(line(("found:    ", "bold"), safe(diff.found)))
    print_changes(console, diff.changes)
    same = "no difference" if not diff.changes else count(len(diff.changes), "difference")
    console.print(line(same))


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
        err.print(line((f"{edit.code} ", "green"), f"{_feature_prefix(edit.feature)}{edit.text}"))
    for refusal in proposal.refused:
        about = f"{_feature_prefix(refusal.feature)}not accepted: {refusal.text}"
        err.print(line((f"{refusal.code} ", "bold red"), about))
    where = safe(proposal.schema)
    if written:
        err.print(line(f"wrote {where}: review it, commit it, build again"))
    elif proposal.before != proposal.after:
        err.print(line(("nothing was written: ", "bold"), f"--write puts the change into {where}"))
    elif not proposal.refused:
        err.print(line(f"{proposal.target} fits {where}: there is nothing to accept"))


def _cells(text: str) -> list[str]:
    """The text split at its tabs, which are kept."""
    cells: list[str] = []
    for number, cell in enumerate(text.split("\t")):
        cells += [cell] if not number else ["\t", cell]
    return cells


def _feature_prefix(feature: str) -> str:
    return f"`{safe(feature)}`: " if feature else ""

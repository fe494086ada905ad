"""The codes of findings: one with its page, or all in a table."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from tfrecreg.findings import Code, Severity, TensorflowOutcome
from tfrecreg.report.layout import line, new_table

__all__ = ["OUTCOME_STYLE", "SEVERITY_STYLE", "print_code", "print_codes"]

SEVERITY_STYLE = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFO: "bold cyan",
}
# The worst is the one that nobody is told of.
OUTCOME_STYLE = {
    TensorflowOutcome.READS: "yellow",
    TensorflowOutcome.STOPS: "dim",
    TensorflowOutcome.CRASHES: "red",
}


def print_code(console: Console, code: Code) -> None:
    """What it means, why it matters, what to do."""
    severity = (code.severity.value, SEVERITY_STYLE[code.severity])
    console.print(line((f"{code.code} {code.rule}", "bold"), " (", severity, ")"))
    console.print(line(f"{code.summary}."))
    console.print("")
    for paragraph in code.page.strip().split("\n\n"):
        # Pages are wrapped where they are written; on a terminal they wrap where that ends.
        if console.is_terminal:
            console.print(line(" ".join(paragraph.split()), hang=0))
        else:
            console.print(paragraph)
        console.print("")
    if code.tensorflow:
        outcomes = " or ".join(outcome.value for outcome in code.tensorflow)
        console.print(line(("TensorFlow: ", "cyan"), outcomes))
    console.print(line(("hint: ", "cyan"), code.hint))


def print_codes(console: Console, codes: Iterable[Code]) -> None:
    """A line a code."""
    table = new_table("code", "severity", "summary")
    for code in codes:
        table.add_row(code.code, code.severity.value, code.summary)
    console.print(table)

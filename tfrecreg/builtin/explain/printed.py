"""The page of a finding code, and a table of all codes."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.terminal.render.findings import SEVERITY_STYLE
from tfrecreg.core.values.findings import Code


def print_code(console: Console, code: Code) -> None:
    """A code with its page and its hint."""
    severity = (code.severity.value, SEVERITY_STYLE[code.severity])
    console.print(line((f"{code.code} {code.rule}", "bold"), " (", severity, ")"))
    console.print(line(f"{code.summary}."))
    console.print("")
    for paragraph in code.page.strip().split("\n\n"):
        # Pages are wrapped at 100 columns; terminals wrap them at their own width.
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
    """One line per code."""
    table = PlainTable("code", "severity", "summary")
    for code in codes:
        table.add_row(code.code, code.severity.value, code.summary)
    console.print(table)

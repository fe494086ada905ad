"""`tfrecreg explain`.

The page of a finding code, and a table of all codes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click
from rich.console import Console

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.console import PlainTable, line
from tfrecreg.core.terminal.render.findings import SEVERITY_STYLE
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.codes import CORE_CODES
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Code
from tfrecreg.core.values.text import did_you_mean, safe

if TYPE_CHECKING:
    from tfrecreg.core.values.findings import Code


@session_command("explain")
@click.argument("code", required=False, shell_complete=complete.codes)
def explain_command(session: Session, code: str | None) -> None:
    """Explain a finding code.

    Prints its meaning, why it matters, and what to do. Lists the codes of a family (CRC), or all
    codes without a CODE.
    """
    if code is None:
        _print_all(session, session.plugins(untrusted=True).codes())
        return
    found = CORE_CODES.get(code.upper())
    if found is None:  # of a plugin
        known = session.plugins(untrusted=True).codes()
        found = known.get(code.upper())
        family = {name: each for name, each in known.items() if name[:-3] == code.upper()}
        if family:
            _print_all(session, family)
            return
    if found is None:
        close = did_you_mean(code.upper(), known)
        raise UsageError(
            f"no code `{safe(code)}`{close}", hint="`tfrecreg explain` lists all codes"
        )
    if session.as_json:
        outcomes = [outcome.value for outcome in found.tensorflow]
        more = {"hint": found.hint, "page": found.page, "tensorflow": outcomes}
        session.print_json(_row(found) | more)
        return

    print_code(session.out, found)


def _row(code: Code) -> dict[str, str]:
    return {
        "code": code.code,
        "rule": code.rule,
        "severity": code.severity.value,
        "summary": code.summary,
    }


def _print_all(session: Session, known: dict[str, Code]) -> None:
    if session.printed_json({"codes": [_row(code) for code in known.values()]}):
        return

    print_codes(session.out, known.values())


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

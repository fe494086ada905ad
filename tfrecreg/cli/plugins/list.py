"""`tfrecreg plugins list`."""

from __future__ import annotations

from typing import Any

from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.text import safe


@session_command("list")
def list_command(session: Session) -> None:
    """List all plugins, and those that are broken or clash."""
    from tfrecreg.core.plugins.records import PLUGIN_KINDS
    from tfrecreg.core.records.scanner import scanner

    reading = scanner()
    found = session.plugins(untrusted=True)
    known = {kind: found.every(kind) for kind in PLUGIN_KINDS}
    if session.as_json:
        session.print_json(
            {
                **{kind.plural: [_row(each) for each in known[kind]] for kind in PLUGIN_KINDS},
                "broken": found.broken,
                **({"disabled": [_off(each) for each in found.disabled]} if found.disabled else {}),
                "clashes": [
                    {"kind": each.kind, "name": each.name, "between": _between(each)}
                    for each in found.clashes
                ],
                "scanner": {"kind": reading.kind, "detail": reading.detail},
            }
        )
        return
    _print_rows(session, [each for kind in PLUGIN_KINDS for each in known[kind]])
    session.out.print(f"scanner: {reading.kind} ({safe(reading.detail, limit=400)})")
    _print_problems(session, found)


def _row(each: Any) -> dict[str, Any]:
    codes = [code.code for code in each.record.codes]
    return {
        "name": each.record.name,
        "summary": each.record.summary,
        "distribution": each.distribution,
        "version": each.version,
        **({"codes": codes} if codes or each.record.kind == "validator" else {}),
    }


def _off(each: Any) -> dict[str, str]:
    return {"kind": each.announced.record.kind, "name": each.announced.qualified, "by": each.by}


def _between(clash: Any) -> list[str]:
    return [f"{each.distribution} {each.version}" for each in clash.announced]


def _print_rows(session: Session, rows: list[Any]) -> None:
    from tfrecreg.core.terminal.console import PlainTable

    table = PlainTable("kind", "name", "what it does", "from")
    for each in rows:
        record, origin = each.record, f"{each.distribution} {each.version}"
        table.add_row(record.kind, safe(record.name), safe(record.summary), safe(origin))
    session.out.print(table)


def _print_problems(session: Session, found: Any) -> None:
    from tfrecreg.core.plugins.entry_points import is_local
    from tfrecreg.core.terminal.console import line

    for each in found.broken:
        about = f"{each.entry_point} of {each.distribution} {each.version}: "
        if is_local(each.distribution):
            about = f"{each.distribution}: "
        session.out.print(line(("broken: ", "bold red"), safe(about), each.reason))
    for off in found.disabled:
        about = f"the {off.announced.record.kind} `{safe(off.announced.qualified)}`, by {off.by}"
        session.out.print(line(("disabled: ", "bold"), safe(about, limit=400)))
    for each in found.clashes:
        about = f"{each.kind} `{safe(each.name)}` is announced by {' and '.join(_between(each))}"
        session.out.print(line(("clash: ", "bold yellow"), safe(about, limit=400)))

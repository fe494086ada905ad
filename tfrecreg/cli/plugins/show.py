"""`tfrecreg plugins show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.plugins.discovery import Announced
    from tfrecreg.core.plugins.recognition import OptionInfo


@session_command("show")
@click.argument("name", shell_complete=complete.plugin_names)
def show_command(session: Session, name: str) -> None:
    """Show a plugin and its options.

    NAME is one of `tfrecreg plugins list`. Set the options of a source in `options` of a dataset or
    with `--option`, those of a validator in `limits.NAME` of a gate.
    """
    from tfrecreg.core.plugins.records import PLUGIN_KINDS

    known = session.plugins(untrusted=True)
    found = [(each, known.describe(each)) for each in known.named(name)]
    if session.as_json:
        documents: dict[str, list[dict[str, Any]]] = {kind.plural: [] for kind in PLUGIN_KINDS}
        for each, options in found:
            documents[each.record.plural].append(_document(each, options))
        session.print_json(documents)
        return
    for number, (each, options) in enumerate(found):
        if number:
            session.out.print()
        _print_plugin(session, each, options)


def _document(found: Announced[Any], options: list[OptionInfo]) -> dict[str, Any]:
    codes = [code.code for code in found.record.codes]
    return {
        "name": found.name,
        "summary": found.record.summary,
        "distribution": found.distribution,
        "version": found.version,
        "module": found.module,
        "options": [
            {
                "name": each.name,
                "type": each.type,
                "default": each.default,
                "required": each.is_required,
                "help": each.help,
            }
            for each in options
        ],
        **({"codes": codes} if codes or found.record.kind == "validator" else {}),
    }


def _print_plugin(session: Session, found: Announced[Any], options: list[OptionInfo]) -> None:
    from tfrecreg.core.terminal.console import PlainTable, line

    summary = safe(found.record.summary)
    session.out.print(line((f"{found.plugin_id.kind} ", "bold"), f"{safe(found.name)}: {summary}"))
    session.out.print(
        f"from {safe(found.distribution)} {safe(found.version)}, announced in {safe(found.module)}"
    )
    if found.record.extra is not None:
        session.out.print(f"needs the extra {safe(found.record.extra)}")
    codes = [safe(f"{code.code} {code.rule}") for code in found.record.codes]
    if codes:
        session.out.print(f"codes: {', '.join(codes)}")
    if not options:
        session.out.print("no options")
        return
    table = PlainTable("option", "type", "default", "what it does")
    for each in options:
        default = "required" if each.is_required else safe(each.default or "")
        table.add_row(safe(each.name), each.type, default, safe(each.help, limit=1000))
    session.out.print(table)

"""`tfrecreg plugins` and its subcommands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.plugins.bundled import PLUGIN_COMMANDS
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import LazyGroup, Session, session_command
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.plugins.manager import Announced
    from tfrecreg.core.plugins.recognition import OptionInfo


@session_command("list")
def list_command(session: Session) -> None:
    """List all plugins, including broken and clashing ones."""
    from tfrecreg.core.plugins.records import PLUGIN_KINDS
    from tfrecreg.core.records.scanner import scanner

    reading = scanner()
    found = session.plugins(untrusted=True)
    known = {kind: found.every(kind) for kind in PLUGIN_KINDS}
    disabled = [
        {"kind": each.record.kind, "name": each.qualified, "by": each.disabled_by}
        for each in found.disabled
    ]
    if session.as_json:
        session.print_json(
            {
                **{kind.plural: [_row(each) for each in known[kind]] for kind in PLUGIN_KINDS},
                "broken": found.broken,
                **({"disabled": disabled} if disabled else {}),
                "clashes": [
                    {"kind": each[0].record.kind, "name": each[0].name, "between": _between(each)}
                    for each in found.clashes
                ],
                "scanner": {"kind": reading.kind, "detail": reading.detail},
            }
        )
        return
    from tfrecreg.core.plugins.entry_points import is_local
    from tfrecreg.core.terminal.console import PlainTable, line

    table = PlainTable("kind", "name", "what it does", "from")
    for each in (each for kind in PLUGIN_KINDS for each in known[kind]):
        record, origin = each.record, f"{each.distribution} {each.version}"
        table.add_row(record.kind, safe(record.name), safe(record.summary), safe(origin))
    session.out.print(table)
    session.out.print(f"scanner: {reading.kind} ({safe(reading.detail, limit=400)})")
    for broken in found.broken:
        about = f"{broken.entry_point} of {broken.distribution} {broken.version}: "
        if is_local(broken.distribution):
            about = f"{broken.distribution}: "
        session.out.print(line(("broken: ", "bold red"), safe(about), broken.reason))
    for off in disabled:
        about = f"the {off['kind']} `{safe(off['name'])}`, by {off['by']}"
        session.out.print(line(("disabled: ", "bold"), safe(about, limit=400)))
    for clash in found.clashes:
        about = f"{clash[0].record.kind} `{safe(clash[0].name)}` is announced by "
        about += " and ".join(_between(clash))
        session.out.print(line(("clash: ", "bold yellow"), safe(about, limit=400)))


def _between(clash: list[Announced[Any]]) -> list[str]:
    return [f"{each.distribution} {each.version}" for each in clash]


def _row(found: Announced[Any], **more: Any) -> dict[str, Any]:
    codes = [code.code for code in found.record.codes]
    return {
        "name": found.name,
        "summary": found.record.summary,
        "distribution": found.distribution,
        "version": found.version,
        **more,
        **({"codes": codes} if codes or found.record.kind == "validator" else {}),
    }


@session_command("show")
@click.argument("name", shell_complete=complete.plugin_names)
def show_command(session: Session, name: str) -> None:
    """Show a plugin and its options.

    NAME is a name from `tfrecreg plugins list`. To set the options of a source, use `--option` or
    the dataset's `options`. Set the options of a validator in `limits.NAME` of a gate.
    """
    from tfrecreg.core.plugins.records import PLUGIN_KINDS, PluginRecord

    known = session.plugins(untrusted=True)
    found = [(each, known.describe(each)) for each in known.named(PluginRecord, name)]
    if session.as_json:
        documents: dict[str, list[dict[str, Any]]] = {kind.plural: [] for kind in PLUGIN_KINDS}
        for each, options in found:
            documents[each.record.plural].append(_row(each, module=each.module, options=options))
        session.print_json(documents)
        return
    for number, (each, options) in enumerate(found):
        if number:
            session.out.print()
        _print_plugin(session, each, options)


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
        default = "required" if each.required else safe(each.default or "")
        table.add_row(safe(each.name), each.type, default, safe(each.help, limit=1000))
    session.out.print(table)


_PLACES = {
    "list": (
        "tfrecreg.cli.plugins:list_command",
        "List all plugins, including broken and clashing ones",
    ),
    "show": ("tfrecreg.cli.plugins:show_command", "Show a plugin and its options"),
    **PLUGIN_COMMANDS,
}


class _Group(LazyGroup):
    """Without a subcommand, `plugins` lists the plugins."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(name="plugins", cls=_Group, places=_PLACES)
def command() -> None:
    """List plugins, show their options, write new ones.

    Installed distributions provide plugins through entry points of the group `tfrecreg`, and a
    registry may have local plugins.
    """

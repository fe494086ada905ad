"""`tfrecreg plugins`: each subcommand is a module here."""

from __future__ import annotations

from importlib import import_module

import click

from tfrecreg.core.plugins.bundled import PLUGIN_COMMANDS
from tfrecreg.core.terminal.session import LazyGroup

_LINES = {
    "list": "List all plugins, and those that are broken or clash",
    "show": "Show a plugin and its options",
    **{name: line for name, (_, line) in PLUGIN_COMMANDS.items()},
}


class _Group(LazyGroup):
    """Without a subcommand, `plugins` lists them. Some subcommands are of rooms."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in PLUGIN_COMMANDS:
            command: click.Command = import_module(PLUGIN_COMMANDS[cmd_name][0]).command
            return command
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(name="plugins", cls=_Group, package="tfrecreg.cli.plugins", lines=_LINES)
def command() -> None:
    """List plugins, show their options, write new ones.

    Installed distributions provide them through entry points of the group `tfrecreg`, and a
    registry may have local ones.
    """

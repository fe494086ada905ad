"""`tfrecreg plugins`: each subcommand is a module here."""

from __future__ import annotations

import click

from tfrecreg.core.plugins.bundled import PLUGIN_COMMANDS
from tfrecreg.core.terminal.session import LazyGroup

_PLACES = {
    "list": (
        "tfrecreg.cli.plugins.list:list_command",
        "List all plugins, and those that are broken or clash",
    ),
    "show": ("tfrecreg.cli.plugins.show:show_command", "Show a plugin and its options"),
    **PLUGIN_COMMANDS,
}


class _Group(LazyGroup):
    """Without a subcommand, `plugins` lists them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(name="plugins", cls=_Group, places=_PLACES)
def command() -> None:
    """List plugins, show their options, write new ones.

    Installed distributions provide them through entry points of the group `tfrecreg`, and a
    registry may have local ones.
    """

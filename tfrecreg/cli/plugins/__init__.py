"""`tfrecreg plugins`: each subcommand is a module here."""

from __future__ import annotations

import click

from tfrecreg.commands.lazy_group import LazyGroup

_LINES = {
    "list": "List all plugins, and those that are broken or clash",
    "show": "Show a plugin and its options",
}


class _Group(LazyGroup):
    """Without a subcommand, `plugins` lists them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


@click.group(name="plugins", cls=_Group, package="tfrecreg.cli.plugins", lines=_LINES)
def command() -> None:
    """List plugins, and show their options.

    Installed distributions provide them through entry points of the group `tfrecreg`.
    """

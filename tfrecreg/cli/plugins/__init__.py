"""`tfrecreg plugins`: each subcommand is a module here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.cli.app import LazyGroup

if TYPE_CHECKING:
    from tfrecreg.commands.session import Session
    from tfrecreg.plugins.manager import Plugins

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


def plugins_here(session: Session) -> Plugins:
    """The plugins that the registry of this call, where there is one, does not switch off."""
    from tfrecreg.plugins.manager import plugins, plugins_of
    from tfrecreg.registry.registry import find_registry

    if session.registry is None and find_registry() is None:
        return plugins()
    return plugins_of(session.open().config)

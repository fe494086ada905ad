"""A group whose commands are imported when they are run, not before."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

from tfrecreg.core.values.suggest import did_you_mean


class LazyGroup(click.Group):
    """A group whose commands are found by name in modules of a package."""

    def __init__(self, *, package: str, lines: Mapping[str, str], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]  # click's own settings
        self._package = package
        self.lines = lines

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self.lines:
            return None
        command: click.Command = import_module(f"{self._package}.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            known = self.list_commands(ctx)
            message = error.message.rstrip(".") + did_you_mean(args[0], known)
            raise click.UsageError(message, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(self.lines.items()))

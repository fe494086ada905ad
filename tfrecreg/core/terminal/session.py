"""The context of a call, which every command gets.

The module also has a group of commands. A command is imported when it is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from tfrecreg._version import JSON_VERSION
from tfrecreg.core.values.text import did_you_mean, json_data, safe

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.core.plugins.manager import Plugins
    from tfrecreg.core.registry.registry import Registry
    from tfrecreg.core.terminal.console import ConsoleProgress
    from tfrecreg.core.workers.context import Context
    from tfrecreg.core.workers.interface import Engine

COMPLETE = "_TFRECREG_COMPLETE"
"""Environment variable that a completion script sets to request completions."""


@dataclass
class Session:
    """The context of one command-line call: its registry and output format."""

    registry: str | None = None
    """Value of `-C`."""
    as_json: bool = False
    reported: bool = False
    """Whether a report in the requested format already states why the command failed."""

    def open(self) -> Registry:
        """The registry of this call."""
        from tfrecreg.core.registry.registry import open_registry

        return open_registry(self.registry)

    @property
    def out(self) -> Console:
        """The console for results."""
        from tfrecreg.core.terminal.console import stdout

        return stdout()

    @property
    def err(self) -> Console:
        """The console for messages."""
        from tfrecreg.core.terminal.console import stderr

        return stderr()

    def progress(self) -> ConsoleProgress:
        """A progress bar on a terminal, nothing in a pipe."""
        from tfrecreg.core.terminal.console import ConsoleProgress

        return ConsoleProgress()

    def context(self, engine: Engine | None = None) -> Context:
        """The registry (as the user named it), the engine and the progress of this call."""
        return {"registry": self.registry, "engine": engine, "progress": self.progress()}

    def print_json(self, document: object, output: str | None = None) -> None:
        """Print a result as a JSON document on stdout, or write it to the file `output`."""
        from tfrecreg.core.terminal.output import write_json

        write_json({"format_version": JSON_VERSION, **json_data(document)}, output)

    def printed_json(self, document: object) -> bool:
        """If the call asks for JSON, print a result as JSON and return True."""
        if self.as_json:
            self.print_json(document)
        return self.as_json

    def plugins(self, *, untrusted: bool = False) -> Plugins:
        """The plugins of this call's registry, if there is one.

        Args:
            untrusted: whether untrusted local plugins are listed as broken rather than
                refused.
        """
        from tfrecreg.core.plugins.manager import plugins, plugins_of
        from tfrecreg.core.registry.registry import find_registry

        if self.registry is None and find_registry() is None:
            return plugins()
        return plugins_of(self.open().config, untrusted=untrusted)

    def warn_of_broken_plugins(self) -> None:
        """Warn of broken plugins, whose records are missing."""
        from tfrecreg.core.terminal.console import line

        for each in self.plugins().broken:
            origin = safe(f"{each.entry_point} of {each.distribution} {each.version}")
            about = f"the plugin {origin} is broken: {each.reason}"
            self.err.print(line(("warning: ", "bold yellow"), about))

    def commands(self, commands: Sequence[str]) -> None:
        """Print the git commands to run next."""
        if commands:
            self.err.print("next:")
            for each in commands:
                self.err.print(f"  {each}", style="green")


def session_command(
    name: str, cls: type[click.Command] | None = None
) -> Callable[[Callable[..., Any]], click.Command]:
    """Turn a function into a command. The function gets the :class:`Session`. The last option of
    the command is ``--json``, which prints one document on stdout instead of text.
    """

    def remember(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        del param
        ctx.ensure_object(Session).as_json = value

    def decorate(function: Callable[..., Any]) -> click.Command:
        command = click.command(name, cls)(click.pass_obj(function))
        command.params.append(
            click.Option(
                ["--json", "as_json"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=remember,
                help="Print one JSON document on stdout.",
            )
        )
        return command

    return decorate


def command_at(place: str) -> click.Command:
    """The command at ``module:function``, or the function `command` of ``module``."""
    module, _, name = place.partition(":")
    command: click.Command = getattr(import_module(module), name or "command")
    return command


class LazyGroup(click.Group):
    """A group of commands. Each has a name, a summary, and the place from which it is imported."""

    def __init__(self, *, places: Mapping[str, tuple[str, str]], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]  # click's own settings
        self.places = places
        self.lines = {name: line for name, (_, line) in places.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        return command_at(self.places[cmd_name][0]) if cmd_name in self.places else None

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

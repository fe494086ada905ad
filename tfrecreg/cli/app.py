"""The group of commands. A command's module is imported when the command is run, not before."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

import click

from tfrecreg._version import __version__
from tfrecreg.commands import complete
from tfrecreg.commands.session import Session

COMMANDS: Mapping[str, str] = {
    "init": "Make a folder a registry",
    "demo": "Run the whole workflow on generated sample data",
    "build": "Build a dataset's TFRecords from its raw data",
    "adopt": "Make a build from TFRecords written by another tool",
    "release": "Freeze a build under a version number",
    "check": "Check builds, releases or any TFRecord files",
    "report": "Write a page that shows a dataset",
    "site": "Write a static site of the registry",
    "gate": "Judge the report of a check under today's gate and waivers",
    "list": "List the datasets of the registry",
    "show": "Show a build or a release",
    "log": "Show the history of a dataset",
    "diff": "Compare two builds or releases, example by example",
    "digest": "Print the content digest of each split",
    "tag": "Tag a release in git, or yank it",
    "head": "Show the first records",
    "stats": "Show the statistics of the features",
    "schema": "Work with schemas",
    "salvage": "Write the undamaged records of damaged shards",
    "push": "Push the bytes of releases to a DVC remote",
    "pull": "Fetch the bytes of releases to this machine",
    "gc": "List or remove files that are no longer needed",
    "pipeline": "Write or update the stages of datasets in dvc.yaml",
    "export": "Export a build or a release for other tools",
    "plugins": "List plugins, and show their options",
    "explain": "Explain a finding code",
    "completion": "Print the completion script for a shell",
}
"""Help line by command, in the order of `--help`."""


class LazyGroup(click.Group):
    """A group whose commands are found by name in modules of a package.

    Args:
        package: where the modules are; the command `list` is `list_` or `list` there.
        lines: command to its line in the help.
    """

    def __init__(self, *, package: str, lines: Mapping[str, str], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type]  # click's own settings
        self._package = package
        self._lines = lines

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self._lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in self._lines:
            return None
        module = import_module(f"{self._package}.{cmd_name}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from tfrecreg.suggest import did_you_mean

            message = error.message.rstrip(".") + did_you_mean(args[0], self._lines)
            raise click.UsageError(message, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(self._lines.items()))


@click.group(
    cls=LazyGroup,
    package="tfrecreg.cli",
    lines=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
@click.option(
    "-C",
    "registry",
    metavar="DIR",
    type=click.Path(file_okay=False),
    shell_complete=complete.folders,
    help="The registry's folder. Default: the nearest one, from the current folder upwards.",
)
@click.version_option(__version__, "-V", "--version", message="tfrecreg %(version)s")
@click.pass_context
def app(ctx: click.Context, registry: str | None) -> None:
    """Versioned, validated TFRecord datasets.

    Exit codes: 0 clean, 1 findings or refused, 2 usage or bad input, 3 the tool, a plugin or the
    machine failed, or a check is incomplete, 130 interrupted, 141 nobody reads the output.
    """
    ctx.ensure_object(Session).registry = registry

"""The group of all commands of the package and of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tfrecreg._version import __version__
from tfrecreg.core.plugins.bundled import COMMANDS, COMMANDS_BY_GROUP
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import LazyGroup, Session, command_at
from tfrecreg.core.values.errors import TfrecregError

if TYPE_CHECKING:
    from tfrecreg.core.plugins.manager import Announced, Plugins
    from tfrecreg.core.plugins.records import CommandRecord


class _App(LazyGroup):
    """Looks at plugins in only two cases: to find an unknown command, and to list all commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.lines, *dict.fromkeys(each.name for each in _of_others(ctx))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self.places:
            return command_at(self.places[cmd_name][0])
        from tfrecreg.core.plugins.records import CommandRecord
        from tfrecreg.core.values.errors import UnknownPluginError

        known = _plugins(ctx)
        try:
            announced = known.find(CommandRecord, cmd_name)
        except UnknownPluginError:
            ctx.ensure_object(Session).warn_of_broken_plugins()
            return None
        ctx.meta[__name__] = announced
        found: click.Command = known.load(CommandRecord, announced.qualified)
        return found

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (TfrecregError, click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            from tfrecreg.core.plugins.guard import failure
            from tfrecreg.core.terminal.streams import write_failure

            announced = ctx.meta.get(__name__)
            is_of_output = isinstance(error, OSError) and write_failure() is not None
            if announced is None or is_of_output:
                raise
            raise failure(announced.plugin_id, "failed", error) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections = {
            title: {name: line for name, (_, line) in group.items()}
            for title, group in COMMANDS_BY_GROUP.items()
        }
        for each in _of_others(ctx):
            from tfrecreg.core.values.text import safe

            title = safe(each.record.section, limit=60) or "Commands of plugins"
            sections.setdefault(title, {})[each.name] = safe(each.record.summary, limit=200)
        width = max(len(name) for lines in sections.values() for name in lines)
        for title, lines in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in lines.items()])


def _of_others(ctx: click.Context) -> list[Announced[CommandRecord]]:
    """Return the commands of other distributions, in order of their names."""
    from tfrecreg.core.plugins.entry_points import may_be_installed

    if not may_be_installed():
        return []
    from tfrecreg.core.plugins.records import CommandRecord

    return [each for each in _plugins(ctx).every(CommandRecord) if not each.plugin_id.is_ours]


def _plugins(ctx: click.Context) -> Plugins:
    from tfrecreg.core.plugins.manager import plugins

    try:
        return Session(ctx.find_root().params.get("registry")).plugins()
    except TfrecregError:  # of the registry: commands that open the registry report the error
        return plugins()


@click.group(
    cls=_App,
    places=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    epilog="Exit codes: 0 clean, 1 findings or refused, 2 usage or bad input, 3 the tool, a plugin "
    "or the machine failed, or a check is incomplete, 130 interrupted, 141 output pipe "
    "closed.",
)
@click.option(
    "-C",
    "registry",
    metavar="DIR",
    type=click.Path(file_okay=False),
    shell_complete=complete.folders,
    help="The registry's folder. Default: the nearest registry, from the current folder upwards.",
)
@click.version_option(__version__, "-V", "--version", message="tfrecreg %(version)s")
@click.pass_context
def app(ctx: click.Context, registry: str | None) -> None:
    """Versioned, validated TFRecord datasets.

    \b
      tfrecreg demo                   run the whole workflow on sample data
      tfrecreg check FILE.tfrecord    find what is wrong with your files
      tfrecreg init && tfrecreg build mnist --source mnist --raw raw/mnist
    """
    ctx.ensure_object(Session).registry = registry

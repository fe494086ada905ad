"""The options that several commands share.

The options that say how a dataset is built, of the commands that build it or plan to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.complete import named_by
from tfrecreg.core.terminal.session import Session
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

F = TypeVar("F", bound=Callable[..., Any])


def jobs_option(function: F) -> F:
    """``--jobs N``, ``--engine NAME`` and ``--engine-option K=V``. The command gets an `engine`.

    Its workers are started when work for them is there.
    """

    @wraps(function)
    def call(
        *args: Any, jobs: int | None, engine_name: str, engine_option: Any, **more: Any
    ) -> Any:
        from tfrecreg.core.plugins.engines import named_engine

        ctx = click.get_current_context()
        given = ctx.get_parameter_source("jobs")
        if engine_name != "local" and given is not ParameterSource.COMMANDLINE:
            jobs = None  # TFRECREG_JOBS is for the processors of this machine
        elif given is ParameterSource.ENVIRONMENT and jobs is not None and jobs < 1:
            raise UsageError(
                f"TFRECREG_JOBS should be at least 1, found {jobs}",
                hint="unset it to use every processor",
            )
        options = pairs(engine_option, "--engine-option", example="address=tcp://host:8786")
        session = ctx.find_object(Session) or Session()
        engine = named_engine(engine_name, jobs, options, session.plugins)
        ctx.call_on_close(engine.close)
        return function(*args, engine=engine, **more)

    for decorate in (
        click.option(
            "--engine-option",
            multiple=True,
            metavar="K=V",
            help="Option of the engine. Repeatable.",
        ),
        click.option(
            "--engine",
            "engine_name",
            metavar="NAME",
            default="local",
            envvar="TFRECREG_ENGINE",
            shell_complete=named_by("EngineRecord", "local"),
            help="Engine that runs the work: local, or one from `tfrecreg plugins list`. Default: "
            "TFRECREG_ENGINE, or local.",
        ),
        click.option(
            "-j",
            "--jobs",
            type=int,
            metavar="N",
            envvar="TFRECREG_JOBS",
            help="Number of parallel processes or workers. Default: TFRECREG_JOBS, or all "
            "processors; with another engine, all its workers.",
        ),
    ):
        call = decorate(call)
    return cast(F, call)


def where_option(function: F) -> F:
    """``--where SQL``."""
    return click.option(
        "--where",
        metavar="SQL",
        help="Only records for which this condition holds: \"label = 'cat' AND width >= 224\". "
        "`tfrecreg query TARGET` shows the columns.",
    )(function)


class PluginOption(click.Option):
    """An option that takes the name of a plugin: its help and its completion list those
    there are.
    """

    def __init__(self, *arguments: Any, record: str, **more: Any) -> None:
        super().__init__(*arguments, shell_complete=named_by(record), **more)
        self._record = record

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The flag and the help, with a line on each plugin."""
        from tfrecreg.core.plugins import manager, records

        found = manager.plugins().every(getattr(records, self._record))
        words = [self.help, *(f"{each.name}: {each.record.summary}." for each in found)]
        shown = click.Option(self.opts, help=safe(" ".join(filter(None, words)), limit=5000))
        shown.metavar, shown.required = self.metavar, self.required
        return shown.get_help_record(ctx)


def pairs(values: Sequence[str], option: str, *, example: str = "prefix=train") -> dict[str, str]:
    """``K=V`` arguments as a mapping."""
    found: dict[str, str] = {}
    for value in values:
        key, equals, rest = value.partition("=")
        if not equals or not key:
            raise UsageError(
                f"`{option} {safe(value)}` should be `{option} KEY=VALUE`",
                hint=f"as in `{option} {example}`",
            )
        if key in found:
            raise UsageError(f"`{option} {safe(key)}=` was given twice", hint="give it once")
        found[key] = rest
    return found


_OPTIONS = (
    click.option(
        "--source",
        metavar="S",
        shell_complete=complete.sources,
        help="Source plugin that reads the raw data. Default: the saved one, else the one that "
        "fits best.",
    ),
    click.option(
        "--raw",
        metavar="PATH",
        shell_complete=complete.folders,
        help="Folder of the raw data, or its URL.",
    ),
    click.option(
        "--option",
        "options",
        metavar="K=V",
        multiple=True,
        help="Option of the source. Repeatable.",
    ),
    click.option("--shards", type=int, metavar="N", help="Make N shards of each split."),
    click.option("--shard-size", metavar="SIZE", help="Make shards of about SIZE, such as 128MiB."),
    click.option(
        "--records-per-shard", type=int, metavar="N", help="Put at most N records into a shard."
    ),
    click.option("--hosts", type=int, metavar="N", help="Make enough shards for N training hosts."),
    click.option(
        "--compression",
        type=click.Choice(["none", "gzip"]),
        help="Compression of the shards. Default: none.",
    ),
    click.option(
        "--base",
        metavar="REF|none",
        shell_complete=complete.releases,
        help="Keep the unchanged shards of this release. Default: the latest; none: reshuffle all.",
    ),
    click.option(
        "--default-schema",
        is_flag=True,
        help="If the dataset's schema is missing, use the source's own, even if it differs.",
    ),
    click.option(
        "--max-skipped", metavar="N|P%", help="Accept up to this many skipped items. Default: 0."
    ),
    click.option(
        "--max-dropped",
        metavar="N|P%",
        help="Accept up to this many dropped objects per split. Default: 1%.",
    ),
    click.option(
        "--save-options",
        "save",
        is_flag=True,
        help="Save these settings in datasets/NAME.toml for later builds.",
    ),
)
_TAKEN_OVER = (
    *("source", "raw", "compression", "base", "default_schema"),
    *("max_skipped", "max_dropped", "save"),
)


def settings_options(function: F) -> F:
    """From ``--source`` to ``--save-options``. The command gets `settings`, which are keywords of
    `tfrecreg.core.build.request.BuildRequest`.
    """

    @wraps(function)
    def call(
        *args: Any,
        options: tuple[str, ...],
        shards: int | None,
        shard_size: str | None,
        records_per_shard: int | None,
        hosts: int | None,
        **more: Any,
    ) -> Any:
        from tfrecreg.core.values.shards import shard_policy

        settings = {name: more.pop(name) for name in _TAKEN_OVER}
        settings["options"] = pairs(options, "--option")
        settings["policy"] = shard_policy(shards, shard_size, records_per_shard, hosts)
        return function(*args, settings=settings, **more)

    for decorate in reversed(_OPTIONS):
        call = decorate(call)
    return cast(F, call)

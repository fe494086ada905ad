"""Options that do not belong to a verb: the engine, and names of plugins."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click
from click.core import ParameterSource

from tfrecreg.core.terminal.complete import named_by
from tfrecreg.core.terminal.session import Session
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

F = TypeVar("F", bound=Callable[..., Any])


def jobs_option(function: F) -> F:
    """``--jobs N``, ``--engine NAME`` and ``--engine-option K=V``. The command gets an `engine`.

    Its workers are started when there is work for them.
    """

    @wraps(function)
    def call(
        *args: Any, jobs: int | None, engine_name: str, engine_option: Any, **more: Any
    ) -> Any:
        from tfrecreg.core.plugins.engines import named_engine
        from tfrecreg.core.values.typed_values import pairs_of

        ctx = click.get_current_context()
        given = ctx.get_parameter_source("jobs")
        if engine_name != "local" and given is not ParameterSource.COMMANDLINE:
            jobs = None  # TFRECREG_JOBS only applies to the processors of this machine
        elif given is ParameterSource.ENVIRONMENT and jobs is not None and jobs < 1:
            raise UsageError(f"TFRECREG_JOBS should be at least 1, found {jobs}")
        options = pairs_of(engine_option, "--engine-option")
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


class PluginOption(click.Option):
    """An option that takes the name of a plugin. Its help lists the available plugins, and the
    shell completes their names.
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

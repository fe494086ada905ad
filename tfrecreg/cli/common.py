"""The context of a call and the options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from tfrecreg._version import JSON_VERSION

if TYPE_CHECKING:
    from rich.console import Console

    from tfrecreg.cli.render.console import ConsoleProgress
    from tfrecreg.registry.registry import Registry

F = TypeVar("F", bound=Callable[..., Any])

COMPLETE = "_TFRECREG_COMPLETE"
"""Environment variable that a completion script sets to request completions."""


@dataclass
class Face:
    """The context of one command-line call: its registry and output format."""

    registry: str | None = None
    """Value of `-C`."""
    as_json: bool = False
    reported: bool = False
    """Whether a report in the requested format already states why the command failed."""

    def open(self) -> Registry:
        """The registry of this call."""
        from tfrecreg.registry.registry import open_registry

        return open_registry(self.registry)

    @property
    def out(self) -> Console:
        """For results."""
        from tfrecreg.cli.render.console import stdout

        return stdout()

    @property
    def err(self) -> Console:
        """For messages."""
        from tfrecreg.cli.render.console import stderr

        return stderr()

    def progress(self) -> ConsoleProgress:
        """A progress bar on a terminal, nothing in a pipe."""
        from tfrecreg.cli.render.console import ConsoleProgress

        return ConsoleProgress()

    def print_json(self, document: object, output: str | None = None) -> None:
        """Print a result as a JSON document on stdout, or write it to the file `output`."""
        from tfrecreg.cli.output import write_json
        from tfrecreg.json_data import json_data

        write_json({"format_version": JSON_VERSION, **json_data(document)}, output)

    def warn_of_broken_plugins(self) -> None:
        """Warn of broken plugins, whose records are missing.

        Commands that use plugins call this first, before they hold a lock or start a thread: if
        third-party plugins are installed, the rest of the command runs in a child process.
        """
        from tfrecreg.cli.render.console import line
        from tfrecreg.plugins.manager import plugins
        from tfrecreg.text import safe

        for each in plugins().broken:
            origin = safe(f"{each.entry_point} of {each.distribution} {each.version}")
            about = f"the plugin {origin} is broken: {each.reason}"
            self.err.print(line(("warning: ", "bold yellow"), about))

    def commands(self, commands: Sequence[str]) -> None:
        """Print the git commands to run next."""
        if commands:
            self.err.print("next:")
            for each in commands:
                self.err.print(f"  {each}", style="green")


def json_option(function: F) -> F:
    """``--json``: one document on stdout instead of text."""

    def remember(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
        del param
        ctx.ensure_object(Face).as_json = value
        return value

    decorate: Callable[[F], F] = click.option(
        "--json",
        "as_json",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=remember,
        help="Print one JSON document on stdout.",
    )
    return decorate(function)


ENGINE_PARAMETERS = frozenset({"jobs", "engine_name", "engine_option"})
"""Names of the parameters that :func:`jobs_option` adds."""


def jobs_option(function: F) -> F:
    """``--jobs N``, ``--engine NAME`` and ``--engine-option K=V``. The command gets an `engine`.

    Its workers are started when work for them is there.
    """

    @wraps(function)
    def call(
        *args: Any, jobs: int | None, engine_name: str, engine_option: Any, **more: Any
    ) -> Any:
        from tfrecreg.engines.choose import open_engine

        ctx = click.get_current_context()
        given = ctx.get_parameter_source("jobs")
        if engine_name != "local" and given is not ParameterSource.COMMANDLINE:
            jobs = None  # TFRECREG_JOBS is for the processors of this machine
        options = pairs(engine_option, "--engine-option", example="address=tcp://host:8786")
        engine = open_engine(engine_name, jobs=jobs, **options)
        ctx.call_on_close(engine.close)
        return function(*args, engine=engine, **more)

    for decorate in (
        click.option(
            "--engine-option",
            multiple=True,
            metavar="K=V",
            help="An option of the engine, repeatable.",
        ),
        click.option(
            "--engine",
            "engine_name",
            metavar="NAME",
            default="local",
            envvar="TFRECREG_ENGINE",
            help="Where to work: local, dask, beam, ray or futures:MODULE:CALLABLE. Default: "
            "TFRECREG_ENGINE, or local.",
        ),
        click.option(
            "-j",
            "--jobs",
            type=int,
            metavar="N",
            envvar="TFRECREG_JOBS",
            help="Number of parallel processes. Default: TFRECREG_JOBS, or the number of "
            "processors. With another engine: of its workers.",
        ),
    ):
        call = decorate(call)
    return cast(F, call)


def was_given(parameter: click.Parameter) -> bool:
    """Whether the user gave this parameter of the current command as an argument."""
    context = click.get_current_context()
    return context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE


def given_besides(allowed: Container[str]) -> str | None:
    """The first option of the current command that was given and is none of the parameters
    `allowed`; None if there is none.
    """
    for parameter in click.get_current_context().command.params:
        if parameter.name not in allowed and was_given(parameter):
            return parameter.opts[0]
    return None


def pairs(values: Sequence[str], option: str, *, example: str = "prefix=train") -> dict[str, str]:
    """``K=V`` arguments as a mapping.

    Raises:
        UsageError: one has no ``=``, or a key occurs twice.
    """
    from tfrecreg.errors import UsageError
    from tfrecreg.text import safe

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

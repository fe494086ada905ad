"""`tfrecreg plugins new`."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_KINDS = {
    "source": "A source, which reads raw data (the default).",
    "validator": "A validator, which checks records.",
    "exporter": "An exporter, for `export --to`.",
    "report-format": "A report format, for `check --format`.",
    "engine": "An engine, for `--engine`.",
    "command": "A command, `tfrecreg NAME`.",
    "decoder": "A decoder of the values of features.",
}


def _kind_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for kind, text in reversed(_KINDS.items()):
        option = click.option(f"--{kind}", kind.replace("-", "_"), is_flag=True, help=text)
        function = option(function)
    return function


@session_command("new")
@click.argument("name")
@_kind_options
@click.option(
    "--output",
    metavar="DIR",
    shell_complete=complete.folders,
    help="The folder to write. Default: tfrecreg-NAME.",
)
def command(session: Session, name: str, output: str | None, **kinds: bool) -> None:
    """Write the package of a new plugin.

    The package works as it is: code with options, tests, an entry point, a workflow for continuous
    integration. Change the code to what you need, and run the tests. Nothing is overwritten.
    """
    from tfrecreg.builtin.new_plugin.write import NEW_KINDS, write_package

    chosen = [kind for kind in _KINDS if kinds[kind.replace("-", "_")]] or ["source"]
    if len(chosen) > 1:
        words = " and ".join(f"`--{each}`" for each in chosen)
        raise UsageError(f"{words} exclude each other", hint="a package is of one kind")
    written = write_package(name, NEW_KINDS[chosen[0]], output)
    if session.printed_json(written):
        return
    where = safe(written.folder, limit=1000)
    session.out.print(f"wrote the {written.kind} `{written.name}`, in {where}")
    for path in written.files:
        session.out.print(f"  {path}")
    session.err.print("next:")
    session.err.print(f"  pip install -e {safe(shlex.quote(f'{written.folder}[test]'))}")
    session.err.print(f"  pytest {safe(shlex.quote(written.folder))}")

"""The commands of rooms, announced like those of any plugin."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from tfrecreg.core.plugins.bundled import COMMANDS
from tfrecreg.core.plugins.records import CommandRecord
from tfrecreg.core.plugins.specs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def tfrecreg_commands() -> Iterator[CommandRecord]:
    """Announce the commands of rooms. Those of the core need no announcement."""
    for name, (module, line) in COMMANDS.items():
        if not module.startswith("tfrecreg.cli."):
            yield CommandRecord(name=name, summary=line, load=partial(_command, module))


def _command(module: str) -> click.Command:
    command: click.Command = import_module(module).command
    return command

"""The commands of rooms, announced like the commands of plugins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from tfrecreg.core.plugins.bundled import COMMANDS
from tfrecreg.core.plugins.records import CommandRecord
from tfrecreg.core.plugins.specs import hookimpl
from tfrecreg.core.terminal.session import command_at


@hookimpl
def tfrecreg_commands() -> Iterator[CommandRecord]:
    """Announce the commands that are defined outside the core. The core's commands need no
    announcement.
    """
    for name, (place, line) in COMMANDS.items():
        if not place.startswith("tfrecreg.cli."):
            yield CommandRecord(name=name, summary=line, load=partial(command_at, place))

"""`tfrecreg log`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command


@session_command("log")
@click.argument("name", shell_complete=complete.datasets)
def log_command(session: Session, name: str) -> None:
    """Show the history of a dataset.

    Lists the releases of NAME, newest first, with the changes of each.
    """
    from tfrecreg.core.registry.listing import log

    entries = log(session.open(), name)
    if session.printed_json({"dataset": name, "releases": entries}):
        return
    from tfrecreg.core.terminal.render.catalog import print_log

    print_log(session.out, name, entries)

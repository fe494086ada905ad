"""`tfrecreg log`."""

from __future__ import annotations

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option


@click.command(name="log")
@click.argument("name", shell_complete=complete.datasets)
@json_option
@click.pass_obj
def command(face: Face, name: str) -> None:
    """Show the history of a dataset.

    Lists the releases of NAME, newest first, with the changes of each.
    """
    from tfrecreg.operations.catalog import log

    entries = log(face.open(), name)
    if face.as_json:
        face.print_json({"dataset": name, "releases": entries})
        return
    from tfrecreg.cli.render.catalog import print_log

    print_log(face.out, name, entries)

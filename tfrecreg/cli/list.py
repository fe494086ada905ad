"""`tfrecreg list`."""

from __future__ import annotations

import click

from tfrecreg.cli.common import Face, json_option


@click.command(name="list")
@json_option
@click.pass_obj
def command(face: Face) -> None:
    """List the datasets of the registry.

    Each line has the newest release, the number of releases, and the size.
    """
    from tfrecreg.operations.catalog import list_datasets

    listed = list_datasets(face.open())
    if face.as_json:
        face.print_json({"datasets": listed})
        return
    from tfrecreg.cli.render.catalog import print_list

    print_list(face.out, listed)

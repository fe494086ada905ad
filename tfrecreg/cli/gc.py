"""`tfrecreg gc`."""

from __future__ import annotations

import click

from tfrecreg.cli.common import Face, json_option


@click.command(name="gc")
@click.option("--apply", is_flag=True, help="Remove what is listed. Without it nothing is removed.")
@click.option(
    "-r", "--remote", metavar="NAME", help="The DVC remote that makes a copy superfluous."
)
@json_option
@click.pass_obj
def command(face: Face, apply: bool, remote: str | None) -> None:
    """List what may go from this machine, or remove it.

    That is what killed commands left behind, copies of releases that the DVC remote has as well,
    and objects of DVC's cache that belong to builds which no release in any branch or tag and no
    pointer refers to. What is not of tfrecreg is left alone.
    """
    from dataclasses import asdict

    from tfrecreg.operations.remote import gc

    doomed = gc(face.open(), apply=apply, remote=remote, progress=face.progress())
    if face.as_json:
        face.print_json({"removed": apply, "items": [asdict(each) for each in doomed]})
        return
    from tfrecreg.cli.render.outcomes import print_gc

    print_gc(face.out, doomed, applied=apply)

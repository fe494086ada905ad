"""`tfrecreg push`."""

from __future__ import annotations

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option


@click.command(name="push")
@click.argument("references", nargs=-1, metavar="[REF..]", shell_complete=complete.references)
@click.option("-r", "--remote", metavar="NAME", help="The DVC remote. Default: DVC's default one.")
@json_option
@click.pass_obj
def command(face: Face, references: tuple[str, ...], remote: str | None) -> None:
    """Push the bytes of releases to a DVC remote.

    REF is a release (mnist@1.0.0), or a dataset for all its releases. Without one, every release
    stored in DVC is pushed. Bytes that the remote already has are not sent again, and releases in a
    bucket stay there.
    """
    from tfrecreg.operations.remote import push

    result = push(face.open(), references, remote=remote, progress=face.progress())
    if face.as_json:
        face.print_json({"releases": list(result.releases), "objects": result.objects})
        return
    from tfrecreg.cli.render.outcomes import print_push

    print_push(face.out, result)

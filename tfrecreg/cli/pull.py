"""`tfrecreg pull`."""

from __future__ import annotations

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option


@click.command(name="pull")
@click.argument(
    "references", nargs=-1, required=True, metavar="REF..", shell_complete=complete.references
)
@click.option("-r", "--remote", metavar="NAME", help="The DVC remote. Default: DVC's default one.")
@json_option
@click.pass_obj
def command(face: Face, references: tuple[str, ...], remote: str | None) -> None:
    """Fetch the bytes of releases to this machine.

    REF is a release (mnist@1.0.0), or a dataset for its latest release. The bytes go to
    versions/NAME/VERSION, unless they are already present. Each file is hashed and compared with
    the release, whether it comes from DVC's cache, from the remote or from a bucket. Damaged
    objects in DVC's cache are fetched again.
    """
    from tfrecreg.operations.remote.transfer import pull

    registry, progress = face.open(), face.progress()
    results = [pull(registry, each, remote=remote, progress=progress) for each in references]
    if face.as_json:
        face.print_json({"releases": results})
        return
    from tfrecreg.cli.render.transfers import print_pull

    for result in results:
        print_pull(face.out, result)

"""`tfrecreg show`."""

from __future__ import annotations

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option


@click.command(name="show")
@click.argument("reference", metavar="REF", shell_complete=complete.references)
@json_option
@click.pass_obj
def command(face: Face, reference: str) -> None:
    """Show a build or a release.

    REF is mnist for the build, mnist@1.0.0, mnist@1.* or mnist@latest for a release. The output has
    its splits, sizes, source, ledger, labels and digests.
    """
    from tfrecreg.registry import resolve

    resolved = resolve(face.open(), reference)
    if face.as_json:
        from tfrecreg.operations.catalog import manifest_json

        face.print_json(manifest_json(resolved))
        return
    from tfrecreg.cli.render.catalog import print_manifest
    from tfrecreg.operations.reshuffle_advice import long_tails

    print_manifest(
        face.out,
        resolved.name,
        resolved.folder,
        resolved.manifest,
        yanks=resolved.yanks,
        tails=long_tails(resolved.registry, resolved.manifest),
    )

"""`tfrecreg salvage`."""

from __future__ import annotations

import click

from tfrecreg.cli import complete
from tfrecreg.cli.common import Face, json_option


@click.command(name="salvage")
@click.argument(
    "targets", nargs=-1, required=True, metavar="SHARD..", shell_complete=complete.targets
)
@click.option(
    "--output",
    required=True,
    metavar="DIR",
    shell_complete=complete.folders,
    help="The new folder for what is left.",
)
@json_option
@click.pass_obj
def command(face: Face, targets: tuple[str, ...], output: str) -> int:
    """Write what is left of damaged shards.

    SHARD is a path, folder or glob of TFRecord files, or a reference (mnist, mnist@1.0.0), which
    means its damaged shards. The originals are only read. DIR gets a clean shard of the same name
    for each, what was cut out of it (NAME.quarantine), records that may be none of its own
    (NAME.doubtful), and a report (salvage.json), which marks the set: `tfrecreg check` refuses it
    (SHD009) until the gate says otherwise.
    """
    from tfrecreg.operations.salvage import salvage

    result = salvage(targets, output, registry=face.registry, progress=face.progress())
    if face.as_json:
        face.print_json(result.to_json())
    else:
        from tfrecreg.cli.render.outcomes import print_salvage

        print_salvage(face.out, result)
    return result.exit_code

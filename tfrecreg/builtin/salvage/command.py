"""`tfrecreg salvage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


@session_command("salvage")
@click.argument(
    "targets", nargs=-1, required=True, metavar="SHARD..", shell_complete=complete.targets
)
@click.option(
    "--output",
    required=True,
    metavar="DIR",
    shell_complete=complete.folders,
    help="New folder for the salvaged shards.",
)
@jobs_option
def command(session: Session, targets: tuple[str, ...], output: str, engine: Engine) -> int:
    """Write the undamaged records of damaged shards.

    SHARD is a path, URL, folder or glob of TFRecord files, or a reference (mnist, mnist@1.0.0),
    which selects its damaged shards. The originals are never changed. For each shard, DIR gets a
    clean shard of the same name, the bytes that were cut out (NAME.quarantine), and records that
    may not belong to the shard (NAME.doubtful). A report (salvage.json) marks the set: `tfrecreg
    check` refuses it (SHD009) unless the gate accepts it.
    """
    from tfrecreg.builtin.salvage.run import salvage

    result = salvage(
        targets, output, registry=session.registry, engine=engine, progress=session.progress()
    )
    if not session.printed_json(result):
        from tfrecreg.builtin.salvage.printed import print_salvage

        print_salvage(session.out, result)
    return result.exit_code

"""`tfrecreg repair`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


@session_command("repair")
@click.argument("reference", metavar="REF", shell_complete=complete.references)
@click.option(
    "--raw",
    metavar="PATH",
    shell_complete=complete.folders,
    help="Folder of the raw data, or its URL. Default: as in the dataset's settings.",
)
@jobs_option
def command(session: Session, reference: str, raw: str | None, engine: Engine) -> None:
    """Rebuild missing and damaged files, byte for byte.

    REF is a build (mnist) or a release (mnist@1.0.0). Files are restored from sound copies in
    versions/, data/ or DVC. In shards without a copy, undamaged records stay and the
    rest is rebuilt from the raw data. If the result is not byte for byte the original, nothing is
    changed.
    """
    from tfrecreg.builtin.repair.run import repair

    registry = session.open()
    session.warn_of_broken_plugins()
    result = repair(registry, reference, raw=raw, engine=engine, progress=session.progress())
    if session.printed_json(result):
        return
    from tfrecreg.builtin.repair.printed import print_repair

    print_repair(session.out, result)

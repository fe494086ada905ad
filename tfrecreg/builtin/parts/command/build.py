"""`tfrecreg parts build`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.commands import complete
from tfrecreg.commands.options import jobs_option
from tfrecreg.commands.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.engines.interface import Engine


@session_command("build")
@click.argument("folder", metavar="DIR", shell_complete=complete.folders)
@click.option(
    "--part", "text", required=True, metavar="I/N", help="Number of the part, I from 1 to N."
)
@click.option(
    "--raw",
    metavar="PATH",
    shell_complete=complete.folders,
    help="Folder of the raw data, or its URL. Default: that of the plan.",
)
@jobs_option
def command(session: Session, folder: str, text: str, raw: str | None, engine: Engine) -> None:
    """Make the shards of one part of a plan.

    DIR is the folder of the plan, or its URL. Finished shards are not made again. No registry is
    needed, except for a build that grows from a release.
    """
    from tfrecreg.operations.builds.parts.one_part import parse_part, run_part

    session.warn_of_broken_plugins()
    result = run_part(
        folder,
        parse_part(text),
        raw=raw,
        registry=session.open,
        engine=engine,
        progress=session.progress(),
    )
    if session.as_json:
        session.print_json(result)
        return
    from tfrecreg.text import count, si_bytes

    if not result.shards:
        session.out.print(f"part {result.part} of {result.dataset} has no shards: nothing to do")
        return
    were = "was" if result.finished_before == 1 else "were"
    before = f", {result.finished_before} {were} finished before" if result.finished_before else ""
    session.out.print(
        f"part {result.part} of {result.dataset}: made {count(result.made, 'shard')}{before}; "
        f"{count(result.records, 'record')}, {si_bytes(result.bytes)}"
    )

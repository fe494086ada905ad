"""`tfrecreg gc`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal.session import Session, session_command


@session_command("gc")
@click.option("--apply", is_flag=True, help="Remove the listed files. Default: only list them.")
@click.option(
    "-r",
    "--remote",
    metavar="NAME",
    help="Remote that must hold a release before its local copy may be removed.",
)
def gc_command(session: Session, apply: bool, remote: str | None) -> None:
    """List or remove files that are no longer needed.

    Lists files left by killed commands, catalogs of shards that nothing needs, copies of releases
    that the DVC remote also has, and builds in DVC's cache without a pointer or a release in any
    branch or tag. Objects that tfrecreg did not create stay.

    A copy of a release is removed only if the remote has all its objects, whose bytes --apply
    verifies first.
    """
    from tfrecreg.builtin.dvc.garbage import gc

    doomed = gc(session.open(), apply=apply, remote=remote, progress=session.progress())
    if session.printed_json({"removed": apply, "items": doomed}):
        return
    from tfrecreg.builtin.dvc.printed import print_gc

    print_gc(session.out, doomed, applied=apply)

"""`tfrecreg gc`."""

from __future__ import annotations

import click

from tfrecreg.commands.session import Session, session_command


@session_command("gc")
@click.option("--apply", is_flag=True, help="Remove the listed files. Default: only list them.")
@click.option(
    "-r",
    "--remote",
    metavar="NAME",
    help="Remote that must hold a release before its local copy may be removed.",
)
@click.option(
    "--buckets",
    is_flag=True,
    help="Also look for folders in the buckets of datasets with the key `data`.",
)
@click.option(
    "--older-than",
    metavar="DAYS",
    type=click.IntRange(min=0),
    default=30,
    show_default=True,
    help="With --buckets: keep folders to which files were added in the last DAYS days.",
)
def command(
    session: Session, apply: bool, remote: str | None, buckets: bool, older_than: int
) -> None:
    """List or remove files that are no longer needed.

    These are files left by killed commands, copies of releases that the DVC remote also has, and
    objects in DVC's cache of builds that no release in any branch or tag, and no pointer, refers
    to. Objects that tfrecreg did not create are never removed.

    Each object of a copied release is looked for in the remote. With --apply, the bytes there are
    verified before the copy is removed: by the store's checksums, or by reading them.

    With --buckets they are also folders in buckets that no build here, and no release in any branch
    or tag, refers to. Builds and unpushed releases of other clones are not known here: --older-than
    has to be longer than they take.
    """
    from tfrecreg.operations.remote.garbage import gc

    doomed = gc(
        session.open(),
        apply=apply,
        remote=remote,
        buckets=buckets,
        older_than=older_than,
        progress=session.progress(),
    )
    if session.printed_json({"removed": apply, "items": doomed}):
        return
    from tfrecreg.cli.render.transfers import print_gc

    print_gc(session.out, doomed, applied=apply)

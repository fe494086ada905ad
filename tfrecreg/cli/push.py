"""`tfrecreg push`."""

from __future__ import annotations

import click

from tfrecreg.commands import complete
from tfrecreg.commands.session import Session, session_command


@session_command("push")
@click.argument("references", nargs=-1, metavar="[REF..]", shell_complete=complete.references)
@click.option("-r", "--remote", metavar="NAME", help="The DVC remote. Default: DVC's default one.")
@click.option(
    "--verify",
    is_flag=True,
    help="Also compare the bytes of what the remote has: its checksums, or by reading it.",
)
@click.option(
    "--repair", is_flag=True, help="As --verify, and replace damaged objects of the remote."
)
def command(
    session: Session, references: tuple[str, ...], remote: str | None, verify: bool, repair: bool
) -> None:
    """Push the bytes of releases to a DVC remote.

    REF is a release (mnist@1.0.0), or a dataset for all its releases. Without one, every release
    stored in DVC is pushed. Each object is looked for in the remote, and its size compared; what
    is there is not sent again. Missing objects come from DVC's cache, data/ or versions/, and are
    hashed before they are sent. Releases in a bucket stay there.
    """
    from tfrecreg.operations.remote.sending import push

    result = push(
        session.open(),
        references,
        remote=remote,
        verify=verify,
        repair=repair,
        progress=session.progress(),
    )
    if session.printed_json(result):
        return
    from tfrecreg.cli.render.transfers import print_push

    print_push(session.out, result, verified=verify or repair)

"""`tfrecreg push`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command


@session_command("push")
@click.argument("references", nargs=-1, metavar="[REF..]", shell_complete=complete.references)
@click.option("-r", "--remote", metavar="NAME", help="DVC remote. Default: DVC's own default.")
@click.option(
    "--verify",
    is_flag=True,
    help="Also verify the bytes in the remote, by its checksums or by reading them.",
)
@click.option(
    "--repair", is_flag=True, help="Like --verify, and replace damaged objects in the remote."
)
def push_command(
    session: Session, references: tuple[str, ...], remote: str | None, verify: bool, repair: bool
) -> None:
    """Push the bytes of releases to a DVC remote.

    REF is a release (mnist@1.0.0), or a dataset for all its releases. Without one, every release
    in DVC is pushed. Objects that the remote has in the right size are not sent again. Missing
    objects come from DVC's cache, data/ or versions/, and are hashed before they are sent.
    """
    from tfrecreg.builtin.dvc.sending import push

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
    from tfrecreg.builtin.dvc.printed import print_push

    print_push(session.out, result, verified=verify or repair)

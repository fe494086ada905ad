"""`tfrecreg schema accept`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.core.workers.interface import Engine


@session_command("accept")
@click.argument("target", shell_complete=complete.targets)
@click.option(
    "--feature",
    "features",
    multiple=True,
    metavar="F",
    help="Resolve only the findings of this feature. Repeatable.",
)
@click.option(
    "--schema",
    metavar="FILE",
    shell_complete=complete.files,
    help="Change this schema instead of the target's own.",
)
@click.option("--write", is_flag=True, help="Write the change. Default: only show it.")
@jobs_option
def accept_command(
    session: Session,
    target: str,
    features: tuple[str, ...],
    schema: str | None,
    write: bool,
    engine: Engine,
) -> int:
    """Propose a schema change that accepts the data.

    TARGET is a dataset, whose build is checked against its working schema; or, with --schema, any
    target of `check`. The smallest possible change is shown as a diff. Comments and layout of the
    file are preserved. The exit code is 1 if there are findings that no schema change can resolve.
    """
    from tfrecreg.builtin.schemas.accept import AcceptOptions, propose, write_proposal

    options = AcceptOptions(features=features, schema=schema)
    proposal = propose(
        target,
        registry=session.registry,
        options=options,
        engine=engine,
        progress=session.progress(),
    )
    written = write and proposal.before != proposal.after
    if written:
        write_proposal(proposal)
    if not session.printed_json(proposal.to_json(written=written)):
        from tfrecreg.builtin.schemas.printed import print_proposal

        print_proposal(session.out, session.err, proposal, written=written)
    return proposal.exit_code

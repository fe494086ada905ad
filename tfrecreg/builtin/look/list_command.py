"""`tfrecreg list`."""

from __future__ import annotations

from tfrecreg.core.terminal.session import Session, session_command


@session_command("list")
def list_command(session: Session) -> None:
    """List the datasets of the registry.

    Each line has the newest release, the number of releases, and the size.
    """
    from tfrecreg.core.registry.listing import list_datasets

    listed = list_datasets(session.open())
    if session.printed_json({"datasets": listed}):
        return
    from tfrecreg.core.terminal.render.catalog import print_list

    print_list(session.out, listed)

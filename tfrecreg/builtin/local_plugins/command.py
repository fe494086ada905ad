"""`tfrecreg plugins trust`."""

from __future__ import annotations

import click

from tfrecreg.builtin.local_plugins.find import change_trust
from tfrecreg.core.terminal.session import Session, session_command


@session_command("trust")
@click.option("--revoke", is_flag=True, help="Stop trusting the registry.")
def command(session: Session, revoke: bool) -> None:
    """Let the local plugins of this registry run on this machine.

    Local plugins are the files that `[plugins] local` names. They run with your rights: read them
    first. A clone of the registry in another folder is trusted on its own.
    """
    home = session.open().storage.root
    change_trust(home, trusted=not revoke)
    if not session.printed_json({"registry": home, "trusted": not revoke}):
        verb = "trusted no longer" if revoke else "trusted"
        session.out.print(f"the local plugins of this registry are {verb} on this machine")

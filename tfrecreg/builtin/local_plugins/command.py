"""`tfrecreg plugins trust`."""

from __future__ import annotations

import click

from tfrecreg.commands.session import Session, session_command


@session_command("trust")
@click.option("--revoke", is_flag=True, help="Stop trusting the registry.")
def command(session: Session, revoke: bool) -> None:
    """Let the local plugins of this registry run on this machine.

    Local plugins are the files that `[plugins] local` or a `source` names. They run with your
    rights: read them first. A clone of the registry in another folder is trusted on its own.
    """
    from tfrecreg.builtin.local_plugins import trust

    home = session.open().storage.root
    trust.change(home, trusted=not revoke)
    if session.printed_json({"registry": home, "trusted": not revoke}):
        return
    verb = "trusted no longer" if revoke else "trusted"
    session.out.print(f"the local plugins of this registry are {verb} on this machine")

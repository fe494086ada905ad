"""`tfrecreg init`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.text import safe


@session_command("init")
@click.argument(
    "folder", metavar="[DIR]", default=None, required=False, shell_complete=complete.folders
)
@click.option(
    "--dvc/--no-dvc",
    "with_dvc",
    default=None,
    help="Whether to set up a DVC repository. Default: for a new registry, if DVC is installed.",
)
def command(session: Session, folder: str | None, with_dvc: bool | None) -> None:
    """Turn a folder into a registry.

    DIR is created if it is missing. The default is the current folder. Existing files are not
    changed. If DVC is installed, a new registry also becomes a DVC repository. An existing registry
    becomes a DVC repository only with `--dvc`. Nothing is committed to git.
    """
    from tfrecreg.core.registry.init import init

    result = init(folder or session.registry or ".", with_dvc=with_dvc)
    if session.printed_json(result):
        return
    made = f"made {', '.join(result.made)}" if result.made else "nothing was missing"
    session.out.print(f"registry at {safe(result.root, limit=1000)}: {made}")
    if result.dvc == "made":
        session.out.print("DVC repository created: DVC will store the bytes of releases")
    elif result.dvc == "absent":
        session.err.print("DVC is not set up: the bytes of releases will go to versions/")
        if with_dvc is None:
            session.err.print("`tfrecreg init --dvc` sets it up")
    session.commands(result.commands)

"""`tfrecreg tag`.

The tags that were made, and those that were there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.console import line
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.builtin.releases.tag import TagResult
    from tfrecreg.core.terminal.session import Session


@session_command("tag")
@click.argument("reference", metavar="REF", shell_complete=complete.releases)
@click.option("--stage", metavar="S", help="Assign the release to this stage, such as prod.")
@click.option(
    "--commit",
    metavar="REV",
    help="Commit to tag. Default: the first one with the release and DVC's pointer to its bytes.",
)
def tag_command(session: Session, reference: str, stage: str | None, commit: str | None) -> None:
    """Tag a release in git.

    REF is a release (mnist@1.2.0). The tags are in GTO's format: mnist@v1.2.0 for the version, and
    mnist#prod#1 for a stage. They point to a commit that holds the release and DVC's pointer to its
    bytes.
    """
    from tfrecreg.builtin.releases.tag import TagRequest, tag

    request = TagRequest(reference=reference, stage=stage, commit=commit)
    result = tag(session.open(), request, progress=session.progress())
    if not session.printed_json(result):
        print_tags(session, result)


def print_tags(session: Session, result: TagResult) -> None:
    """Each tag with its commit, and the commands that publish them."""
    at = f" at commit {result.commit[:12]}"
    for each in result.made:
        session.out.print(line((f"tagged {safe(each)}", "bold"), at))
    for each in result.there:
        session.out.print(line(f"{safe(each)} exists", at))
    session.commands(result.commands)

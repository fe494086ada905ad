"""`tfrecreg tag`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tfrecreg.commands import complete
from tfrecreg.commands.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.operations.tag import TagResult


@session_command("tag")
@click.argument("reference", metavar="REF", shell_complete=complete.releases)
@click.option("--stage", metavar="S", help="Assign the release to this stage, such as prod.")
@click.option("--yank", metavar="REASON", help="Yank the release: `latest` skips it from then on.")
@click.option(
    "--commit",
    metavar="REV",
    help="The commit to tag. Default: the first one that holds the release and its bytes.",
)
def command(
    session: Session, reference: str, stage: str | None, yank: str | None, commit: str | None
) -> None:
    """Tag a release in git, or yank it.

    REF is a release (mnist@1.2.0). The tags are in GTO's format: mnist@v1.2.0 for the version, and
    mnist#prod#1 for a stage. They point to a commit that holds the release and DVC's pointer to its
    bytes.
    """
    from tfrecreg.operations.tag import TagRequest, tag

    request = TagRequest(reference=reference, stage=stage, yank=yank, commit=commit)
    result = tag(session.open(), request, progress=session.progress())
    if session.as_json:
        session.print_json(result)
        return
    _print(session, result)


def _print(session: Session, result: TagResult) -> None:
    from tfrecreg.commands.console import line
    from tfrecreg.text import safe

    if result.yank is not None:
        word = "yanked" if result.yanked_now else "already yanked:"
        head = (f"{word} {result.reference}", "bold")
        session.out.print(line(head, f": {safe(result.yank.reason, limit=1000)}"))
    at = f" at commit {result.commit[:12]}"
    for each in result.made:
        session.out.print(line((f"tagged {safe(each)}", "bold"), at))
    for each in result.there:
        session.out.print(line(f"{safe(each)} exists", at))
    session.commands(result.commands)

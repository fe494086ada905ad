"""`tfrecreg yank`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.session import Session, session_command


@session_command("yank")
@click.argument("reference", metavar="REF", shell_complete=complete.releases)
@click.option(
    "--reason", metavar="TEXT", required=True, help="Reason to show to users of the release."
)
def yank_command(session: Session, reference: str, reason: str) -> None:
    """Mark a release as wrong, so that `latest` skips it.

    REF is a release (mnist@1.2.0). It stays available under its full version, where `show` gives
    the reason and `check` warns. If GTO's tags register the version, a further tag deregisters it.
    """
    from tfrecreg.builtin.releases.yank import yank

    result = yank(session.open(), reference, reason, progress=session.progress())
    if session.printed_json(result):
        return
    from tfrecreg.builtin.releases.tag_command import print_tags
    from tfrecreg.core.terminal.console import line
    from tfrecreg.core.values.text import safe

    word = "yanked" if result.yanked_now else "already yanked:"
    head = (f"{word} {result.reference}", "bold")
    session.out.print(line(head, f": {safe(result.yank.reason, limit=1000)}"))
    print_tags(session, result)

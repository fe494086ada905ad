"""The tags that were made, and those that were there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfrecreg.core.terminal.console import line
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.builtin.releases.tag import TagResult
    from tfrecreg.core.terminal.session import Session


def print_tags(session: Session, result: TagResult) -> None:
    """Each tag with its commit, and the commands that publish them."""
    at = f" at commit {result.commit[:12]}"
    for each in result.made:
        session.out.print(line((f"tagged {safe(each)}", "bold"), at))
    for each in result.there:
        session.out.print(line(f"{safe(each)} exists", at))
    session.commands(result.commands)

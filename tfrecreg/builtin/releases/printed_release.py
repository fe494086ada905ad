"""A new release, with the findings that its gate accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tfrecreg.core.terminal.console import line
from tfrecreg.core.terminal.render.findings import print_accepted
from tfrecreg.core.terminal.session import Session
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.builtin.releases.release import ReleaseResult
    from tfrecreg.core.check.reports.model import Report


def accepted(report: Report | None) -> dict[str, Any]:
    """Findings that did not fail, for a JSON document."""
    document = report.to_json() if report is not None else {}
    return {key: document.get(key, []) for key in ("findings", "waived", "lowered")}


def print_release(session: Session, result: ReleaseResult) -> None:
    """Print the release, new or existing, and the commands to run next."""
    name = f"{result.manifest.dataset}@{result.version}"
    if not result.created:
        session.out.print(f"{name} already exists with this content: nothing to do")
        return
    if result.report is not None:
        print_accepted(session.err, result.report)
    session.out.print(line((f"released {name}", "bold"), f" ({result.change.level})"))
    for reason in result.change.reasons:
        session.out.print(line(f"  {safe(reason)}"))
    session.commands(result.commands)

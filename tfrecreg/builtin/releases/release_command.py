"""`tfrecreg release`.

A new release, with the findings that its gate accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.console import line
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.render.findings import print_accepted
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.builtin.releases.release import ReleaseResult
    from tfrecreg.core.check.reports.model import Report
    from tfrecreg.core.workers.interface import Engine


@session_command("release")
@click.argument("name", shell_complete=complete.datasets)
@click.option("--version", metavar="X.Y.Z|auto", help="Version number of the release.")
@click.option(
    "--bump",
    type=click.Choice(["auto", "patch", "minor", "major"]),
    help="Increment the newest version. auto takes the smallest legal number. Default: auto.",
)
@click.option(
    "--raw", metavar="PATH", help="Folder of the raw data, or its URL, to judge inflation."
)
@click.option("--note", default="", metavar="TEXT", help="Note to store in the release.")
@jobs_option
def release_command(
    session: Session,
    name: str,
    version: str | None,
    bump: Literal["auto", "patch", "minor", "major"] | None,
    raw: str | None,
    note: str,
    engine: Engine,
) -> None:
    """Freeze a build under a version number.

    The build is data/NAME. The gate must pass, and the number must not understate the change: PATCH
    for the same examples, MINOR if examples were only added, MAJOR for anything else. A release
    never changes.
    """
    from tfrecreg.builtin.releases.release import ReleaseRequest, release

    if version is not None and bump is not None:
        raise UsageError(
            "`--version` and `--bump` exclude each other",
            hint="give one of them; the default is `--bump auto`",
        )
    request = ReleaseRequest(name=name, version=version, bump=bump or "auto", note=note, raw=raw)
    registry = session.open()
    session.warn_of_broken_plugins()
    result = release(registry, request, engine=engine, progress=session.progress())
    if session.as_json:
        session.print_json(
            {
                "reference": f"{name}@{result.version}",
                "created": result.created,
                "change": result.change.level,
                "reasons": result.change.reasons,
                "content": result.manifest.content,
                "digest": result.manifest.digest,
                **accepted(result.report),
            }
        )
        return
    print_release(session, result)


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

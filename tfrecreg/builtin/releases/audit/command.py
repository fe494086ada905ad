"""`tfrecreg audit`."""

from __future__ import annotations

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.output import open_format
from tfrecreg.core.terminal.render.reports import (
    ReportCommand,
    choose_format,
    exit_code,
    fail_on_option,
    format_options,
    show,
)
from tfrecreg.core.terminal.session import Session, session_command


@session_command("audit", cls=ReportCommand)
@click.argument("targets", nargs=-1, metavar="[NAME..]", shell_complete=complete.datasets)
@click.option(
    "--base",
    metavar="REV",
    help="Also read the releases at this git revision, to find duplicate numbers and forks (in a "
    "pull request: the target branch).",
)
@fail_on_option
@format_options
def audit_command(
    session: Session,
    targets: tuple[str, ...],
    base: str | None,
    fail_on: str | None,
    form: str | None,
    output: str | None,
    saved: str | None,
) -> int:
    """Check the releases of datasets, without their bytes.

    Checks manifests, version numbers, parents and git history, and that today's schemas parse. NAME
    is a dataset; without one, all datasets of the registry are audited.
    """
    from tfrecreg.builtin.releases.audit.releases import audit_releases

    chosen = open_format(choose_format(session, form), session.plugins)
    session.warn_of_broken_plugins()
    report = audit_releases(session.open(), targets, base=base, fail_on=fail_on)
    show(session, [report], chosen, output, saved=saved)
    return exit_code([report])

"""`tfrecreg gate`."""

from __future__ import annotations

import datetime

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.output import open_format
from tfrecreg.core.terminal.reports import (
    ReportCommand,
    choose_format,
    exit_code,
    format_options,
    show,
)
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.values.config import next_expiry


@session_command("gate", cls=ReportCommand)
@click.argument("target", shell_complete=complete.references)
@click.option(
    "--report",
    shell_complete=complete.files,
    metavar="FILE",
    required=True,
    help="JSON report of `check TARGET --fail-on never --format json`.",
)
@click.option(
    "--until",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="Next expiry date of a waiver. In dvc.yaml, it makes DVC rerun the gate after that date.",
)
@format_options
def gate_command(
    session: Session,
    target: str,
    report: str,
    until: datetime.datetime | None,
    form: str | None,
    output: str | None,
    saved: str | None,
) -> int:
    """Judge the report of a check under today's gate and waivers.

    TARGET is a build or a release. A report about another state of it, or one that lacks checks
    required by the gate, is refused with exit code 2.
    """
    from tfrecreg.core.check.gate import gate

    chosen = open_format(choose_format(session, form), session.plugins)
    registry = session.open()
    session.warn_of_broken_plugins()
    name = target.partition("@")[0]
    if until is not None and next_expiry(registry.config.waivers, name) != until.date():
        session.err.print(
            f"dvc.yaml has an outdated expiry date of a waiver: tfrecreg pipeline {name}"
        )
    judged = gate(registry, target, report, progress=session.progress())
    show(session, [judged], chosen, output, saved=saved)
    return exit_code([judged])

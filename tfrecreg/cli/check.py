"""`tfrecreg check` and `tfrecreg gate`."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option
from tfrecreg.core.terminal.output import PluginFormat, open_format, write_json, write_text
from tfrecreg.core.terminal.reports import (
    ReportCommand,
    choose_format,
    exit_code,
    format_options,
    show,
)
from tfrecreg.core.terminal.session import Session, session_command
from tfrecreg.core.terminal.verbs import options_of
from tfrecreg.core.values.errors import UsageError

if TYPE_CHECKING:
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.workers.interface import Engine


@session_command("check", cls=ReportCommand)
@click.argument("targets", nargs=-1, metavar="[TARGET..]", shell_complete=complete.targets)
@options_of(
    "files:Verbs.check",
    against={"shell_complete": complete.targets},
    same_as={"metavar": "REF|DIGEST", "shell_complete": complete.references},
    expect="SPLIT=N,..",
)
@click.option(
    "--metrics",
    metavar="FILE",
    shell_complete=complete.files,
    help="Write numbers to FILE, for `dvc metrics`.",
)
@click.option(
    "--plots",
    metavar="DIR",
    shell_complete=complete.folders,
    help="Write tables as CSV into DIR, for `dvc plots`.",
)
@format_options
@jobs_option
def check_command(
    session: Session,
    targets: tuple[str, ...],
    options: tuple[str, ...],
    expect: tuple[str, ...],
    metrics: str | None,
    plots: str | None,
    form: str | None,
    output: str | None,
    saved: str | None,
    engine: Engine,
    **arguments: Any,
) -> int:
    """Check builds, releases or any TFRecord files.

    TARGET is a reference (mnist, mnist@1.0.0, mnist@latest). It can also be a path, URL, folder or
    glob of TFRecord files, which need no registry. If the folder of the files contains a build's
    manifest, the files are compared with the manifest. Without a TARGET, the command checks every
    dataset of the registry: its build, or its newest release if only the release is on this
    machine. A missing dataset makes the check incomplete (exit code 3).
    """
    from tfrecreg.core.check.options import CheckOptions

    chosen = open_format(choose_format(session, form), session.plugins)
    wanted = CheckOptions(source_options=options, expect=_counts(expect), **arguments)
    session.warn_of_broken_plugins()
    from tfrecreg.core.check.run import check

    reports = check(
        targets,
        options=wanted,
        **session.context(engine),
        beside=chosen.look if isinstance(chosen, PluginFormat) else None,
    )
    _measured(reports, metrics, plots)
    show(session, reports, chosen, output, saved=saved)
    return exit_code(reports)


def _counts(texts: tuple[str, ...]) -> dict[str, int]:
    """Return the number of records per split, from texts such as ``train=60000``."""
    from tfrecreg.core.values.typed_values import pairs_of

    counts = pairs_of(texts, "--expect")
    for split, number in counts.items():
        # Names of splits may contain any characters; numbers may not.
        if not (number.isascii() and number.isdigit()):
            raise UsageError(f"`--expect {split}={number}` should be a number of records")
    return {split: int(number) for split, number in counts.items()}


def _measured(reports: list[Report], numbers: str | None, tables: str | None) -> None:
    """Write the metrics and plots of a single report, for DVC."""
    if numbers is None and tables is None:
        return
    from tfrecreg.core.check.findings import metrics, plots

    if len(reports) != 1:
        option = "--metrics" if numbers is not None else "--plots"
        raise UsageError(f"`{option}` needs exactly one target, found {len(reports)}")
    if numbers is not None:
        write_json(metrics(reports[0]), numbers)
    if tables is not None:
        for name, text in plots(reports[0]).items():
            write_text(f"{tables}/{name}.csv", text, in_new_folder=True)


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
    help="Next expiry date of a waiver. In dvc.yaml, it makes DVC rerun the gate after this date.",
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

    TARGET is a build or a release. The exit code is 2 if the report is about another state of
    TARGET, or lacks checks that the gate requires.
    """
    from tfrecreg.core.check.gate import gate
    from tfrecreg.core.values.config import next_expiry

    chosen = open_format(choose_format(session, form), session.plugins)
    registry = session.open()
    session.warn_of_broken_plugins()
    name = target.partition("@")[0]
    if until is not None and next_expiry(registry.config.waivers, name) != until.date():
        session.err.print(
            f"a waiver's expiry date in dvc.yaml is out of date: run tfrecreg pipeline {name}"
        )
    judged = gate(registry, target, report, progress=session.progress())
    show(session, [judged], chosen, output, saved=saved)
    return exit_code([judged])

"""`tfrecreg check` and `tfrecreg gate`."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import click

from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.options import jobs_option, pairs
from tfrecreg.core.terminal.output import PluginFormat, open_format, write_json, write_text
from tfrecreg.core.terminal.reports import (
    ReportCommand,
    choose_format,
    exit_code,
    fail_on_option,
    format_options,
    show,
)
from tfrecreg.core.terminal.session import Session, session_command

if TYPE_CHECKING:
    from tfrecreg.core.check.reports import Report
    from tfrecreg.core.workers.interface import Engine


@session_command("check", cls=ReportCommand)
@click.argument("targets", nargs=-1, metavar="[TARGET..]", shell_complete=complete.targets)
@click.option(
    "--only", metavar="V,..", shell_complete=complete.validators, help="Run only these validators."
)
@click.option(
    "--skip", metavar="V,..", shell_complete=complete.validators, help="Skip these validators."
)
@click.option(
    "--raw",
    metavar="PATH",
    shell_complete=complete.folders,
    help="Folder of the raw data, or its URL, to judge inflation.",
)
@click.option(
    "--source",
    metavar="S",
    shell_complete=complete.sources,
    help="With --raw: find the items of this source that no record holds, and the records that "
    "hold no item.",
)
@click.option(
    "--option",
    "options",
    metavar="K=V",
    multiple=True,
    help="An option of the source. Repeatable.",
)
@click.option(
    "--schema", metavar="FILE", shell_complete=complete.files, help="Check against this schema."
)
@click.option(
    "--against",
    metavar="REF",
    shell_complete=complete.targets,
    help="Compare distributions with this version or these files (drift).",
)
@click.option(
    "--same-as",
    metavar="REF|DIGEST",
    shell_complete=complete.references,
    help="Expect the records of this version, in any order and any shards, or this content digest.",
)
@click.option(
    "--expect", metavar="SPLIT=N,..", help="Expect this number of records in each of these splits."
)
@fail_on_option
@click.option(
    "--cached",
    is_flag=True,
    help="Skip shards whose size, mtime and inode have not changed since an earlier --cached "
    "check. Does not detect bit rot.",
)
@click.option(
    "--ignore-missing",
    is_flag=True,
    help="Without TARGET: skip datasets whose bytes are not on this machine.",
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
    only: str | None,
    skip: str | None,
    raw: str | None,
    source: str | None,
    options: tuple[str, ...],
    schema: str | None,
    against: str | None,
    same_as: str | None,
    expect: str | None,
    fail_on: str | None,
    cached: bool,
    ignore_missing: bool,
    metrics: str | None,
    plots: str | None,
    form: str | None,
    output: str | None,
    saved: str | None,
    engine: Engine,
) -> int:
    """Check builds, releases or any TFRecord files.

    TARGET is a reference (mnist, mnist@1.0.0, mnist@latest), or a path, URL, folder or glob of
    TFRecord files, which need no registry. The folder of a build, and shards in it, are judged by
    the manifest there. Without a TARGET, every dataset of the registry is checked:
    its build, or its newest release if only that is present. A missing dataset makes the check
    incomplete, which is exit code 3.
    """
    from tfrecreg.core.check.options import CheckOptions

    chosen = open_format(choose_format(session, form), session.plugins)
    chosen_options = CheckOptions(
        only=_names(only),
        skip=_names(skip),
        raw=raw,
        source=source,
        source_options=options,
        schema=schema,
        against=against,
        same_as=same_as,
        expect=_counts(expect),
        fail_on=fail_on,
        cached=cached,
        ignore_missing=ignore_missing,
    )
    session.warn_of_broken_plugins()
    from tfrecreg.core.check.run import check

    reports = check(
        targets,
        registry=session.registry,
        options=chosen_options,
        engine=engine,
        progress=session.progress(),
        beside=chosen.look if isinstance(chosen, PluginFormat) else None,
    )
    _measured(reports, metrics, plots)
    show(session, reports, chosen, output, saved=saved)
    return exit_code(reports)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _counts(text: str | None) -> dict[str, int]:
    """The number of records by split, of ``train=60000,test=10000``."""
    from tfrecreg.core.values.errors import UsageError
    from tfrecreg.core.values.text import safe

    counts: dict[str, int] = {}
    for split, number in pairs(_names(text), "--expect", example="train=60000").items():
        # Names of splits come from data, numbers do not.
        if not (number.isascii() and number.isdigit()):
            raise UsageError(
                f"`--expect {safe(split)}={safe(number)}` should be a number of records",
                hint="as in `--expect train=60000,test=10000`",
            )
        counts[split] = int(number)
    return counts


def _measured(reports: list[Report], numbers: str | None, tables: str | None) -> None:
    """Write metrics and plots for DVC. They describe a single report."""
    if numbers is None and tables is None:
        return
    from tfrecreg.core.check.findings import metrics, plots
    from tfrecreg.core.values.errors import UsageError

    if len(reports) != 1:
        option = "--metrics" if numbers is not None else "--plots"
        raise UsageError(
            f"`{option}` is for one target, found {len(reports)}", hint="name one target"
        )
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
    from tfrecreg.core.values.config import next_expiry

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

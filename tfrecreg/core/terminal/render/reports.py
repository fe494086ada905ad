"""Output of reports for `check`, `audit` and `gate`: in any format, to stdout or to a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tfrecreg._version import JSON_VERSION
from tfrecreg.core.storage.locations import is_absolute
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.output import write_json, write_text
from tfrecreg.core.terminal.report_format import PluginFormat, complete_format, expect_report_format
from tfrecreg.core.terminal.session import Session
from tfrecreg.core.values.errors import UsageError

if TYPE_CHECKING:
    from tfrecreg.core.check.reports.interface import ReportContext
    from tfrecreg.core.check.reports.model import Report

F = TypeVar("F", bound=Callable[..., Any])

_PRECEDENCE = (3, 1, 0)
"""The worst of several reports decides, and an incomplete one is worse than a failed one."""


fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    help="Exit with 1 on findings of this severity or higher. Default: the gate's `fail_on`, else "
    "error. never reports without judging: gate severities and waivers are ignored.",
)


def format_options(function: F) -> F:
    """``--format``, ``--output`` and ``--save-json``. The command gets `form`, `output` and
    `saved`.
    """
    decorate: Callable[[F], F] = click.option(
        "--format",
        "form",
        metavar="FORMAT",
        callback=expect_report_format,
        shell_complete=complete.silent(complete_format),
        help="text, json (the same as --json), or the name of a report format, such as sarif or "
        "html: `tfrecreg plugins list` shows them.",
    )
    to: Callable[[F], F] = click.option(
        "--output",
        metavar="FILE",
        shell_complete=complete.files,
        help="Write the report to FILE instead of stdout.",
    )
    also: Callable[[F], F] = click.option(
        "--save-json",
        "saved",
        metavar="FILE",
        shell_complete=complete.files,
        help="Also write the report as JSON to FILE.",
    )
    return decorate(to(also(function)))


def exit_code(reports: Sequence[Report]) -> int:
    """Exit code for these reports."""
    codes = {report.exit_code for report in reports}
    return next(code for code in _PRECEDENCE if code in codes)


def choose_format(session: Session, form: str | None) -> str:
    """The format that `--json` and `--format` select together."""
    if session.as_json and form not in (None, "json"):
        raise UsageError(
            f"`--json` and `--format {form}` exclude each other", hint="leave out `--json`"
        )
    return form or ("json" if session.as_json else "text")


def show(
    session: Session,
    reports: Sequence[Report],
    form: str | PluginFormat,
    output: str | None,
    *,
    more: Mapping[str, object] | None = None,
    finished: bool = True,
    saved: str | None = None,
) -> None:
    """Print the reports, or write them to a file."""
    if saved is not None:
        write_json(_document(reports, more), saved)
    if isinstance(form, PluginFormat):
        _show_document(session, reports, form, output, finished=finished)
    elif form == "json":
        write_json(_document(reports, more), output)
    else:
        _show_text(session, reports, output)


def _show_text(session: Session, reports: Sequence[Report], output: str | None) -> None:
    from tfrecreg.core.terminal.render.findings import print_report

    console = session.out
    if output is None:
        for report in reports:
            print_report(console, report)
        return
    with console.capture() as capture:
        for report in reports:
            print_report(console, report)
    write_text(output, capture.get())


def _show_document(
    session: Session,
    reports: Sequence[Report],
    form: PluginFormat,
    output: str | None,
    *,
    finished: bool,
) -> None:
    context = _context(session, reports)
    text = form.render(reports, context)
    if output is None:
        # Each format escapes for itself: a console would wrap and color.
        sys.stdout.write(text)
    else:
        write_text(output, text)
        if form.has_looked:
            from tfrecreg.core.terminal.render.findings import print_page

            print_page(session.out, output, text, reports)
    if finished:
        form.finish(reports, context)


def _context(session: Session, reports: Sequence[Report]) -> ReportContext:
    from tfrecreg.core.check.reports.interface import ReportContext
    from tfrecreg.core.plugins.manager import code_named

    found = {each.code for report in reports for each in (*report.findings, *report.waived)}
    codes = {name: code for name in sorted(found) if (code := code_named(name)) is not None}
    return ReportContext(
        prefix=_prefix(session, reports), codes=codes, note=session.progress().note
    )


def _prefix(session: Session, reports: Sequence[Report]) -> str:
    """Relative path to the registry of the reports; empty if they have none."""
    folders = [report.folder for report in reports if report.folder is not None]
    if all(is_absolute(folder) for folder in folders):
        return ""
    return os.path.relpath(session.open().storage.root)


def _document(reports: Sequence[Report], more: Mapping[str, object] | None) -> dict[str, Any]:
    if len(reports) == 1:
        return {**reports[0].to_json(), **(more or {})}
    status = max((report.status for report in reports), key=["pass", "fail", "error"].index)
    return {"format_version": JSON_VERSION, "status": status, "reports": reports, **(more or {})}

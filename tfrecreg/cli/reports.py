"""Output of reports for `check` and `gate`: in any format, to stdout or to a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tfrecreg._version import JSON_VERSION
from tfrecreg.cli.supervisor import note_findings
from tfrecreg.commands import complete
from tfrecreg.commands.output import write_json, write_text
from tfrecreg.commands.session import Session
from tfrecreg.storage.locations import is_absolute

if TYPE_CHECKING:
    from tfrecreg.reports.model import Report

F = TypeVar("F", bound=Callable[..., Any])

REPORT_FORMATS = ("text", "json", "junit", "sarif", "github", "markdown", "html")
"""Values of `--format`."""
_PRECEDENCE = (3, 1, 0)
"""The worst of several reports decides, and an incomplete one is worse than a failed one."""


def format_options(function: F) -> F:
    """``--format``, ``--output`` and ``--save-json``. The command gets `form`, `output` and
    `saved`.
    """
    decorate: Callable[[F], F] = click.option(
        "--format",
        "form",
        type=click.Choice(REPORT_FORMATS),
        help="Report format. json: the same as --json. junit, sarif: for CI and code scanning. "
        "github: annotations and a job summary. markdown: for a pull request comment. "
        "html: a page with images.",
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
    """Exit code for these reports, whose findings the supervisor judges again."""
    for report in reports:
        if report.judged and report.fail_on is not None:
            note_findings(report.fail_on, (each.severity for each in report.findings))
    codes = {report.exit_code for report in reports}
    return next(code for code in _PRECEDENCE if code in codes)


def choose_format(session: Session, form: str | None) -> str:
    """The format that `--json` and `--format` select together.

    Raises:
        UsageError: two different things.
    """
    if session.as_json and form not in (None, "json"):
        from tfrecreg.errors import UsageError

        raise UsageError(
            f"`--json` and `--format {form}` exclude each other", hint="leave out `--json`"
        )
    return form or ("json" if session.as_json else "text")


def show(
    session: Session,
    reports: Sequence[Report],
    form: str,
    output: str | None,
    *,
    more: Mapping[str, object] | None = None,
    summary: bool = True,
    page: str | None = None,
    saved: str | None = None,
) -> None:
    """Print the reports, or write them to a file.

    Args:
        session: of this call.
        reports: what to show.
        form: one of the formats.
        output: the file; None for stdout.
        more: fields of the JSON document beside those of the reports.
        summary: whether `github` adds to the summary of the job.
        page: the page, for `html`; None for one that shows no records.
        saved: another file, which gets the JSON in any case; None for none.

    Raises:
        UsageError: a file that cannot be written.
    """
    if saved is not None:
        write_json(_document(reports, more), saved)
    if form == "json":
        write_json(_document(reports, more), output)
    elif form == "text":
        _show_text(session, reports, output)
    elif page is not None:
        _show_page(session, reports, page, output)
    else:
        _show_document(session, reports, form, output, summary=summary)


def _show_text(session: Session, reports: Sequence[Report], output: str | None) -> None:
    from tfrecreg.render.findings import print_report

    console = session.out
    if output is None:
        for report in reports:
            print_report(console, report)
        return
    with console.capture() as capture:
        for report in reports:
            print_report(console, report)
    write_text(output, capture.get())


def _show_page(session: Session, reports: Sequence[Report], page: str, output: str | None) -> None:
    if output is None:
        import sys

        sys.stdout.write(page)
        return
    from tfrecreg.cli.render.outcomes import print_page

    write_text(output, page)
    print_page(session.out, output, page, reports)


def _show_document(
    session: Session, reports: Sequence[Report], form: str, output: str | None, *, summary: bool
) -> None:
    from tfrecreg.cli.render.formats import FORMATS
    from tfrecreg.cli.render.formats.github import write_summary

    prefix = _prefix(session, reports)
    text = FORMATS[form](reports, prefix)
    if output is not None:
        write_text(output, text)
    else:
        import sys

        # Each format escapes for itself: a console would wrap and color.
        sys.stdout.write(text)
    if form == "github" and summary:
        write_summary(reports, prefix, os.environ)


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
    return {
        "format_version": JSON_VERSION,
        "status": status,
        "reports": reports,
        **(more or {}),
    }

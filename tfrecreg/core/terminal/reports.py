"""Output of reports for `check`, `audit` and `gate`: in any format, to stdout or to a file.

Base class of commands that write reports, also for runs without a verdict.

A later reader of the report, such as a CI step, must never find that of an earlier run. So the
report's file says that the run did not finish, until it does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tfrecreg._version import JSON_VERSION
from tfrecreg.core.storage.raw import is_absolute
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.output import (
    PluginFormat,
    complete_format,
    expect_format,
    expect_report_format,
    open_format,
    write_json,
    write_text,
)
from tfrecreg.core.terminal.session import Session
from tfrecreg.core.values.errors import PluginError, RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.check.report_format import ReportContext
    from tfrecreg.core.check.reports import Report

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
    from tfrecreg.core.terminal.findings import print_report

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
            from tfrecreg.core.terminal.findings import print_page

            print_page(session.out, output, text, reports)
    if finished:
        form.finish(reports, context)


def _context(session: Session, reports: Sequence[Report]) -> ReportContext:
    from tfrecreg.core.check.report_format import ReportContext
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


class ReportCommand(click.Command):
    """A command with the options of
    :func:`tfrecreg.core.terminal.reports.format_options`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            message = " ".join(error.format_message().split()).rstrip(".")
            refusal = UsageError(safe(message, limit=400), hint=f"{ctx.command_path} --help")
            session = ctx.ensure_object(Session)
            _Requested.of(session, self._loosely(ctx, given)).tell(refusal)
            raise

    def _loosely(self, ctx: click.Context, args: list[str]) -> Mapping[str, Any]:
        """Parse the options as far as possible."""
        loose = click.Context(self, parent=ctx.parent, resilient_parsing=True)
        loose.ignore_unknown_options = True
        options, _, _ = self.make_parser(loose).parse_args(args)
        return options

    def invoke(self, ctx: click.Context) -> Any:
        session = ctx.ensure_object(Session)
        wanted = _Requested.of(session, ctx.params)
        read = ctx.params.get("report")
        names = {"--report": read, "--output": wanted.output, "--save-json": wanted.saved}
        given = [(name, path) for name, path in names.items() if path is not None]
        for (one, path), (other, also) in combinations(given, 2):
            if os.path.realpath(path) == os.path.realpath(also):
                raise UsageError(
                    f"`{one}` and `{other}` name the same file", hint="name another file to write"
                )
        try:
            wanted.begin()
            return super().invoke(ctx)
        except TfrecregError as error:
            wanted.tell(error)
            raise


@dataclass(frozen=True)
class _Requested:
    """The report requested by a call."""

    session: Session
    form: str
    output: str | None
    saved: str | None
    target: str
    """Target of the report, as the user named it."""

    @classmethod
    def of(cls, session: Session, options: Mapping[str, Any]) -> _Requested:
        """Read it from the options, which may be invalid."""
        # If the arguments do not parse, click has replaced some values by its own.
        texts = {name: value for name, value in options.items() if isinstance(value, str)}
        several = options.get("targets")
        named = several if isinstance(several, tuple) else (texts.get("target", ""),)
        form = texts.get("form", "text")
        if session.as_json or options.get("as_json") is True:
            form = "json"
        try:
            expect_format(form)
        except PluginError:
            form = "text"
        return cls(
            session,
            form,
            texts.get("output"),
            texts.get("saved"),
            " ".join(named) or "the registry",
        )

    def begin(self) -> None:
        """Write a placeholder report that says that the run did not finish."""
        unfinished = UsageError("the run did not finish", hint="run it again")
        for form, path in ((self.form, self.output), ("json", self.saved)):
            # A pipe or a terminal would show it beside the report.
            if path is not None and (os.path.isfile(path) or not os.path.exists(path)):  # noqa: PTH110, PTH113
                self._write(unfinished, 3, form, path, finished=False)

    def tell(self, error: TfrecregError) -> None:
        """Write the reason of the failure as the requested report."""
        # An error of writing is the command's failure, or less important than that.
        if self.saved is not None:
            with suppress(UsageError):
                self._write(error, error.exit_code, "json", self.saved)
        if self.output is None and self.form == "text":
            return  # stderr has it
        with suppress(TfrecregError):  # a format may also fail
            self._write(error, error.exit_code, self.form, self.output)
            self.session.reported = True

    def _write(
        self,
        error: TfrecregError,
        code: int,
        form: str,
        output: str | None,
        *,
        finished: bool = True,
    ) -> None:
        from tfrecreg.core.check.reports import error_report
        from tfrecreg.core.plugins.manager import plugins

        hint = f"; hint: {error.hint}" if error.hint else ""
        findings = error.findings if isinstance(error, RefusedError) else ()
        report = error_report(self.target, f"{error.message}{hint}", findings=findings)
        told = {"message": error.message, "hint": error.hint, "exit_code": code}
        more = {"error": told}
        # Also in a format that the registry switches off: the report says so.
        shown = open_format(form, plugins)
        show(self.session, [report], shown, output, more=more, finished=finished)

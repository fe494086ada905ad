"""Output of reports for `check`, `audit` and `gate`: in any format, to stdout or to a file.

The module also has the base class of commands that write a report even if a run ends without a
verdict.

A later reader of the report, such as a CI step, must never find the report of an earlier run. So
the report's file is empty until the run finishes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tfrecreg._version import JSON_VERSION
from tfrecreg.core.storage.raw import is_absolute
from tfrecreg.core.terminal import complete
from tfrecreg.core.terminal.output import (
    CORE_FORMATS,
    PluginFormat,
    expect_format,
    expect_report_format,
    open_format,
    write_json,
    write_text,
)
from tfrecreg.core.terminal.session import Session
from tfrecreg.core.values.errors import PluginError, TfrecregError, UsageError
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.check.reports import Report

F = TypeVar("F", bound=Callable[..., Any])

_PRECEDENCE = (3, 1, 0)
"""Exit codes, the worst first. Several reports give the worst of their exit codes. An incomplete
report is worse than a failed one.
"""


def format_options(function: F) -> F:
    """``--format``, ``--output`` and ``--save-json``. The command gets `form`, `output` and
    `saved`.
    """
    for name, to, text in (
        ("--save-json", "saved", "Also write the report as JSON to FILE."),
        ("--output", "output", "Write the report to FILE instead of stdout."),
    ):
        function = click.option(name, to, metavar="FILE", shell_complete=complete.files, help=text)(
            function
        )
    return click.option(
        "--format",
        "form",
        metavar="FORMAT",
        callback=expect_report_format,
        shell_complete=complete.named_by("ReportFormatRecord", *CORE_FORMATS),
        help="text, json (the same as --json), or the name of a report format, such as sarif or "
        "html: `tfrecreg plugins list` shows them.",
    )(function)


def exit_code(reports: Sequence[Report]) -> int:
    codes = {report.exit_code for report in reports}
    return next(code for code in _PRECEDENCE if code in codes)


def choose_format(session: Session, form: str | None) -> str:
    """The format that `--json` and `--format` select together."""
    if session.as_json and form not in (None, "json"):
        raise UsageError(f"`--json` and `--format {form}` exclude each other")
    return form or ("json" if session.as_json else "text")


def show(
    session: Session,
    reports: Sequence[Report],
    form: str | PluginFormat,
    output: str | None,
    *,
    more: Mapping[str, object] | None = None,
    saved: str | None = None,
) -> None:
    if saved is not None:
        write_json(_document(reports, more), saved)
    if isinstance(form, PluginFormat):
        _show_document(session, reports, form, output)
        return
    if form == "json":
        write_json(_document(reports, more), output)
        return
    from tfrecreg.core.terminal.console import stdout
    from tfrecreg.core.terminal.findings import print_report

    console = stdout(output)
    with console.capture() if output is not None else nullcontext() as capture:
        for report in reports:
            print_report(console, report)
    if output is not None and capture is not None:
        write_text(output, capture.get())


def _show_document(
    session: Session, reports: Sequence[Report], form: PluginFormat, output: str | None
) -> None:
    from tfrecreg.core.check.report_format import ReportContext
    from tfrecreg.core.plugins.manager import code_named

    found = {each.code for report in reports for each in (*report.findings, *report.waived)}
    codes = {name: code for name in sorted(found) if (code := code_named(name)) is not None}
    folders = [report.folder for report in reports if report.folder is not None]
    # Path to the registry of the reports, if they have one.
    is_alone = all(is_absolute(folder) for folder in folders)
    prefix = "" if is_alone else os.path.relpath(session.open().storage.root)
    context = ReportContext(prefix=prefix, codes=codes, note=session.progress().note)
    text = form.render(reports, context)
    if output is None:
        # Each format escapes its own text: a console would wrap and color it.
        sys.stdout.write(text)
    else:
        write_text(output, text)
        if form.has_looked:
            from tfrecreg.core.terminal.findings import print_page

            print_page(session.out, output, text, reports)
    form.finish(reports, context)


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
            loose = click.Context(self, parent=ctx.parent, resilient_parsing=True)
            loose.ignore_unknown_options = True
            options, _, _ = self.make_parser(loose).parse_args(given)  # as far as possible
            _Requested.of(ctx.ensure_object(Session), options).tell(refusal)
            raise

    def invoke(self, ctx: click.Context) -> Any:
        session = ctx.ensure_object(Session)
        wanted = _Requested.of(session, ctx.params)
        read = ctx.params.get("report")
        names = {"--report": read, "--output": wanted.output, "--save-json": wanted.saved}
        given = [(name, path) for name, path in names.items() if path is not None]
        for (one, path), (other, also) in combinations(given, 2):
            if os.path.realpath(path) == os.path.realpath(also):
                raise UsageError(f"`{one}` and `{other}` name the same file")
        try:
            wanted.begin()
            return super().invoke(ctx)
        except TfrecregError as error:
            wanted.tell(error)
            raise


@dataclass(frozen=True)
class _Requested:
    session: Session
    form: str
    output: str | None
    saved: str | None
    target: str
    """The report's target, as the user named it."""

    @classmethod
    def of(cls, session: Session, options: Mapping[str, Any]) -> _Requested:
        """Read the request from the options of a call. The options may be invalid."""
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
        """Empty the files of the report; refuse a file that cannot be written."""
        for path in (self.output, self.saved):
            # A reader of a pipe would take an empty text for the report.
            if path is not None and (os.path.isfile(path) or not os.path.exists(path)):  # noqa: PTH110, PTH113
                write_text(path, "")

    def tell(self, error: TfrecregError) -> None:
        """Write the reason for the failure of the command, in the requested report format."""
        # A write error either is the command's failure or matters less than it.
        if self.saved is not None:
            with suppress(UsageError):
                self._write(error, "json", self.saved)
        if self.output is None and self.form == "text":
            return  # stderr has it
        with suppress(TfrecregError):  # a format may also fail
            self._write(error, self.form, self.output)
            self.session.reported = True

    def _write(self, error: TfrecregError, form: str, output: str | None) -> None:
        from tfrecreg.core.check.reports import error_report
        from tfrecreg.core.plugins.manager import plugins

        report = error_report(self.target, error)
        told = {"message": error.message, "hint": error.hint, "exit_code": error.exit_code}
        more = {"error": told}
        # Even in a format that the registry disables: the report then says so.
        shown = open_format(form, plugins)
        show(self.session, [report], shown, output, more=more)

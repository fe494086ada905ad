"""Base class of commands that write reports, also for runs without a verdict.

A later reader of the report, such as a CI step, must never find that of an earlier run. So the
report's file says that the run did not finish, until it does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import click

from tfrecreg.core.terminal.render.reports import show
from tfrecreg.core.terminal.report_format import expect_format, open_format
from tfrecreg.core.terminal.session import Session
from tfrecreg.core.values.errors import PluginError, RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.text import safe


class ReportCommand(click.Command):
    """A command with the options of :func:`tfrecreg.core.terminal.render.reports.format_options`."""

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
        with suppress(TfrecregError):  # a format may fail, too
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
        from tfrecreg.core.check.reports.model import error_report
        from tfrecreg.core.plugins.manager import plugins

        hint = f"; hint: {error.hint}" if error.hint else ""
        findings = error.findings if isinstance(error, RefusedError) else ()
        report = error_report(self.target, f"{error.message}{hint}", findings=findings)
        told = {"message": error.message, "hint": error.hint, "exit_code": code}
        more = {"error": told}
        # Also in a format that the registry switches off: the report says so.
        shown = open_format(form, plugins)
        show(self.session, [report], shown, output, more=more, finished=finished)

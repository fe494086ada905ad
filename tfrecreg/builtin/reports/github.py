"""GitHub Actions: workflow commands for annotations, and the summary of a job.

A workflow command is a line ``::error file=…,title=…::message``. In the message ``%``, CR and LF
are escaped as ``%25``, ``%0D`` and ``%0A``, in properties also ``:`` and ``,``:
https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tfrecreg.api import (
    Finding,
    Report,
    ReportContext,
    ReportFormat,
    Severity,
    UsageError,
    location_lines,
    safe,
    safe_message,
    subject_text,
)
from tfrecreg.builtin.reports.markdown import markdown

SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable with the file to which a step appends its Markdown."""
WORKSPACE = "GITHUB_WORKSPACE"
"""The variable with the folder of the checkout."""

_LARGEST = 1 << 20
"""Maximum size of a step's summary in bytes; GitHub drops larger ones."""
_PLACES = 5
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


class GithubFormat(ReportFormat):
    """Annotations, and the summary of the step that runs the command."""

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        """The lines that the runner reads from the log."""
        return workflow_commands(reports, context)

    def finish(self, reports: Sequence[Report], context: ReportContext) -> None:
        """Append to the summary."""
        del context
        write_summary(reports, os.environ)


def workflow_commands(reports: Sequence[Report], context: ReportContext) -> str:
    """One command per finding, the worst first, because GitHub shows ten per level and step. Waived
    findings are notices.
    """
    changes = dict.fromkeys(line for report in reports for line in report.changes)
    lines = [f"tfrecreg: {safe_message(each)}" for each in changes]
    for report in reports:
        for finding in report.findings:
            told = [*_message_lines(finding), f"hint: {finding.hint}"]
            properties = dict(_properties(report, finding, context))
            lines.append(_command(_LEVELS[finding.severity], properties, told))
        for finding, by in report.accepted:
            waived = f"waived {by}".rstrip()
            properties = dict(_properties(report, finding, context, "waived "))
            lines.append(_command("notice", properties, [waived, *_message_lines(finding)]))
        if report.lowered:
            title = {"title": f"lowered severities: {safe(report.target)}"}
            lines.append(_command("notice", title, [report.lowered_text]))
        for error in report.errors:
            title = {"title": f"incomplete: {safe(report.target)}"}
            lines.append(_command("error", title, [error]))
        # Never the start of a line, where it could be a command of its own.
        lines.append(f"tfrecreg: {safe_message(report.target)}: {report.status}")
    return "".join(f"{line}\n" for line in lines)


def write_summary(reports: Sequence[Report], environment: Mapping[str, str]) -> None:
    """Append the Markdown of the reports to the summary of the step, if there is one."""
    path = environment.get(SUMMARY)
    if not path:
        return
    data = markdown(reports).encode("utf-8")
    try:
        with Path(path).open("ab") as file:
            if file.tell() + len(data) < _LARGEST:
                file.write(data)
    except OSError as error:
        raise UsageError(
            f"`{SUMMARY}` names `{safe(path)}`, which cannot be written: {error.strerror}",
            hint=f"unset {SUMMARY}, or leave out `--format github`",
        ) from None


def _message_lines(finding: Finding) -> Iterator[str]:
    about = subject_text(finding)
    yield f"{finding.message}{f' ({about})' if about else ''}"
    yield from location_lines(finding, _PLACES)


def _properties(
    report: Report, finding: Finding, context: ReportContext, kind: str = ""
) -> Iterator[tuple[str, str]]:
    shards = [location.shard for location in finding.locations if location.shard is not None]
    found = [context.path(report, each) for each in shards] or [context.path(report)]
    paths = [path for path in found if path is not None]
    # GitHub shows an annotation only at a file that there is.
    path = next(filter(os.path.lexists, paths), "".join(paths[:1]))
    if path:
        yield "file", safe(_in_repository(path), limit=1000)
    yield "title", f"{kind}{finding.code} {finding.rule}: {safe(report.target)}"


def _in_repository(path: str) -> str:
    """A path from the root of the checkout, as GitHub reads it."""
    root = os.environ.get(WORKSPACE)
    if not root or "://" in path:
        return path
    found = os.path.relpath(path, root)
    return path if found.startswith("..") else found


def _command(level: str, properties: Mapping[str, str], lines: Sequence[str]) -> str:
    given = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {given}::{_message(chr(10).join(safe_message(line) for line in lines))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")

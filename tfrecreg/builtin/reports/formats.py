"""Reports as Markdown, as annotations of GitHub, as SARIF 2.1.0 and as JUnit's XML.

Text from data is put in code spans, in which HTML, links and mentions have no effect. GitHub splits
a table's row at each ``|`` that has no backslash before it, even in code spans:
https://github.github.com/gfm/#tables-extension-

A GitHub workflow command is a line ``::error file=…,title=…::message``. ``%``, CR and LF are
escaped as ``%25``, ``%0D`` and ``%0A``. Properties also escape ``:`` and ``,``. See
https://docs.github.com/actions/reference/workflow-commands-for-github-actions

SARIF: the standard is https://docs.oasis-open.org/sarif/sarif/v2.1.0/. GitHub requires a line for
each place and identifies a result by `partialFingerprints`. A place in a shard has no line, so line
1 is given. Record and offset are in the text and in `properties`. The offset is not a `byteOffset`,
because gzip offsets refer to the decompressed stream.

JUnit: there is no standard schema. The format uses only what Jenkins' `xunit` plugin and GitLab
both read: suites with counts, cases with `classname` and `name`, and at most one `failure`, `error`
or `skipped` per case.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from blake3 import blake3

from tfrecreg.api import (
    Finding,
    Location,
    Report,
    ReportContext,
    ReportFormat,
    Severity,
    UsageError,
    location_lines,
    location_text,
    safe,
    safe_message,
    si_bytes,
    subject_text,
)

_ROOM = 24_000
"""Maximum length of all tables of one kind. GitHub allows 65,536 characters per comment."""
_LINES = 10
"""Maximum number of lines of a list."""
_PLACES = 3
_LONGEST = 1000
"""Maximum length of a name or a message, in characters."""
_HARMLESS = re.compile(r"(?:[A-Za-z0-9 ,;()'%+=/-]|[.:](?= |$)|(?<=\d)\.(?=\d))*")
"""Text that Markdown shows unchanged, without link, mention, reference, HTML or emphasis."""
_CROSS_REFERENCE = re.compile(r"\b(?:[0-9a-f]{7,40}|GH-\d+)\b", re.IGNORECASE)
"""Text that GitHub turns into a link to a commit or an issue."""


class MarkdownFormat(ReportFormat):
    """One document with a section per report. It has the same paths as the text report."""

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        del context
        return markdown(reports)


def markdown(reports: Sequence[Report]) -> str:
    """The changes, then a section per report."""
    room = _ROOM // max(len(reports), 1)
    changes = dict.fromkeys(each for report in reports for each in report.changes)
    lines = [f"- {prose(each)}" for each in changes]
    lines = [*_fitting(iter(lines), _ROOM // 4, "changes")] if lines else []
    lines += (line for report in reports for line in _section(report, room))
    return "".join(f"{line}\n" for line in lines)


def _section(report: Report, room: int) -> Iterator[str]:
    verdict = "not judged" if not report.judged else str(report.status)
    if report.status == "error":
        verdict = "incomplete"
    yield f"### {code(report.target)}: {verdict}"
    yield ""
    yield _summary(report)
    yield ""
    if report.findings:
        yield "| | code | what | where |"
        yield "|---|---|---|---|"
        yield from _fitting((_row(finding) for finding in report.findings), room, "findings")
    if report.waived:
        yield "| waived | by | until | because |"
        yield "|---|---|---|---|"
        rows = (_waived(report, number) for number in range(len(report.waived)))
        yield from _fitting(rows, room, "waived findings")
    lines = [f"- incomplete: {prose(error)}" for error in report.errors[:_LINES]]
    if len(report.errors) > _LINES:
        lines.append(f"- incomplete: {len(report.errors) - _LINES:,} more")
    lines += [f"- note: {prose(note)}" for note in report.notes[:_LINES]]
    for each in report.skipped[:_LINES]:
        lines.append(f"- not run: {code(each.name)}, {prose(each.reason)}")
    if report.lowered:
        lines.append(f"- {prose(report.lowered_text)}")
    if lines:
        yield from (*lines, "")


def _fitting(rows: Iterator[str], room: int, what: str) -> Iterator[str]:
    """The rows that fit (at least one), then a line with the number of omitted rows."""
    for number, row in enumerate(rows):
        if number and len(row) > room:
            yield f"\n… and {1 + sum(1 for _ in rows):,} more {what}."
            break
        yield row
        room -= len(row)
    yield ""


def _summary(report: Report) -> str:
    counts = Counter(finding.severity for finding in report.findings)
    found = [_count(counts[each], each.value) for each in (Severity.ERROR, Severity.WARNING)]
    if report.waived:
        found.append(f"{len(report.waived):,} waived")
    if report.releases is not None:
        read = [_count(report.releases, "release")]
    else:
        read = [_count(report.shards, "shard"), _count(report.records, "record")]
        read.append(si_bytes(report.bytes))
    ran = ", ".join(code(name) for name in report.validators) or "nothing"
    return f"{', '.join(found)}. {', '.join(read)}. Validators: {ran}."


def _row(finding: Finding) -> str:
    about = subject_text(finding)
    what = prose(finding.message)
    what += f" {code(about)}" if about else ""
    where = "<br>".join(prose(each) for each in location_lines(finding, _PLACES))
    cells = (finding.severity.value, code(finding.code), f"{what}<br>{prose(finding.hint)}", where)
    return f"| {' | '.join(cells)} |"


def _waived(report: Report, number: int) -> str:
    told = ["", "", ""]
    if number < len(report.waivers):
        waiver = report.waivers[number]
        told = [code(waiver.owner), waiver.expires.isoformat(), prose(waiver.reason)]
    return f"| {' | '.join((code(report.waived[number].fingerprint), *told))} |"


def code(text: str) -> str:
    """Format `text` as a code span. The result can also be used in a table cell."""
    shown = safe_message(text, limit=_LONGEST)
    if not shown.strip(" "):
        return f"<code>{'&nbsp;' * max(len(shown), 1)}</code>"
    runs = [len(run) for run in re.findall("`+", shown)]
    fence = "`" * next(size for size in range(1, len(runs) + 2) if size not in runs)
    # If the text has a space inside both fences, Markdown removes one on each side.
    padded = f" {shown} " if "`" in (shown[0], shown[-1]) or shown[0] == shown[-1] == " " else shown
    return f"{fence}{padded}{fence}".replace("|", "\\|")


def prose(text: str) -> str:
    """A message; as a code span if Markdown would interpret it or if it is long."""
    harmless = _HARMLESS.fullmatch(text) and not _CROSS_REFERENCE.search(text)
    return text if harmless and len(text) <= _LONGEST else code(text)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


SUMMARY = "GITHUB_STEP_SUMMARY"
"""This variable contains the path of a file. A step appends its Markdown to that file."""
WORKSPACE = "GITHUB_WORKSPACE"
"""The variable that names the folder of the checkout."""

_LARGEST = 1 << 20
"""Maximum size of a step's summary in bytes, because GitHub drops larger ones."""
_GITHUB_PLACES = 5
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


class GithubFormat(ReportFormat):
    """Annotations, and a summary for the step that runs the command."""

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        return workflow_commands(reports, context)

    def finish(self, reports: Sequence[Report], context: ReportContext) -> None:
        """Append the Markdown of the reports to the summary of the step. Without such a summary,
        do nothing.
        """
        del context
        path = os.environ.get(SUMMARY)
        if not path:
            return
        data = markdown(reports).encode("utf-8")
        try:
            with Path(path).open("ab") as file:
                if file.tell() + len(data) < _LARGEST:
                    file.write(data)
        except OSError as error:
            raise UsageError(
                f"`{SUMMARY}` names `{path}`, which cannot be written: {error.strerror}"
            ) from None


def workflow_commands(reports: Sequence[Report], context: ReportContext) -> str:
    """One command per finding. The worst come first, because GitHub shows only ten per level and
    step. Waived findings become notices.
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
        # The target never begins a line, where it could be a command.
        lines.append(f"tfrecreg: {safe_message(report.target)}: {report.status}")
    return "".join(f"{line}\n" for line in lines)


def _what(finding: Finding) -> str:
    about = subject_text(finding)
    return f"{finding.message} ({about})" if about else finding.message


def _message_lines(finding: Finding) -> Iterator[str]:
    yield _what(finding)
    yield from location_lines(finding, _GITHUB_PLACES)


def _properties(
    report: Report, finding: Finding, context: ReportContext, kind: str = ""
) -> Iterator[tuple[str, str]]:
    shards = [location.shard for location in finding.locations if location.shard is not None]
    found = [context.path(report, each) for each in shards] or [context.path(report)]
    paths = [path for path in found if path is not None]
    # GitHub shows an annotation only at an existing file.
    path = next(filter(os.path.lexists, paths), "".join(paths[:1]))
    root = os.environ.get(WORKSPACE)
    if root and path and "://" not in path:  # GitHub reads it from the root of the checkout
        inside = os.path.relpath(path, root)
        path = path if inside.startswith("..") else inside
    if path:
        yield "file", safe(path, limit=1000)
    yield "title", f"{kind}{finding.code} {finding.rule}: {safe(report.target)}"


def _command(level: str, properties: Mapping[str, str], lines: Sequence[str]) -> str:
    escaped = {name: _message(text) for name, text in properties.items()}
    given = ",".join(
        f"{name}={text.replace(':', '%3A').replace(',', '%2C')}" for name, text in escaped.items()
    )
    return f"::{level} {given}::{_message(chr(10).join(safe_message(line) for line in lines))}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


_SARIF_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SARIF_PLACES = 5
_FINGERPRINT = "tfrecreg/v1"

_Json = dict[str, Any]


class SarifFormat(ReportFormat):
    """All reports as one log in pure ASCII."""

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        document = {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [_run(report, context) for report in reports],
        }
        return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def _run(report: Report, context: ReportContext) -> _Json:
    codes: dict[str, Finding] = {}
    for finding in (*report.findings, *report.waived):
        codes.setdefault(finding.code, finding)
    numbers = {code: number for number, code in enumerate(codes)}
    results = [_sarif_result(report, finding, numbers, context) for finding in report.findings]
    for number, finding in enumerate(report.waived):
        result = _sarif_result(report, finding, numbers, context)
        result["suppressions"] = [_suppression(report, number)]
        results.append(result)
    invocation: _Json = {"executionSuccessful": report.status != "error"}
    if report.errors:
        invocation["toolExecutionNotifications"] = [
            {"level": "error", "message": {"text": safe_message(error)}} for error in report.errors
        ]
    if report.lowered:
        invocation["toolConfigurationNotifications"] = [
            {"level": "note", "message": {"text": safe_message(report.lowered_text)}}
        ]
    return {
        "tool": {
            "driver": {
                "name": "tfrecreg",
                "version": context.version,
                "rules": [_rule(finding, context) for finding in codes.values()],
            }
        },
        # The text before the last `/` is the category: GitHub keeps one per commit.
        "automationDetails": {"id": f"tfrecreg/{_uri(safe(report.target))}/"},
        "invocations": [invocation],
        "results": results,
    }


def _rule(finding: Finding, context: ReportContext) -> _Json:
    rule: _Json = {"id": safe_message(finding.code), "name": safe_message(finding.rule)}
    code = context.codes.get(finding.code)
    if code is not None:  # a report may come from a machine with other plugins
        page = "\n".join(safe_message(line, limit=1000) for line in code.page.strip().splitlines())
        hint = safe_message(code.hint, limit=1000)
        rule["shortDescription"] = {"text": f"{safe_message(code.summary, limit=1000)}."}
        rule["fullDescription"] = {"text": page}
        rule["help"] = {"text": f"{page}\n\nWhat to do: {hint}."}
        rule["defaultConfiguration"] = {"level": _SARIF_LEVELS[code.severity]}
    return rule


def _identity(finding: Finding) -> str:
    """The fingerprint, or a digest of it if it has unprintable characters."""
    shown = safe_message(finding.fingerprint, limit=500)
    if shown == finding.fingerprint:
        return shown
    data = finding.fingerprint.encode("utf-8", "surrogatepass")
    return f"{finding.code}:{blake3(data).hexdigest()}"


def _sarif_result(
    report: Report, finding: Finding, numbers: dict[str, int], context: ReportContext
) -> _Json:
    lines = [
        _what(finding),
        *location_lines(finding, _SARIF_PLACES),
        f"hint: {finding.hint}",
    ]
    found = [_location(report, each, context) for each in finding.locations]
    if not found and (path := context.path(report)) is not None:
        found = [{"physicalLocation": _physical(path)}]
    return {
        "ruleId": safe_message(finding.code),
        "ruleIndex": numbers[finding.code],
        "level": _SARIF_LEVELS[finding.severity],
        "message": {"text": "\n".join(safe_message(line, limit=1000) for line in lines)},
        "locations": [each for each in found if each],
        "occurrenceCount": max(finding.count, 1),
        "partialFingerprints": {_FINGERPRINT: _identity(finding)},
    }


def _location(report: Report, location: Location, context: ReportContext) -> _Json:
    found: _Json = {"message": {"text": safe_message(location_text(location))}}
    path = context.path(report, location.shard)
    if path is not None:
        found["physicalLocation"] = _physical(path)
    known = location.to_json()
    found["properties"] = {
        name: safe_message(value, limit=500) if isinstance(value, str) else value
        for name, value in known.items()
    }
    return found


def _physical(path: str) -> _Json:
    return {"artifactLocation": {"uri": _uri(path)}, "region": {"startLine": 1}}


def _suppression(report: Report, number: int) -> _Json:
    found = {"kind": "external", "status": "accepted"}
    if number < len(report.waivers):
        waiver = report.waivers[number]
        day = waiver.expires.isoformat()
        found["justification"] = safe_message(f"{waiver.reason} ({waiver.owner}, until {day})")
    return found


def _uri(path: str) -> str:
    """A path as a relative reference (RFC 3986) that keeps every byte of a name."""
    surrogates = [ord(each) for each in path if "\ud800" <= each <= "\udfff"]
    # Surrogates may stand for bytes of a name that is not UTF-8, or be unpaired.
    escaped = all(0xDC80 <= each <= 0xDCFF for each in surrogates)
    data = path.encode("utf-8", "surrogateescape" if escaped else "surrogatepass")
    # Quoting a colon keeps it from being a scheme; two leading slashes would start a host.
    quoted = quote(data, safe="/-._~")
    return f"/{quoted.lstrip('/')}" if quoted.startswith("//") else quoted


_JUNIT_PLACES = 20


class JunitFormat(ReportFormat):
    """All reports as one XML document in pure ASCII.

    Characters that XML forbids (control characters, surrogates, two noncharacters) are escaped as
    in all outputs. Paths are the same as in the text report.
    """

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        del context
        root = Element("testsuites", name="tfrecreg")
        for report in reports:
            _suite(root, report)
        for name in ("tests", "failures", "errors"):
            root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
        indent(root)
        text = tostring(root, encoding="us-ascii", xml_declaration=True).decode("ascii")
        return f"{text}\n"


def _suite(root: Element, report: Report) -> None:
    suite = SubElement(root, "testsuite", name=safe_message(report.target))
    for name in report.validators:
        _case(suite, report, f"validator {name}")
    for skipped in report.skipped:
        case = _case(suite, report, f"validator {skipped.name}")
        SubElement(case, "skipped", message=safe_message(skipped.reason))
    failing = {id(finding) for finding in report.failing}
    for finding in report.findings:
        case = _case(suite, report, _name(finding))
        if id(finding) in failing:
            failure = SubElement(case, "failure", message=_judged(finding), type=finding.code)
            failure.text = _failure_text(finding)
        else:
            SubElement(case, "system-out").text = f"{_judged(finding)}\n{_failure_text(finding)}"
    for finding, by in report.accepted:
        case = _case(suite, report, _name(finding))
        SubElement(case, "skipped", message=safe_message(f"waived {by}".rstrip()))
    if report.lowered:
        case = _case(suite, report, "severities")
        SubElement(case, "system-out").text = safe_message(report.lowered_text)
    for number, error in enumerate(report.errors, 1):
        case = _case(suite, report, f"incomplete {number}")
        SubElement(case, "error", message=safe_message(error), type="incomplete")
    kinds = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    suite.set("tests", str(len(suite)))
    for name, tag in kinds.items():
        suite.set(name, str(sum(case.find(tag) is not None for case in suite)))


def _case(suite: Element, report: Report, name: str) -> Element:
    return SubElement(
        suite, "testcase", classname=safe_message(report.target), name=safe_message(name)
    )


def _name(finding: Finding) -> str:
    return f"{finding.code} {finding.rule} {finding.fingerprint.partition(':')[2]}"


def _judged(finding: Finding) -> str:
    return safe_message(f"{finding.severity.value}: {_what(finding)}")


def _failure_text(finding: Finding) -> str:
    lines = [*location_lines(finding, _JUNIT_PLACES), f"hint: {finding.hint}"]
    return "\n".join(safe_message(line) for line in lines)

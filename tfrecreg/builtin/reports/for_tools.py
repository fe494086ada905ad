"""Reports for tools: SARIF 2.1.0 for code scanning, and JUnit's XML.

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
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tfrecreg.api import (
    Finding,
    Location,
    Report,
    ReportContext,
    ReportFormat,
    Severity,
    location_lines,
    location_text,
    safe,
    safe_message,
    subject_text,
)

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PLACES = 5
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
        rule["defaultConfiguration"] = {"level": _LEVELS[code.severity]}
    return rule


def _sarif_result(
    report: Report, finding: Finding, numbers: dict[str, int], context: ReportContext
) -> _Json:
    about = subject_text(finding)
    lines = [
        f"{finding.message}{f' ({about})' if about else ''}",
        *location_lines(finding, _PLACES),
        f"hint: {finding.hint}",
    ]
    found = [_location(report, each, context) for each in finding.locations]
    if not found and (path := context.path(report)) is not None:
        found = [{"physicalLocation": _physical(path)}]
    return {
        "ruleId": safe_message(finding.code),
        "ruleIndex": numbers[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": "\n".join(safe_message(line, limit=1000) for line in lines)},
        "locations": [each for each in found if each],
        "occurrenceCount": max(finding.count, 1),
        "partialFingerprints": {_FINGERPRINT: safe_message(finding.fingerprint, limit=500)},
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
            failure = SubElement(case, "failure", message=_message(finding), type=finding.code)
            failure.text = _failure_text(finding)
        else:
            SubElement(case, "system-out").text = f"{_message(finding)}\n{_failure_text(finding)}"
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


def _message(finding: Finding) -> str:
    about = subject_text(finding)
    return safe_message(
        f"{finding.severity.value}: {finding.message}{f' ({about})' if about else ''}"
    )


def _failure_text(finding: Finding) -> str:
    lines = [*location_lines(finding, _JUNIT_PLACES), f"hint: {finding.hint}"]
    return "\n".join(safe_message(line) for line in lines)

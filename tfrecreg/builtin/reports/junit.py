"""JUnit's XML: a suite for each target, a case for each validator and each finding.

There is no one schema of it. This keeps to what Jenkins' `xunit` plugin and GitLab share: suites
with counts, cases with `classname` and `name`, at most one of `failure`, `error` and `skipped` in
each.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from tfrecreg.api import (
    Finding,
    Report,
    ReportContext,
    ReportFormat,
    location_lines,
    safe_message,
    subject_text,
)

_PLACES = 20


class JunitFormat(ReportFormat):
    """The reports as one XML document, pure ASCII.

    What XML forbids (control characters, surrogates, the two that are not characters) is escaped as
    in all outputs. Paths are as in the text of a report.
    """

    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        """The document, indented."""
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
    lines = [*location_lines(finding, _PLACES), f"hint: {finding.hint}"]
    return "\n".join(safe_message(line) for line in lines)

"""JUnit's XML: what Jenkins and GitLab make of a report, and of names that mean harm."""

from __future__ import annotations

from dataclasses import replace
from xml.etree.ElementTree import Element, fromstring

import pytest
from hostile_support import NAMES, hostile_report

from tfrecreg.builtin.reports.formats import JunitFormat
from tfrecreg.core.check.report_format import ReportContext
from tfrecreg.core.check.reports import Report
from tfrecreg.core.values.config import FailOn

ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped"},
    "testcase": {"classname", "name"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "system-out": set(),
}
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"testcase"},
    "testcase": {"failure", "error", "skipped", "system-out"},
}


def junit(reports: list[Report]) -> str:
    return JunitFormat().render(reports, ReportContext())


def valid(element: Element) -> None:
    """What Jenkins' schema and GitLab's reader ask for."""
    assert set(element.attrib) == ATTRIBUTES[element.tag], element.tag
    assert {child.tag for child in element} <= CHILDREN.get(element.tag, set())
    if element.tag == "testcase":
        assert sum(child.tag != "system-out" for child in element) <= 1
        assert element.get("name")
    if element.tag in ("testsuite", "testsuites"):
        cases = list(element.iter("testcase"))
        assert int(element.attrib["tests"]) == len(cases)
        assert int(element.attrib["failures"]) == len(list(element.iter("failure")))
        assert int(element.attrib["errors"]) == len(list(element.iter("error")))
    for text in (*element.attrib.values(), element.text or ""):
        assert all(line.isprintable() for line in text.split("\n"))
    for child in element:
        valid(child)


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_no_name_breaks_it(number: int) -> None:
    text = junit([hostile_report(NAMES[number])])
    assert text.isascii()
    root = fromstring(text)
    valid(root)
    assert len(text) < 30_000
    cases = root.findall("testsuite/testcase")
    assert [case[0].tag if len(case) else "" for case in cases] == [
        "",
        "",
        "skipped",
        "failure",
        "system-out",
        "skipped",
        "system-out",
        "error",
    ]


def test_all_of_them_together_are_a_suite_for_each_target() -> None:
    root = fromstring(junit([hostile_report(name, target=name) for name in NAMES]))
    valid(root)
    assert len(root) == len(NAMES)
    assert root.attrib["failures"] == str(len(NAMES))


def test_what_fails_is_a_failure_and_what_does_not_is_told() -> None:
    report = hostile_report("a")
    (suite,) = fromstring(junit([replace(report, fail_on=FailOn.WARNING)]))
    assert [case.get("name") for case in suite if case.find("failure") is not None] == [
        "CRC002 data-checksum digits:a:a:a",
        "SHD006 inconsistent-names digits::a",
    ]
    (suite,) = fromstring(junit([replace(report, judged=False)]))
    assert suite.find("testcase/failure") is None
    told = [
        case.findtext("system-out", "") for case in suite if case.find("system-out") is not None
    ]
    assert told[0].startswith("error: the class `a` is a\na, record 3, offset 99, key a: expected")
    assert told[0].endswith("\n… and 28 more\nhint: mend a")


def test_a_waiver_says_who_answers_for_it() -> None:
    (suite,) = fromstring(junit([hostile_report("a")]))
    skipped = [each.get("message") for each in suite.iter("skipped")]
    assert skipped == ["no schema at a", "waived by aa until 2031-01-31: ba"]


def test_junitparser_reads_it() -> None:
    junitparser = pytest.importorskip("junitparser", reason="junitparser is not installed")
    found = junitparser.JUnitXml.fromstring(junit([hostile_report(name) for name in NAMES]))
    assert sum(len(suite) for suite in found) == found.tests == 8 * len(NAMES)
    results = [type(result).__name__ for suite in found for case in suite for result in case.result]
    assert sorted(set(results)) == ["Error", "Failure", "Skipped"]

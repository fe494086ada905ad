from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from tfrecreg.core.values.config import FailOn, Lowered, Verdict, Waiver, concerns, judge
from tfrecreg.core.values.findings import Finding, Location, Severity

TODAY = date(2026, 5, 1)


def finding(code: str = "CRC002", severity: Severity = Severity.ERROR, key: str = "a") -> Finding:
    return Finding(
        code=code,
        rule="rule",
        severity=severity,
        message="message",
        hint="hint",
        fingerprint=f"{code}:mnist:train::{key}",
        count=1,
    )


def waiver(**facts: Any) -> Waiver:
    return Waiver(**{"owner": "ada", "reason": "known", "expires": TODAY, **facts})


def verdict(found: Finding, **policy: Any) -> Verdict:
    return judge([found], policy.pop("fail_on", FailOn.ERROR), today=TODAY, **policy)


@pytest.mark.parametrize(
    ("fail_on", "failing"),
    [
        (FailOn.ERROR, {"error"}),
        (FailOn.WARNING, {"error", "warning"}),
        (FailOn.NEVER, set()),
    ],
)
def test_findings_fail_from_the_severity_named(fail_on: FailOn, failing: set[str]) -> None:
    for severity in Severity:
        judged = verdict(finding(severity=severity), fail_on=fail_on)
        assert judged.status == ("fail" if severity.value in failing else "pass")
        assert fail_on.fails(severity) == (severity.value in failing)
        assert judged.fail_on is fail_on


def test_lowered_severities_are_counted_by_code() -> None:
    found = [finding(key=key) for key in "abc"] + [finding("SHD007", Severity.WARNING)]
    found += [finding("SRC001", Severity.INFO), finding("IMG003", key="waived")]
    judged = judge(
        found,
        FailOn.ERROR,
        severity={"*": Severity.INFO, "CRC*": Severity.WARNING},
        waivers=[waiver(code="IMG003")],
        today=TODAY,
    )
    assert judged.lowered == (
        Lowered("CRC002", Severity.ERROR, Severity.WARNING, 3),
        Lowered("SHD007", Severity.WARNING, Severity.INFO, 1),
    )
    assert judge(found, FailOn.ERROR, severity={"*": Severity.ERROR}, today=TODAY).lowered == ()


def test_an_override_changes_the_severity_that_is_shown_and_judged() -> None:
    judged = verdict(finding(), severity={"CRC*": Severity.WARNING})
    assert judged.status == "pass"
    assert judged.findings[0].severity is Severity.WARNING
    raised = verdict(finding(severity=Severity.INFO), severity={"CRC002": Severity.ERROR})
    assert raised.status == "fail"


def test_the_most_literal_override_decides_whatever_the_order() -> None:
    overrides = {"*": Severity.ERROR, "CRC002": Severity.INFO, "CRC*": Severity.WARNING}
    for items in (list(overrides.items()), list(reversed(overrides.items()))):
        assert verdict(finding(), severity=dict(items)).findings[0].severity is Severity.INFO
    tied = {"CRC??2": Severity.INFO, "CRC0*": Severity.ERROR, "?RC0*": Severity.WARNING}
    assert verdict(finding(), severity=tied).findings[0].severity is Severity.ERROR


@pytest.mark.parametrize(
    ("facts", "covers"),
    [
        ({"code": "CRC*"}, True),
        ({"code": "CRC002"}, True),
        ({"code": "SHD*"}, False),
        ({"fingerprint": "CRC002:mnist:*"}, True),
        ({"fingerprint": "CRC002:coco:*"}, False),
        ({"fingerprint": "*:a"}, True),
        ({"code": "CRC*", "fingerprint": "*:b"}, False),
        ({"code": "SHD*", "fingerprint": "*:a"}, False),
    ],
)
def test_a_waiver_covers_what_both_its_globs_match(facts: dict[str, str], covers: bool) -> None:
    made = waiver(**facts)
    judged = verdict(finding(), waivers=[made])
    assert judged.status == ("pass" if covers else "fail")
    assert (judged.waived, judged.waivers) == (((finding(),), (made,)) if covers else ((), ()))
    assert judged.findings == (() if covers else (finding(),))


@pytest.mark.parametrize(
    ("pattern", "count", "means"),
    [
        ("CRC002 message", 2, True),
        ("CRC00? mess*", 9, True),
        ("CRC002 *.png", 2, True),
        ("CRC002 a.png", 2, False),  # one of two places
        ("CRC002 *.png", 3, False),  # a place that is not listed
        ("CRC002 *.jpg", 2, False),
        ("SHD002 *", 2, False),
        ("* *.png", 2, True),
    ],
)
def test_a_pattern_may_name_details(pattern: str, count: int, means: bool) -> None:
    places = tuple(Location(detail=name) for name in ("a.png", "b.png"))
    found = replace(finding(), count=count, locations=places)
    made = waiver(code=pattern)
    judged = verdict(found, waivers=[made])
    assert (judged.waived, judged.waivers) == (((found,), (made,)) if means else ((), ()))
    # It is more specific than a glob over codes alone.
    severity = {"*": Severity.INFO, pattern: Severity.WARNING}
    given = verdict(found, severity=severity).findings[0].severity
    assert given is (Severity.WARNING if means else Severity.INFO)


def test_a_waiver_holds_on_its_last_day_and_not_after() -> None:
    made = waiver(code="CRC*")
    assert judge([finding()], FailOn.ERROR, waivers=[made], today=TODAY).status == "pass"
    later = judge([finding()], FailOn.ERROR, waivers=[made], today=TODAY + timedelta(days=1))
    assert (later.status, later.lapsed, later.waived) == ("fail", ((finding(), made),), ())


def test_the_first_waiver_that_holds_is_the_one_named() -> None:
    old = waiver(code="CRC*", expires=TODAY - timedelta(days=1))
    first, second = waiver(code="CRC*"), waiver(code="CRC002")
    judged = verdict(finding(), waivers=[old, first, second])
    assert (judged.waived, judged.waivers) == ((finding(),), (first,))
    assert judged.lapsed == ()


@pytest.mark.parametrize(
    ("facts", "complaint"),
    [
        ({}, "a waiver needs a `code` or a `fingerprint` to match"),
        ({"code": "*"}, "a waiver needs a `code` or a `fingerprint` to match"),
    ],
)
def test_a_waiver_for_all_or_of_nobody_is_refused(facts: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint.replace("*", r"\*")):
        waiver(**facts)


@pytest.mark.parametrize("severity", list(Severity))
@pytest.mark.parametrize("fail_on", list(FailOn))
def test_what_an_expired_waiver_covered_fails_whatever_its_severity(
    severity: Severity, fail_on: FailOn
) -> None:
    old = waiver(code="CRC*", expires=TODAY - timedelta(days=1))
    found = finding(severity=severity)
    judged = verdict(found, fail_on=fail_on, waivers=[old])
    assert judged.status == ("pass" if fail_on is FailOn.NEVER else "fail")
    assert judged.lapsed == ((found, old),)
    # Renewed, or about something else, it is no matter.
    assert verdict(found, fail_on=fail_on, waivers=[old, waiver(code="CRC*")]).lapsed == ()
    other = waiver(code="SHD*", expires=TODAY - timedelta(days=1))
    assert verdict(found, fail_on=fail_on, waivers=[other]).lapsed == ()


@pytest.mark.parametrize(
    ("facts", "relevant"),
    [
        ({"code": "CRC*"}, True),
        ({"fingerprint": "SHD007:mnist:test:*"}, True),
        ({"fingerprint": "SHD007:other:test:*"}, False),
        ({"fingerprint": "SHD007:other"}, False),
        ({"fingerprint": "SHD007"}, True),
        ({"fingerprint": "*:other:test:*"}, True),
        ({"fingerprint": "SHD???:other:test"}, True),
        ({"fingerprint": "SHD007:oth*:test"}, True),
        ({"fingerprint": "SHD007:[o]ther:test"}, True),
        ({"fingerprint": "*"}, True),
    ],
)
def test_a_waiver_of_another_dataset_is_told_only_where_it_is_sure(
    facts: dict[str, str], relevant: bool
) -> None:
    assert concerns(waiver(**{"code": "SHD*", **facts}), "mnist") is relevant

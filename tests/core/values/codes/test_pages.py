"""The parser of the pages: a mistake in a page is an error with file and line."""

from __future__ import annotations

import pytest

from tfrecreg.core.values.codes.pages import PageError, parse_anomalies, parse_codes
from tfrecreg.core.values.findings import Severity, TensorflowOutcome

PAGE = """\
# XYZ: an example

## XYZ001 first-rule

- severity: warning
- summary: The first case
- hint: do something
- tensorflow: stops, reads
- counted: case occurs | cases occur

A first paragraph.

    ## indented = "is code"

## XYZ002 second-rule

- severity: info
- summary: The second case
- hint: do: nothing

- A list is text.
"""

GROUP = """\
# Anomalies

## nan

- hint: look at it
- records: SCH007

How it is found.

What to do.

- SCH153 HAS_NAN: There are NaN
- SCH162 HAS_INF: There are infinite values
"""


def test_a_page_gives_its_codes() -> None:
    first, second = parse_codes(PAGE, "xyz.md").values()
    assert (first.code, first.rule) == ("XYZ001", "first-rule")
    assert (first.severity, first.summary, first.hint) == (
        Severity.WARNING,
        "The first case",
        "do something",
    )
    assert first.tensorflow == (TensorflowOutcome.STOPS, TensorflowOutcome.READS)
    assert first.count_text(1) == "1 case occurs"
    assert first.count_text(2400) == "2,400 cases occur"
    assert second.count_text(2400) == "2,400 × The second case"
    assert first.page == 'A first paragraph.\n\n    ## indented = "is code"\n'
    assert second.hint == "do: nothing"
    assert second.page == "- A list is text.\n"
    assert second.tensorflow == ()


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("- hint: do something\n", "- hnt: x\n", "xyz.md:7: unknown or repeated field `hnt`"),
        (
            "- hint: do something\n",
            "- severity: info\n",
            "xyz.md:7: unknown or repeated field `severity`",
        ),
        ("- hint: do something\n", "", "xyz.md:3: missing field `hint`"),
        ("severity: warning", "severity: bad", "xyz.md:5: wrong `severity`: 'bad' is not a valid"),
        ("stops, reads", "stops,reads", "xyz.md:8: wrong `tensorflow`: expected reads, stops"),
        ("case occurs | cases", "case", "xyz.md:9: wrong `counted`: expected two texts with"),
        ("## XYZ001", "## XYZ1", "xyz.md:3: expected a new code: `XYZ1 first-rule`"),
        ("first-rule", "First Rule", "xyz.md:3: expected a new code: `XYZ001 First Rule`"),
        ("XYZ002", "XYZ001", "xyz.md:15: expected a new code: `XYZ001 second-rule`"),
    ],
)
def test_a_mistake_is_named_with_its_line(old: str, new: str, problem: str) -> None:
    assert PAGE.count(old) == 1
    with pytest.raises(PageError) as caught:
        parse_codes(PAGE.replace(old, new), "xyz.md")
    assert str(caught.value).startswith(problem)


def test_a_group_gives_a_code_for_each_type() -> None:
    first, second = parse_anomalies(GROUP, "x.md").values()
    assert (first.code.code, first.code.rule) == ("SCH153", "tfdv-has-nan")
    assert (first.code.severity, first.code.hint) == (Severity.ERROR, "look at it")
    assert first.record_code == "SCH007"
    assert second.code.summary == "There are infinite values"
    start = "How it is found.\n\nWhat to do.\n\nThe validator `schema` reports the records"
    assert second.code.page.startswith(start)
    assert second.code.page.endswith("as `HAS_INF`.\n")


def test_a_group_without_a_code_of_records_says_nothing_of_them() -> None:
    first, _ = parse_anomalies(GROUP.replace("- records: SCH007\n", ""), "x.md").values()
    assert first.record_code == ""
    assert "validator" not in first.code.page


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("- records", "- record", "x.md:6: unknown or repeated field `record`"),
        ("- hint: look at it\n", "", "x.md:3: missing field `hint`"),
        ("- SCH162 HAS_INF", "- HAS_INF", "x.md:3: expected `- SCH1xx TYPE: summary`: `- HAS_INF"),
        ("\n\n- SCH153", "\n- SCH153", "x.md:3: expected `- SCH1xx TYPE: summary`: `What to do.`"),
    ],
)
def test_a_mistake_in_a_group_is_named(old: str, new: str, problem: str) -> None:
    assert GROUP.count(old) == 1
    with pytest.raises(PageError) as caught:
        parse_anomalies(GROUP.replace(old, new), "x.md")
    assert str(caught.value).startswith(problem)

"""SARIF 2.1.0: held against the part of the standard that is used, and what GitHub asks for."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import pytest
from hostile_support import NAMES, hostile_finding, hostile_report

from tfrecreg.builtin.reports.formats import SarifFormat
from tfrecreg.core.check.report_format import ReportContext
from tfrecreg.core.check.reports import Report
from tfrecreg.core.values.codes import CORE_CODES

TEXT = {"text": str}
LEVEL = {"none", "note", "warning", "error"}
# The properties of the standard that may stand in each object here; those with `!` have to.
SHAPES: dict[str, dict[str, Any]] = {
    "log": {"$schema": str, "version!": {"2.1.0"}, "runs!": ["run"]},
    "run": {
        "tool!": "tool",
        "automationDetails": {"id": str},
        "invocations": ["invocation"],
        "results": ["result"],
    },
    "tool": {"driver!": "driver"},
    "driver": {"name!": str, "version": str, "rules": ["rule"]},
    "rule": {
        "id!": str,
        "name": str,
        "shortDescription": TEXT,
        "fullDescription": TEXT,
        "help": TEXT,
        "defaultConfiguration": {"level": LEVEL},
    },
    "invocation": {
        "executionSuccessful!": bool,
        "toolExecutionNotifications": ["notification"],
        "toolConfigurationNotifications": ["notification"],
    },
    "notification": {"level": LEVEL, "message!": TEXT},
    "result": {
        "ruleId": str,
        "ruleIndex": int,
        "level": LEVEL,
        "message!": TEXT,
        "locations": ["location"],
        "occurrenceCount": int,
        "partialFingerprints": dict,
        "suppressions": ["suppression"],
    },
    "location": {"message": TEXT, "physicalLocation": "physical", "properties": dict},
    "physical": {"artifactLocation!": {"uri": str}, "region": {"startLine": int}},
    "suppression": {
        "kind!": {"inSource", "external"},
        "status": {"accepted", "underReview", "rejected"},
        "justification": str,
    },
}


def sarif(reports: list[Report], prefix: str = "") -> str:
    context = ReportContext(prefix=prefix, codes=CORE_CODES)
    return SarifFormat().render(reports, context)


def valid(value: Any, shape: Any) -> None:
    if isinstance(shape, str):
        shape = SHAPES[shape]
    if isinstance(shape, set):
        assert value in shape
    elif isinstance(shape, list):
        assert isinstance(value, list)
        for item in value:
            valid(item, shape[0])
    elif isinstance(shape, dict):
        assert isinstance(value, dict)
        named = {name.rstrip("!"): inner for name, inner in shape.items()}
        assert set(value) <= set(named), value
        assert {name[:-1] for name in shape if name.endswith("!")} <= set(value)
        for name, inner in value.items():
            valid(inner, named[name])
    else:
        assert type(value) is shape, (value, shape)
    if isinstance(value, int) and not isinstance(value, bool):
        assert value >= 0


def checked(text: str) -> dict[str, Any]:
    assert text.isascii()
    log: dict[str, Any] = json.loads(text)
    valid(log, "log")
    for run in log["runs"]:
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert len(set(rules)) == len(rules)
        for result in run["results"]:
            assert rules[result["ruleIndex"]] == result["ruleId"]
            assert result["message"]["text"]
            # GitHub shows a result at its first place, and knows it again by its fingerprint.
            assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 1
            assert result["partialFingerprints"]["tfrecreg/v1"]
            for location in result["locations"]:
                uri = urlsplit(location["physicalLocation"]["artifactLocation"]["uri"])
                assert (uri.scheme, uri.netloc, uri.query, uri.fragment) == ("", "", "", "")
    return log


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [each for item in value.values() for each in strings(item)]
    if isinstance(value, list):
        return [each for item in value for each in strings(item)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_no_name_breaks_it(number: int) -> None:
    text = sarif([hostile_report(NAMES[number])])
    log = checked(text)
    assert len(text) < 150_000
    for each in strings(log):
        assert all(line.isprintable() for line in each.split("\n"))
        each.encode("utf-8")


def test_all_of_them_together_are_runs_of_their_own() -> None:
    log = checked(sarif([hostile_report(name, target=f"{n}") for n, name in enumerate(NAMES)]))
    ids = [run["automationDetails"]["id"] for run in log["runs"]]
    assert len(set(ids)) == len(NAMES)
    results = [result for run in log["runs"] for result in run["results"]]
    first = [result for result in results if result["ruleId"] == "CRC002"][::2]
    assert len({each["partialFingerprints"]["tfrecreg/v1"] for each in first}) == len(NAMES)


def test_levels_rules_places_and_suppressions() -> None:
    (run,) = checked(sarif([hostile_report("a")], "some/registry"))["runs"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert list(rules) == ["CRC002", "SHD006"]
    assert rules["CRC002"]["shortDescription"]["text"] == f"{CORE_CODES['CRC002'].summary}."
    assert [result["level"] for result in run["results"]] == ["error", "warning", "warning"]
    found, bare, waived = run["results"]
    assert found["occurrenceCount"] == 30
    (place, _) = found["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "some/registry/data/digits/a"
    assert (place["properties"]["record"], place["properties"]["offset"]) == (3, 99)
    # What is of no shard is shown at the manifest.
    where = bare["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert where == "some/registry/data/digits/manifest.json"
    assert "suppressions" not in found
    assert waived["suppressions"] == [
        {"kind": "external", "status": "accepted", "justification": "ba (aa, until 2031-01-31)"}
    ]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["automationDetails"]["id"] == "tfrecreg/digits/"


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a b", b"a b"),
        ("a:b?c#d%", b"a:b?c#d%"),
        ("\udc80", b"\x80"),
        ("\udcff", b"\xff"),
        # Not all surrogates of these stand for a byte.
        ("\udc7f", b"\xed\xb1\xbf"),
        ("\udd00\udcff", b"\xed\xb4\x80\xed\xb3\xbf"),
        ("\udfff", b"\xed\xbf\xbf"),
        ("ü", "ü".encode()),
        ("//host/a", b"host/a"),
    ],
)
def test_the_path_of_a_shard_survives_as_bytes(name: str, path: bytes) -> None:
    found = json.loads(sarif([hostile_report(name)]))["runs"][0]["results"][0]["locations"][0]
    uri = found["physicalLocation"]["artifactLocation"]["uri"]
    assert unquote_to_bytes(uri) == b"data/digits/" + path


def test_a_code_of_a_plugin_is_a_rule_without_a_page() -> None:
    from dataclasses import replace

    finding = replace(hostile_finding("a"), code="ACME01")
    log = checked(sarif([replace(hostile_report("a"), findings=(finding,), waived=())]))
    assert log["runs"][0]["tool"]["driver"]["rules"] == [{"id": "ACME01", "name": "data-checksum"}]


@pytest.mark.medium
def test_sarif_pydantic_reads_it() -> None:
    models = pytest.importorskip("sarif_pydantic", reason="sarif-pydantic is not installed")
    log = models.Sarif.model_validate_json(sarif([hostile_report(name) for name in NAMES]))
    assert len(log.runs) == len(NAMES)

"""Numbers and tables for DVC: numbers alone, at stable names, whatever the data are called."""

from __future__ import annotations

from typing import Any

from hostile_support import hostile_report

from tfrecreg.core.check.findings import metrics, plots
from tfrecreg.core.check.reports import Report
from tfrecreg.core.values.findings import Measure


def report(*measures: Measure) -> Report:
    return Report(
        target="a",
        status="pass",
        shards=2,
        records=30,
        bytes=400,
        payload_bytes=300,
        splits={"train": 20, "test": 10},
        measures=measures,
    )


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [each for item in value.values() for each in numbers(item)]
    return [value]


def test_metrics_are_objects_of_numbers() -> None:
    found = metrics(
        report(
            Measure("inflation.ratio_decoded", 0.5, ""),
            Measure("inflation.features", {"a": 1}, ""),
            Measure("inflation.none", None, ""),
            Measure("registry.history", "a text", ""),
            Measure("drift.endless", float("inf"), ""),
            Measure("drift.nothing", float("nan"), ""),
            Measure("a.b.c", 1, ""),
            Measure("a.b", 2, ""),
        )
    )
    assert found == {
        "shards": 2,
        "records": 30,
        "bytes": 400,
        "payload_bytes": 300,
        "splits": {"train": 20, "test": 10},
        "findings": {"error": 0, "warning": 0, "info": 0},
        "codes": {},
        "inflation": {"ratio_decoded": 0.5},
        "a": {"b": {"c": 1}},
        "a.b": 2,
    }


def test_findings_are_counted_by_severity_and_by_code() -> None:
    found = metrics(hostile_report("a"))
    assert found["findings"] == {"error": 1, "warning": 1, "info": 0}
    assert found["codes"] == {"CRC002": 30, "SHD006": 1}
    assert plots(hostile_report("a"))["findings"] == "severity,count\nerror,1\nwarning,1\ninfo,0\n"

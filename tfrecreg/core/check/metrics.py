"""What `dvc metrics` and `dvc plots` read: numbers alone, and tables, as other files.

DVC flattens nested objects and drops lists, so metrics are objects of numbers. Both hold
measurements, independent of the gate.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.values.findings import Severity
from tfrecreg.core.values.text import safe

PLOTS = {
    "findings": ("severity", "count"),
    "splits": ("split", "records"),
    "features": ("feature", "bytes"),
    "classes": ("class", "records"),
}
"""Columns by name of a table: the counted values, and their number."""

_FORMULA = ("=", "+", "-", "@")
"""A spreadsheet takes a cell that begins so for a formula."""


def metrics(report: Report) -> dict[str, Any]:
    """Numbers, in objects of objects: sizes, records of each split, findings, measures."""
    found: dict[str, Any] = {
        "shards": report.shards,
        "records": report.records,
        "bytes": report.bytes,
        "payload_bytes": report.payload_bytes,
        "splits": dict(report.splits),
        "findings": dict(_severities(report)),
        "codes": _codes(report),
    }
    for measure in report.measures:
        if isinstance(measure.value, int | float) and math.isfinite(measure.value):
            _put(found, measure.name, measure.value)
    return found


def plots(report: Report) -> dict[str, str]:
    """The tables of :data:`PLOTS` as CSV, by name. A table may have no rows."""
    measures = {measure.name: measure.value for measure in report.measures}
    rows: dict[str, Iterable[tuple[str, int]]] = {
        "findings": _severities(report),
        "splits": report.splits.items(),
        "features": _mapping(measures.get("inflation.features")),
        "classes": _classes(measures),
    }
    return {name: _table(columns, rows[name]) for name, columns in PLOTS.items()}


def _severities(report: Report) -> Iterator[tuple[str, int]]:
    """The number of findings of each severity; all of them, so that a plot has its axis."""
    for severity in Severity:
        yield severity.value, sum(found.severity is severity for found in report.findings)


def _codes(report: Report) -> dict[str, int]:
    """Code to the number of places at which it was found."""
    counts: dict[str, int] = {}
    for finding in report.findings:
        counts[finding.code] = counts.get(finding.code, 0) + finding.count
    return dict(sorted(counts.items()))


def _classes(measures: Mapping[str, object]) -> Iterable[tuple[str, int]]:
    """The class histogram of the first feature that has classes."""
    for name in sorted(measures):
        if name.startswith("annotations.histogram."):
            return _mapping(measures[name])
    return ()


def _mapping(value: object) -> Iterable[tuple[str, int]]:
    if not isinstance(value, Mapping):
        return ()
    return [(str(name), count) for name, count in value.items() if isinstance(count, int)]


def _put(found: dict[str, Any], name: str, value: float) -> None:
    """Set ``a.b.c``; a name that runs through another number is left as one word."""
    *above, last = name.split(".")
    inner: Any = found
    for part in above:
        inner = inner.setdefault(part, {}) if isinstance(inner, dict) else None
    if isinstance(inner, dict) and not isinstance(inner.get(last), dict):
        inner[last] = value
    else:
        found[name] = value


def _table(columns: tuple[str, str], rows: Iterable[tuple[str, int]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for name, count in rows:
        shown = safe(name)
        writer.writerow((f"'{shown}" if shown.startswith(_FORMULA) else shown, count))
    return text.getvalue()

"""The report of a check, in text for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from tfrecreg.core.check.reports import location_text, subject_text
from tfrecreg.core.terminal.catalog import feature_sizes, size_against_raw
from tfrecreg.core.terminal.console import Line, line
from tfrecreg.core.values.findings import Finding, Measure, Severity, TensorflowOutcome
from tfrecreg.core.values.text import count, safe, safe_message, si_bytes

if TYPE_CHECKING:
    from tfrecreg.core.check.reports import Report

SEVERITY_STYLE = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.INFO: "bold cyan",
}
# The worst outcome is a fault that TensorFlow reads without an error.
OUTCOME_STYLE = {
    TensorflowOutcome.READS: "yellow",
    TensorflowOutcome.STOPS: "dim",
    TensorflowOutcome.CRASHES: "red",
}

_LOCATIONS = 5
"""The number of locations shown per finding; the JSON has up to 20."""

_MEASURES = {
    "annotations.labels": "label maps",
    "drift.drift": "against the other version",
    "drift.skew": "against the other split",
    "inflation.pixels": "pixels",
    "items.matched": "items",
    "manifest.described": "folder",
    "manifest.kinds": "payloads",
    "manifest.unnamed": "shards not named",
    "registry.history": "git's history",
    "source.compared": "raw files",
    "questions.held": "expectations",
    "questions.lacks": "not asked about",
}
"""The label of each measure that gets a line, by the first two parts of the measure's name."""
_BUNDLED = frozenset(
    {
        *("annotations", "content", "crc", "drift", "duplicates", "images", "inflation", "items"),
        *("manifest", "registry", "schema", "source", "statistics"),
    }
)
"""Validators whose other measures are only in the JSON. Every measure that a plugin reports gets a
line.
"""


def print_report(console: Console, report: Report) -> None:
    """The whole report: the data read, their size, the findings and the verdict."""
    for change in report.changes:
        console.print(line((safe_message(change), "bold")))
    shards, records = count(report.shards, "shard"), count(report.records, "record")
    size = f"{shards}, {records}, {si_bytes(report.bytes)}"
    if report.releases is not None:
        size = count(report.releases, "release")
    console.print(line((report.target, "bold"), f": {size}"))
    if report.cached is not None:
        verb = "was" if report.cached == 1 else "were"
        unread = f"{report.cached:,} of {shards} {verb} not read again"
        console.print(line(("cached: ", "bold"), unread))
    for text in _size_lines(report.measures):
        console.print(text)
    for measure in report.measures:
        family = ".".join(measure.name.split(".")[:2])
        if family in _MEASURES:
            console.print(line((f"{_MEASURES[family]}: ", "bold"), measure.text))
        elif measure.name.split(".")[0] not in _BUNDLED:
            label = safe(measure.name, limit=60)
            console.print(line((f"{label}: ", "bold"), safe(measure.text, limit=300)))
    for note in report.notes:
        console.print(line(("note: ", "cyan"), safe_message(note)))
    for skipped in report.skipped:
        console.print(
            line(("not run: ", "dim"), f"{skipped.name} ({safe_message(skipped.reason)})")
        )
    print_accepted(console, report)
    for error in report.errors:
        console.print(line(("incomplete: ", "bold red"), safe_message(error)))
    console.print(_verdict(report))


def print_page(console: Console, path: str, page: str, reports: Sequence[Report]) -> None:
    """The path of the page, and the findings of the check."""
    for each in reports:
        found = count(len(each.findings), "finding")
        console.print(line(f"{each.target}: {each.status}, {found}"))
    console.print(line(f"wrote {safe(path, limit=1000)}, {si_bytes(len(page.encode()))}"))


def print_accepted(console: Console, report: Report) -> None:
    """The findings, the waived findings, and the note on findings with a lowered severity."""
    print_findings(console, report.findings)
    for finding, by in report.accepted:
        told = f"{finding.code} {safe(finding.fingerprint)}"
        console.print(line(("waived: ", "dim"), f"{told}{by and ' '}{safe_message(by)}"))
    if report.lowered:
        console.print(line(("note: ", "bold cyan"), report.lowered_text))


def print_findings(console: Console, findings: Sequence[Finding]) -> None:
    """Each finding with its first locations and its hint."""
    for finding in findings:
        head = (f"{finding.severity.value} {finding.code} ", SEVERITY_STYLE[finding.severity])
        about = subject_text(finding)
        about = f" ({about})" if about else ""
        console.print(line(head, f"{finding.rule}: {safe_message(finding.message)}{about}"))
        for location in finding.locations[:_LOCATIONS]:
            detail = f": {safe(location.detail, limit=300)}" if location.detail else ""
            parts: list[str | tuple[str, str]] = ["    ", (location_text(location), "bold"), detail]
            if location.tensorflow is not None:
                style = OUTCOME_STYLE[location.tensorflow]
                parts.append((f" (TensorFlow {location.tensorflow.value})", style))
            console.print(line(*parts))
        more = finding.count - min(len(finding.locations), _LOCATIONS)
        if finding.locations and more > 0:
            console.print(line(f"    … and {more:,} more"))
        console.print(line(("    hint: ", "cyan"), safe_message(finding.hint)))


def _size_lines(measures: Sequence[Measure]) -> Iterator[Line]:
    values = {measure.name: measure.value for measure in measures}
    size = values.get("inflation.bytes")
    if isinstance(size, int):
        text = f"{si_bytes(size)} in shards"
        stored, decoded = (values.get(f"inflation.raw_{base}") for base in ("stored", "decoded"))
        if isinstance(stored, int) and isinstance(decoded, int) and stored and decoded:
            text += f": {size_against_raw(size, stored, decoded)}"
        elif stored is None:
            text += "; the size of the raw data is not known: name the folder with `--raw`"
        yield line(("size: ", "bold"), text)
    features = values.get("inflation.features")
    if isinstance(features, Mapping) and features:
        beside = (values.get(f"inflation.{name}") for name in ("around", "other"))
        around, other = (each if isinstance(each, int) else 0 for each in beside)
        yield line(("bytes per feature: ", "bold"), feature_sizes(features, around, other))


def _verdict(report: Report) -> Line:
    counts = Counter(finding.severity for finding in report.findings)
    errors, warnings = (
        count(counts[each], each.value) for each in (Severity.ERROR, Severity.WARNING)
    )
    ran = ", ".join(report.validators) or "nothing"
    style = "bold green" if report.status == "pass" else "bold red"
    word = "incomplete" if report.status == "error" else report.status
    return line((word, style), f": {errors}, {warnings} ({ran})")

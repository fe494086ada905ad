"""Reading a saved check report: one that contradicts itself is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tfrecreg._version import JSON_VERSION
from tfrecreg.core.check.reports import Basis, Report, SkippedValidator, severities_of
from tfrecreg.core.values.codes import CORE_CODES, QRY001
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.documents import known_format, no_duplicates, refusing
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Code, Finding, Measure, Severity
from tfrecreg.core.values.text import listed, safe

_HINT = "tfrecreg check TARGET --fail-on never --format json --output FILE writes one"
_LARGEST = 1 << 30
"""Bytes: beyond all reports, which name 20 places for each finding."""


@dataclass(frozen=True, kw_only=True)
class _Summary:
    shards: int
    records: int
    bytes: int
    payload_bytes: int
    findings: int
    severities: dict[str, int] | None = None
    cached: int | None = None
    releases: int | None = None
    splits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Skipped:
    validator: str
    reason: str


_Value: TypeAlias = int | float | str | dict[str, int] | None


@dataclass(frozen=True, kw_only=True)
class _Document:
    """The keys of :meth:`Report.to_json`; more of them are left alone."""

    target: str
    status: Literal["pass", "fail", "error"]
    judged: bool
    fail_on: FailOn | None
    summary: _Summary
    findings: tuple[Finding, ...]
    waived: tuple[Finding, ...]
    measures: dict[str, _Value]
    validators: tuple[str, ...]
    skipped: tuple[_Skipped, ...]
    errors: tuple[str, ...]
    folder: str | None
    basis: Basis | None
    notes: tuple[str, ...] = ()


def read_report(path: str, target: str) -> Report:
    """The report about `target` in a file."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(
            f"the report `{safe(path)}` cannot be read: {error.strerror}", hint=_HINT
        ) from None
    if len(data) > _LARGEST:
        raise UsageError(f"`{safe(path)}` is too large for a check report", hint=_HINT)
    return parse_report(data, path, target)


def parse_report(data: bytes, where: str, target: str) -> Report:
    """What ``check --json`` printed, read again. The texts of measures and waivers are not
    in it.
    """
    shown = safe(where)
    with refusing(UsageError, f"`{shown}` is not a check report", hint=_HINT):
        # Not by stricter readers: a measure may be NaN, and a name have surrogate escapes.
        plain = json.loads(data, object_pairs_hook=no_duplicates)
        found = known_format(plain, JSON_VERSION, f"`{shown}` has format", "reads up to")
    several = found.get("reports")
    documents = several if isinstance(several, list) else [found]
    names = [each.get("target") for each in documents if isinstance(each, dict)]
    named = [str(name) for name in names if isinstance(name, str)]
    if target not in named:
        raise UsageError(
            f"`{shown}` is about {listed(named)}, not about `{safe(target)}`", hint=_HINT
        )
    document = next(
        each for each in documents if isinstance(each, dict) and each.get("target") == target
    )
    with refusing(UsageError, f"`{shown}` is not a check report", hint=_HINT):
        read = msgspec.convert(document, _Document)
    for contradiction in _contradictions(read):
        raise UsageError(f"the report `{shown}` contradicts itself: {contradiction}", hint=_HINT)
    return _report(read)


_BY_SCHEMA = "SCH"
"""The family of codes whose severity a schema, or TFDV, may lower."""


def _contradictions(found: _Document) -> Iterator[str]:
    """What in a report does not fit the rest of it, or the codes: it was edited or cut."""
    said, counted = found.summary, severities_of(found.findings)
    if said.findings != len(found.findings):
        yield f"`summary.findings` is {said.findings}, found {len(found.findings)}"
    for severity, number in (said.severities or {}).items():
        here = counted.get(severity)
        if number != here:
            yield f"`summary.severities.{safe(severity)}` is {number}, found {here}"
    for finding in found.findings:
        code, given = CORE_CODES.get(finding.code), finding.severity
        if found.judged or code is None or code.code.startswith(_BY_SCHEMA):
            continue
        expected = _severity_of(finding, code, found.basis)
        if given.rank < expected.rank:
            yield f"{code.code} has the severity {expected.value}, found {given.value}"
    if (found.status == "error") != bool(found.errors):
        yield f"`status` is {found.status}, and the number of `errors` is {len(found.errors)}"


def _severity_of(finding: Finding, code: Code, basis: Basis | None) -> Severity:
    """The severity of a code; for a question, the one that the gate of the report gives it."""
    questions = basis.limits.get("questions", {}) if basis is not None else {}
    question = questions.get(finding.fingerprint.rpartition(":")[2])
    if code is QRY001 and isinstance(question, dict):
        with suppress(ValueError):
            return Severity(question.get("severity"))
    return code.severity


def _measure(name: str, value: _Value) -> Measure:
    # JSON has no infinity: documents have a word for it.
    if value in ("inf", "-inf"):
        value = float(value)
    return Measure(name, value, "" if value is None or isinstance(value, dict) else str(value))


def _report(found: _Document) -> Report:
    return Report(
        target=found.target,
        status=found.status,
        shards=found.summary.shards,
        records=found.summary.records,
        bytes=found.summary.bytes,
        payload_bytes=found.summary.payload_bytes,
        cached=found.summary.cached,
        releases=found.summary.releases,
        splits=found.summary.splits,
        judged=found.judged,
        fail_on=found.fail_on,
        findings=found.findings,
        waived=found.waived,
        measures=tuple(_measure(name, value) for name, value in found.measures.items()),
        validators=found.validators,
        skipped=tuple(SkippedValidator(each.validator, each.reason) for each in found.skipped),
        errors=found.errors,
        folder=found.folder,
        notes=found.notes,
        basis=found.basis,
    )

"""Reading the report that a check wrote: what is in the file is data, and may be anything."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

from tfrecreg._version import JSON_VERSION
from tfrecreg.errors import NewerFormatError, UsageError
from tfrecreg.findings import Finding, Measure
from tfrecreg.gate import FailOn
from tfrecreg.operations.check.basis import Basis
from tfrecreg.operations.check.report import Report, SkippedValidator
from tfrecreg.suggest import listed
from tfrecreg.text import safe

__all__ = ["parse_report", "read_report"]

_HINT = "tfrecreg check TARGET --fail-on never --format json --output FILE writes one"
_LARGEST = 1 << 30
"""Bytes: beyond all reports, which name 20 places for each finding."""


@dataclass(frozen=True, kw_only=True)
class _Summary:
    shards: int
    records: int
    bytes: int
    payload_bytes: int
    cached: int | None = None
    releases: int | None = None
    splits: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Skipped:
    validator: str
    reason: str


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
    measures: dict[str, int | float | str | dict[str, int] | None]
    validators: tuple[str, ...]
    skipped: tuple[_Skipped, ...]
    errors: tuple[str, ...]
    folder: str | None
    basis: Basis | None


def read_report(path: str, target: str) -> Report:
    """The report about `target` in a file.

    Raises:
        UsageError: as :func:`parse_report`; or the file cannot be read, or is too large for one.
        NewerFormatError: a newer tfrecreg wrote it.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise UsageError(
            f"the report `{safe(path)}` cannot be read: {error.strerror}", hint=_HINT
        ) from None
    if len(data) > _LARGEST:
        raise UsageError(f"`{safe(path)}` is too large for a report of a check", hint=_HINT)
    return parse_report(data, path, target)


def parse_report(data: bytes, where: str, target: str) -> Report:
    """What ``check --json`` printed, read again. The texts of measures and waivers are not in it.

    Args:
        data: the document, of one target or of several.
        where: what messages call it.
        target: the one that is asked for: ``mnist``, ``mnist@1.0.0``.

    Raises:
        UsageError: it is no report, or none about that target.
        NewerFormatError: a newer tfrecreg wrote it.
    """
    try:
        # A name that was not UTF-8 is a lone surrogate here, which stricter readers refuse.
        found: Any = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError(f"`{safe(where)}` is no report of a check", hint=_HINT) from None
    if not isinstance(found, dict) or not isinstance(found.get("format_version"), int):
        raise UsageError(f"`{safe(where)}` is no report of a check", hint=_HINT)
    version = found["format_version"]
    if version > JSON_VERSION:
        raise NewerFormatError(
            f"`{safe(where)}` has format {version}, this tfrecreg reads up to {JSON_VERSION}",
            hint="use the tfrecreg that wrote it, or check again",
        )
    several = found.get("reports")
    documents = several if isinstance(several, list) else [found]
    names = [each.get("target") for each in documents if isinstance(each, dict)]
    named = [str(name) for name in names if isinstance(name, str)]
    if target not in named:
        raise UsageError(
            f"`{safe(where)}` is about {listed(named)}, not about `{safe(target)}`", hint=_HINT
        )
    document = next(
        each for each in documents if isinstance(each, dict) and each.get("target") == target
    )
    try:
        return _report(msgspec.convert(document, _Document))
    except msgspec.ValidationError as error:
        raise UsageError(
            f"`{safe(where)}` is no report of a check: {safe(str(error))}", hint=_HINT
        ) from None


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
        measures=tuple(
            Measure(name, value, "" if value is None or isinstance(value, dict) else str(value))
            for name, value in found.measures.items()
        ),
        validators=found.validators,
        skipped=tuple(SkippedValidator(each.validator, each.reason) for each in found.skipped),
        errors=found.errors,
        folder=found.folder,
        basis=found.basis,
    )

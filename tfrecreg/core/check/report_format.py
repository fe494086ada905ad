"""Reports for other programs: their formats, and a saved report that is read again."""

from __future__ import annotations

import json
import os
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from tfrecreg._version import JSON_VERSION, __version__
from tfrecreg.core.check.reports import Basis, Report, SkippedValidator, severities_of
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import MANIFEST_NAME
from tfrecreg.core.storage.paths import is_url
from tfrecreg.core.values.codes import CORE_CODES, QRY001
from tfrecreg.core.values.config import FailOn
from tfrecreg.core.values.documents import known_format, no_duplicates, refusing
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Code, Finding, Measure, Severity
from tfrecreg.core.values.text import listed, safe

_LONGEST = 4096
"""The maximum length of a path on Linux, in characters."""
_REGISTRY = f"{layout.RELEASES}/"
"""Begins the path of a file of a release, which is relative to the registry."""


def _no_note(line: str) -> None:
    del line


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """What a format is given beside the reports."""

    prefix: str = ""
    """Relative path from the current folder to the registry of the reports; empty if they have
    none, or if it is the current folder.
    """
    codes: Mapping[str, Code] = field(default_factory=dict)
    """Descriptions of the codes of the findings. A report may come from a machine with other
    plugins, so that some of its codes are unknown here.
    """
    note: Callable[[str], None] = _no_note
    """Tells the user something in one line, beside the document."""
    version: str = __version__
    """The version of tfrecreg."""

    def path(self, report: Report, shard: str | None = None) -> str | None:
        """The path of a shard, relative to the current folder, or else its URL.

        Args:
            report: the report with the finding.
            shard: the name in a location; None for the manifest.

        Returns:
            None if there is neither a shard nor a manifest.
        """
        if shard is not None and len(shard) > _LONGEST:
            shard = None  # no file has such a name
        if report.folder is None:
            return shard
        # Inside the folder, even if a damaged manifest gives it another name.
        inner = posixpath.normpath(f"/{shard or MANIFEST_NAME}").lstrip("/")
        if inner.startswith(_REGISTRY) and not posixpath.isabs(report.folder):
            return posixpath.normpath(posixpath.join(self.prefix, inner))
        if is_url(report.folder):
            return f"{report.folder}/{inner}"
        folder, prefix = report.folder, self.prefix
        if posixpath.isabs(folder):  # other programs expect a path in the work tree
            folder, prefix = os.path.relpath(folder), ""
        return posixpath.normpath(posixpath.join(prefix, folder, inner))


class ReportFormat(ABC):
    """Writes the reports of a call as one document. It is made without arguments, once a call."""

    def look(self, target: Target) -> Sequence[Validator]:
        """Validators that look at the records in the same pass as the check, and find nothing.

        Called once for each target that is read, before it is. What they have seen is for
        :meth:`render`. Not called where reports are written that have no records at hand, as by
        `gate`.
        """
        del target
        return ()

    @abstractmethod
    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        """The document, with its last line feed. It escapes names from data as its format needs.

        Also called for a report that says why the command failed, and with ``--output`` once
        before the work, for one that says that it did not finish.

        Args:
            reports: one or more, in the order of the targets.
            context: where they are from.
        """

    def finish(self, reports: Sequence[Report], context: ReportContext) -> None:
        """Called once the document is written. Does nothing by default.

        Not called for the report of before the work.
        """
        del reports, context


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

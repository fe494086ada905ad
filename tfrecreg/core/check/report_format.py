"""Formats that write reports for other programs, and the reader of saved reports."""

from __future__ import annotations

import json
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from tfrecreg._version import JSON_VERSION, __version__
from tfrecreg.core.check.reports import Basis, Report, severities_of
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import MANIFEST_NAME
from tfrecreg.core.storage.raw import file_from_here
from tfrecreg.core.values.codes import CORE_CODES, QRY001
from tfrecreg.core.values.documents import known_format, no_duplicates, refusing
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Code, Finding, Measure, Severity
from tfrecreg.core.values.text import listed, safe

_LONGEST = 4096
"""The maximum length of a path on Linux, in characters."""
_REGISTRY = f"{layout.RELEASES}/"
"""The path of a release's file begins with this. It is relative to the registry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """The context that a format gets with the reports."""

    prefix: str = ""
    """Relative path from the current folder to the registry; empty without one, or in it."""
    codes: Mapping[str, Code] = field(default_factory=dict)
    """Descriptions of the findings' codes. Codes of plugins may be unknown on this machine."""
    note: Callable[[str], None] = lambda _: None
    """Shows the user a line that is not part of the document."""
    version: str = __version__
    """The version of tfrecreg."""

    def path(self, report: Report, shard: str | None = None) -> str | None:
        """The path of a shard relative to the current folder, or its URL.

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
        # The path stays inside the folder, even if a damaged manifest names another place.
        inner = posixpath.normpath(f"/{shard or MANIFEST_NAME}").lstrip("/")
        if inner.startswith(_REGISTRY) and not posixpath.isabs(report.folder):
            return posixpath.normpath(posixpath.join(self.prefix, inner))
        return file_from_here(report.folder, inner, self.prefix)


class ReportFormat(ABC):
    """Writes the reports of a call as one document. Each call creates one object of the class,
    without arguments.
    """

    def look(self, target: Target) -> Sequence[Validator]:
        """Validators that look at the records in the same pass as the check, but make no findings.

        Called once for each target, before the target is read. :meth:`render` uses the data of
        these validators. Not called by `gate`, which reads no records.
        """
        del target
        return ()

    @abstractmethod
    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        """The document, which ends with a line feed. It escapes names that come from data, as the
        format requires.

        If the command fails, this method is called with a report about the failure.

        Args:
            reports: one or more, in the order of the targets.
            context: where the reports come from.
        """

    def finish(self, reports: Sequence[Report], context: ReportContext) -> None:
        """Called after the document was written. Does nothing by default."""
        del reports, context


_HINT = "tfrecreg check TARGET --fail-on never --format json --output FILE writes a report"


class _Summary(msgspec.Struct):
    shards: int
    records: int
    bytes: int
    payload_bytes: int
    findings: int
    severities: dict[str, int] = {}
    cached: int | None = None
    releases: int | None = None
    splits: dict[str, int] = {}


class _Skipped(msgspec.Struct):
    validator: str
    reason: str


class _Document(msgspec.Struct):
    """The required keys of :meth:`Report.to_json`. For `Any`, see the types of :class:`Report`."""

    target: Any
    status: Any
    judged: Any
    fail_on: Any
    summary: _Summary
    findings: Any
    waived: Any
    measures: dict[str, int | float | str | dict[str, int] | None]
    validators: Any
    skipped: list[_Skipped]
    errors: Any
    folder: Any
    basis: Any
    notes: Any = ()


def read_report(path: str, target: str) -> Report:
    """The report about `target`, read from a file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(
            f"the report `{path}` cannot be read: {error.strerror}", hint=_HINT
        ) from None
    return parse_report(data, path, target)


def parse_report(data: bytes, where: str, target: str) -> Report:
    """Read the output of ``check --json``, which lacks the texts of measures and waivers."""
    shown = safe(where)
    with refusing(UsageError, f"`{shown}` is not a check report", hint=_HINT):
        # Stricter readers would refuse NaN in measures, and surrogate escapes in names.
        plain = json.loads(data, object_pairs_hook=no_duplicates)
        found = known_format(plain, JSON_VERSION, f"`{shown}` has format", "reads up to")
    several = found.get("reports")
    documents = several if isinstance(several, list) else [found]
    documents = [each for each in documents if isinstance(each, dict)]
    document = next((each for each in documents if each.get("target") == target), None)
    if document is None:
        named = [str(each["target"]) for each in documents if "target" in each]
        raise UsageError(f"`{shown}` is about {listed(named)}, not about `{target}`", hint=_HINT)
    with refusing(UsageError, f"`{shown}` is not a check report", hint=_HINT):
        found = msgspec.convert(document, _Document)
        given = msgspec.structs.asdict(found)
        given |= msgspec.structs.asdict(given.pop("summary"))
        del given["severities"]
        given["findings"] = found.findings
        given["skipped"] = [
            {"name": each.validator, "reason": each.reason} for each in found.skipped
        ]
        measures = given.pop("measures")
        report = msgspec.convert(given, Report)
    for contradiction in _contradictions(report, found.summary):
        raise UsageError(f"the report `{shown}` contradicts itself: {contradiction}", hint=_HINT)
    return replace(report, measures=tuple(_measure(*each) for each in measures.items()))


_BY_SCHEMA = "SCH"
"""The family of codes whose severity a schema or TFDV may lower."""


def _contradictions(found: Report, said: _Summary) -> Iterator[str]:
    """Contradictions within a report, or between the report and the codes. Such a report was edited
    or cut.
    """
    counted = severities_of(found.findings)
    if said.findings != len(found.findings):
        yield f"`summary.findings` is {said.findings}, found {len(found.findings)}"
    for severity, number in said.severities.items():
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
        yield f"`status` is {found.status}, but the number of `errors` is {len(found.errors)}"


def _severity_of(finding: Finding, code: Code, basis: Basis | None) -> Severity:
    """Return the code's severity. A finding about a question of the gate has the severity that the
    gate sets.
    """
    questions = basis.limits.get("questions", {}) if basis is not None else {}
    question = questions.get(finding.fingerprint.rpartition(":")[2])
    if code is QRY001 and isinstance(question, dict):
        with suppress(ValueError):
            return Severity(question.get("severity"))
    return code.severity


def _measure(name: str, value: Any) -> Measure:
    # JSON has no infinity: documents have the texts `inf` and `-inf`.
    if value in ("inf", "-inf"):
        value = float(value)
    return Measure(name, value, "" if value is None or isinstance(value, dict) else str(value))

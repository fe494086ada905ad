"""The report of a check: its result as data, and the locations of a finding as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

from tfrecreg._version import JSON_VERSION
from tfrecreg.core.values.config import FailOn, Lowered, Waiver
from tfrecreg.core.values.errors import FailureError, RefusedError, TfrecregError
from tfrecreg.core.values.findings import Finding, Location, Measure, Severity
from tfrecreg.core.values.text import count, json_data, safe, safe_message


def location_text(location: Location) -> str:
    """The known shard, record, offset and key, escaped. Never empty."""
    pieces = []
    if location.shard is not None:
        pieces.append(safe(location.shard))
    elif location.split is not None:
        pieces.append(f"split {safe(location.split)}")
    if location.record is not None:
        pieces.append(f"record {location.record}")
    if location.offset is not None:
        pieces.append(f"offset {location.offset}")
    if location.key is not None:
        pieces.append(f"key {safe(location.key)}")
    if location.feature is not None and location.shard is None:
        pieces.append(safe(location.feature))
    return ", ".join(pieces)


def location_lines(finding: Finding, limit: int) -> Iterator[str]:
    """The first locations of a finding with their details, and the number of further locations."""
    for location in finding.locations[:limit]:
        detail = f": {safe(location.detail, limit=300)}" if location.detail else ""
        outcome = f" (TensorFlow {location.tensorflow.value})" if location.tensorflow else ""
        yield f"{location_text(location)}{detail}{outcome}"
    more = finding.count - min(len(finding.locations), limit)
    if finding.locations and more > 0:
        yield f"… and {more:,} more"


def subject_text(finding: Finding) -> str:
    """The subject of a finding without locations, escaped; empty if it has locations."""
    if finding.locations:
        return ""
    return safe(finding.fingerprint.rsplit(":", 1)[-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadShard:
    """A shard that a check read to its end."""

    path: str
    """The path in the manifest or, for bare files, the path as the user gave it."""
    bytes: int
    blake3: str | None = None
    """Hex digest of the file; None if no validator needed it."""

    def to_json(self) -> dict[str, str | int]:
        """The entry in the report's JSON."""
        digest = {"blake3": self.blake3} if self.blake3 is not None else {}
        return {"path": self.path, "bytes": self.bytes, **digest}


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """State of the target when it was checked, and the options of the check."""

    manifest: str | None = None
    """Digest of the target's manifest; None for bare files."""
    schema: str | None = None
    """blake3 of the schema's text; None without a schema."""
    raw: str | None = None
    """The folder of raw data that the user named; None if the manifest's numbers were used."""
    against: str | None = None
    """Reference or files that the target was compared with."""
    same_as: str | None = None
    """Reference or digest of the records that the target should have."""
    expect: Mapping[str, int] = field(default_factory=dict)
    """Expected number of records by split."""
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Options by validator, for validators that ran with options."""
    shards: tuple[ReadShard, ...] = field(default=(), repr=False)
    """In the order of the target. Without times, so that reports are equal on every machine."""

    def to_json(self) -> dict[str, Any]:
        """The entry in the report's JSON."""
        return {
            "manifest": self.manifest,
            "schema": self.schema,
            "raw": self.raw,
            "against": self.against,
            **({"same_as": self.same_as} if self.same_as is not None else {}),
            **({"expect": self.expect} if self.expect else {}),
            "only": self.only,
            "skip": self.skip,
            "limits": dict(sorted(self.limits.items())),
            "shards": self.shards,
        }


@dataclass(frozen=True, slots=True)
class SkippedValidator:
    """A validator that does not apply to the target, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Report:
    """The result of checking one target.

    Example:
        >>> report = reg["mnist"].built.check(only=["crc"])
        >>> report.status, report.findings, report.exit_code
        ('pass', (), 0)
        >>> report.to_json()["summary"]["splits"]
        {'test': 60, 'train': 200}
    """

    target: str
    status: Literal["pass", "fail", "error"]
    """``error`` if the check is incomplete, because a shard was not read or a validator crashed."""
    shards: int
    records: int
    """Number of records with matching checksums."""
    bytes: int
    """Size of the shard files in bytes."""
    payload_bytes: int
    cached: int | None = None
    """Number of unchanged shards that were not read again; None without earlier results."""
    releases: int | None = None
    """Number of releases whose manifest and history an audit read; None for other checks."""
    splits: Mapping[str, int] = field(default_factory=dict)
    """For each split, the number of records with valid checksums; empty if nothing was read."""
    judged: bool = True
    """Whether a gate was applied to the findings; False for a check that only measured."""
    fail_on: FailOn | None = None
    """Lowest severity that makes the check fail; None if no gate was applied."""
    findings: tuple[Finding, ...] = ()
    """Sorted by severity (the worst first), then by fingerprint."""
    waived: tuple[Finding, ...] = ()
    """Findings that a waiver accepts."""
    waivers: tuple[Waiver, ...] = ()
    """The waiver for each finding in `waived`, in the same order."""
    lowered: tuple[Lowered, ...] = ()
    """Findings whose severity the gate lowered, by code."""
    measures: tuple[Measure, ...] = ()
    validators: tuple[str, ...] = ()
    """Names of the validators that ran."""
    skipped: tuple[SkippedValidator, ...] = ()
    errors: tuple[str, ...] = field(default=())
    """Reasons why the check is incomplete, one line each."""
    folder: str | None = None
    """Folder of the shards, relative to the registry. Without a registry, it is an absolute path.
    None for bare files, because their locations have complete paths.
    """
    changes: tuple[str, ...] = ()
    """Changes in the build or release since the version before it, one line each."""
    notes: tuple[str, ...] = ()
    """Which files next to the shards the check used, or why it did not use them, a line each."""
    basis: Basis | None = None
    """Inputs of the check; None if it did not run."""

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that made the check fail."""
        if not self.judged or self.fail_on is None:
            return ()
        return tuple(found for found in self.findings if self.fail_on.fails(found.severity))

    def raise_for_findings(self, severity: FailOn | str | None = None) -> None:
        """Raise an error if the check is incomplete, or has findings of at least this severity.

        Args:
            severity: ``error`` or ``warning``; None for the severity that the report used.

        Raises:
            FailureError: the check is incomplete.
            RefusedError: there are such findings. They are in the error's `findings`.
            UsageError: `severity` is another word.

        Example:
            >>> reg["mnist"].built.check(only=["crc"]).raise_for_findings("warning")
        """
        limit = None if severity is None else FailOn.parse(severity)
        if self.status == "error":
            raise FailureError(f"the check of `{self.target}` is incomplete: {self.errors[0]}")
        found = self.failing
        if limit is not None:
            found = tuple(each for each in self.findings if limit.fails(each.severity))
        if found:
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            raise RefusedError(
                f"`{self.target}`: {found[0].message} ({found[0].code}){more}",
                hint=found[0].hint,
                findings=found,
            )

    def __repr__(self) -> str:
        codes = ", ".join(dict.fromkeys(each.code for each in self.findings))
        found = f", {codes}" if codes else ""
        return f"<Report {safe(self.target)}: {self.status}{found}, {self._size()}>"

    def __str__(self) -> str:
        """The verdict and the findings, each with its first location and its hint."""
        lines = [f"{safe(self.target)}: {self.status}, {self._size()}"]
        lines += [f"incomplete: {safe_message(each)}" for each in self.errors]
        for each in self.findings:
            message = safe_message(each.message)
            lines.append(f"{each.severity.value} {each.code} {each.rule}: {message}")
            lines += (f"    {line}" for line in location_lines(each, 1))
            lines.append(f"    hint: {safe_message(each.hint)}")
        return "\n".join(lines)

    def _size(self) -> str:
        if self.releases is not None:
            return count(self.releases, "release")
        return f"{count(self.records, 'record')} in {count(self.shards, 'shard')}"

    def _repr_html_(self) -> str:
        """The verdict and the findings, for a notebook."""
        rows = "".join(
            f"<tr><td>{each.severity.value}</td><td>{each.code}</td><td>{each.count:,}</td>"
            f"<td style='text-align:left'>{escape(each.message)}</td>"
            f"<td>{escape(each.locations[0].shard or '') if each.locations else ''}</td></tr>"
            for each in self.findings
        )
        table = (
            f"<table><tr><th>severity<th>code<th>count<th>finding<th>first in</tr>{rows}</table>"
        )
        return (
            f"<p><b>{escape(self.target)}: {self.status}</b>, {self._size()}</p>"
            f"{table if rows else ''}"
        )

    @property
    def accepted(self) -> Iterator[tuple[Finding, str]]:
        """Each waived finding, with a text that says who waived it, until when and why. The text is
        empty if the waiver is not known."""
        for number, finding in enumerate(self.waived):
            waiver = self.waivers[number] if number < len(self.waivers) else None
            by = f"by {waiver.owner} until {waiver.expires}: {waiver.reason}" if waiver else ""
            yield finding, by

    @property
    def lowered_text(self) -> str:
        """One line about `lowered`; empty if the gate lowered nothing."""
        shown = [
            f"{safe(each.code)} from {each.own.value} to {each.given.value} "
            f"({each.findings:,} finding{'s' if each.findings > 1 else ''})"
            for each in self.lowered
        ]
        return f"the gate lowered severities: {', '.join(shown)}" if shown else ""

    @property
    def exit_code(self) -> int:
        """0 if the check passed, 1 if it failed, 3 if it is incomplete."""
        return {"pass": 0, "fail": 1, "error": 3}[self.status]

    @property
    def kinds(self) -> Mapping[str, int] | None:
        """Number of payloads in bare files, by kind; None if they were not counted."""
        for measure in self.measures:
            if measure.name == "manifest.kinds" and isinstance(measure.value, Mapping):
                return measure.value
        return None

    def to_json(self) -> dict[str, Any]:
        """The document of ``check --json``."""
        document: dict[str, Any] = {
            "format_version": JSON_VERSION,
            "target": self.target,
            "status": self.status,
            "judged": self.judged,
            "fail_on": self.fail_on,
            "summary": {
                "shards": self.shards,
                "records": self.records,
                "bytes": self.bytes,
                "payload_bytes": self.payload_bytes,
                **({"cached": self.cached} if self.cached is not None else {}),
                **({"releases": self.releases} if self.releases is not None else {}),
                "findings": len(self.findings),
                "severities": severities_of(self.findings),
                "splits": self.splits,
                **({"kinds": self.kinds} if self.kinds is not None else {}),
            },
            "findings": self.findings,
            "waived": self._waived(),
            "lowered": self.lowered,
            "measures": {measure.name: measure.value for measure in self.measures},
            "validators": self.validators,
            "skipped": [{"validator": each.name, "reason": each.reason} for each in self.skipped],
            "errors": self.errors,
            **({"changes": self.changes} if self.changes else {}),
            **({"notes": self.notes} if self.notes else {}),
            "folder": self.folder,
            "basis": self.basis,
        }
        plain: dict[str, Any] = json_data(document)
        return plain

    def _waived(self) -> list[dict[str, object]]:
        documents: list[dict[str, object]] = [json_data(finding) for finding in self.waived]
        for document, waiver in zip(documents, self.waivers, strict=False):
            document["waiver"] = {
                "owner": waiver.owner,
                "reason": waiver.reason,
                "expires": waiver.expires,
            }
        return documents


def severities_of(findings: Iterable[Finding]) -> dict[str, int]:
    """The number of findings of each severity; includes zeros, so that plots have the same axis."""
    counts = Counter(finding.severity for finding in findings)
    return {severity.value: counts[severity] for severity in Severity}


def error_report(target: str, error: TfrecregError) -> Report:
    """The report about a target that could not be checked."""
    hint = f"; hint: {error.hint}" if error.hint else ""
    return Report(
        target=target,
        status="error",
        shards=0,
        records=0,
        bytes=0,
        payload_bytes=0,
        findings=error.findings if isinstance(error, RefusedError) else (),
        errors=(f"{error.message}{hint}",),
    )

"""What a check says, as data. Faces render it; pipelines read its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tfrecreg._version import JSON_VERSION
from tfrecreg.findings import Finding, Measure
from tfrecreg.gate import FailOn, Waiver
from tfrecreg.operations.check.basis import Basis

__all__ = ["Report", "SkippedValidator", "error_report"]


@dataclass(frozen=True, slots=True)
class SkippedValidator:
    """A validator that does not apply to the target, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of checking one target."""

    target: str
    status: Literal["pass", "fail", "error"]
    """``error`` where the check is incomplete: a shard was not read or a validator crashed."""
    shards: int
    records: int
    """Whose checksums hold."""
    bytes: int
    """Of the shard files as they lie."""
    payload_bytes: int
    cached: int | None = None
    """Shards that were not read again, being as an earlier check saw them; None where the check
    was not asked to reuse anything."""
    releases: int | None = None
    """Releases whose manifests and history were looked at, and nothing else was; None for every
    other check."""
    splits: Mapping[str, int] = field(default_factory=dict)
    """Split to its records whose checksums hold; empty where nothing was read."""
    judged: bool = True
    """False for a check that only measured: its findings are to be held against a gate yet."""
    fail_on: FailOn | None = None
    """From which severity on a finding failed; None where nothing came to be judged."""
    findings: tuple[Finding, ...] = ()
    """The worst first, then by fingerprint."""
    waived: tuple[Finding, ...] = ()
    """Found, and accepted by a waiver."""
    waivers: tuple[Waiver, ...] = ()
    """Those that accept `waived`, one by one."""
    measures: tuple[Measure, ...] = ()
    validators: tuple[str, ...] = ()
    """Those that ran."""
    skipped: tuple[SkippedValidator, ...] = ()
    errors: tuple[str, ...] = field(default=())
    """Why the check is incomplete, one line each."""
    folder: str | None = None
    """Of the bytes, in the registry; None for bare files, whose locations have whole paths."""
    basis: Basis | None = None
    """What was checked and how; None where it came to nothing."""

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that made it fail."""
        if not self.judged or self.fail_on is None:
            return ()
        return tuple(found for found in self.findings if self.fail_on.fails(found.severity))

    @property
    def exit_code(self) -> int:
        """0 pass, 1 fail, 3 incomplete."""
        return {"pass": 0, "fail": 1, "error": 3}[self.status]

    @property
    def kinds(self) -> Mapping[str, int] | None:
        """What the payloads of bare files are: kind to number; None where that was not counted."""
        for measure in self.measures:
            if measure.name == "manifest.kinds" and isinstance(measure.value, Mapping):
                return measure.value
        return None

    def to_json(self) -> dict[str, Any]:
        """The document of ``check --json``."""
        return {
            "format_version": JSON_VERSION,
            "target": self.target,
            "status": self.status,
            "judged": self.judged,
            "fail_on": self.fail_on.value if self.fail_on is not None else None,
            "summary": {
                "shards": self.shards,
                "records": self.records,
                "bytes": self.bytes,
                "payload_bytes": self.payload_bytes,
                **({"cached": self.cached} if self.cached is not None else {}),
                **({"releases": self.releases} if self.releases is not None else {}),
                "findings": len(self.findings),
                "splits": dict(self.splits),
                **({"kinds": self.kinds} if self.kinds is not None else {}),
            },
            "findings": [finding.to_json() for finding in self.findings],
            "waived": self._waived(),
            "measures": {measure.name: measure.value for measure in self.measures},
            "validators": list(self.validators),
            "skipped": [{"validator": each.name, "reason": each.reason} for each in self.skipped],
            "errors": list(self.errors),
            "folder": self.folder,
            "basis": self.basis.to_json() if self.basis is not None else None,
        }

    def _waived(self) -> list[dict[str, object]]:
        documents = [finding.to_json() for finding in self.waived]
        for document, waiver in zip(documents, self.waivers, strict=False):
            document["waiver"] = {
                "owner": waiver.owner,
                "reason": waiver.reason,
                "expires": waiver.expires.isoformat(),
            }
        return documents


def error_report(target: str, error: str, *, findings: tuple[Finding, ...] = ()) -> Report:
    """The report about a target that could not be judged.

    Args:
        target: as the user named it.
        error: why, in one line.
        findings: what was found nevertheless.
    """
    return Report(
        target=target,
        status="error",
        shards=0,
        records=0,
        bytes=0,
        payload_bytes=0,
        findings=findings,
        errors=(error,),
    )

"""What a gate makes of findings, as the report has it."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tfrecreg.codes import REG009
from tfrecreg.config import GateConfig
from tfrecreg.findings import Finding, fingerprint
from tfrecreg.gate import FailOn, Waiver, judge
from tfrecreg.text import safe

__all__ = ["Judgement", "order", "verdict_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The part of a report that depends on the gate and on the day."""

    status: Literal["pass", "fail"]
    fail_on: FailOn
    findings: tuple[Finding, ...]
    """The worst first; for each waiver that has expired one more, `REG009`."""
    waived: tuple[Finding, ...]
    waivers: tuple[Waiver, ...]
    """Those that cover `waived`, one by one."""
    notes: tuple[str, ...]
    """What to tell a person beside, a line each."""


def verdict_of(
    findings: Iterable[Finding],
    gate: GateConfig,
    waivers: Sequence[Waiver],
    *,
    dataset: str,
    fail_on: FailOn | None = None,
    today: datetime.date | None = None,
) -> Judgement:
    """Hold findings against a gate.

    Args:
        findings: as the validators gave them.
        gate: severities, and from which one on it fails.
        waivers: of the registry, expired or not.
        dataset: of the target; empty for bare files.
        fail_on: goes over the gate's.
        today: the day to hold waivers against; None for the current one, in UTC.
    """
    day = today or datetime.datetime.now(datetime.timezone.utc).date()
    limit = fail_on or gate.fail_on
    found = judge(findings, limit, severity=gate.severity, waivers=waivers, today=day)
    lapsed: dict[Waiver, list[Finding]] = {}
    for finding, waiver in found.lapsed:
        lapsed.setdefault(waiver, []).append(finding)
    told = {id(finding): _told(finding, waiver) for finding, waiver in found.lapsed}
    shown = [told.get(id(finding), finding) for finding in found.findings]
    shown += [_expired(waiver, len(covered), dataset) for waiver, covered in lapsed.items()]
    return Judgement(
        status=found.status,
        fail_on=limit,
        findings=tuple(sorted(shown, key=order)),
        waived=tuple(finding for finding, _ in found.waived),
        waivers=tuple(waiver for _, waiver in found.waived),
        notes=tuple(_note(waiver) for waiver in lapsed),
    )


def order(finding: Finding) -> tuple[int, str]:
    """The worst first, by the severities that the gate gave."""
    return -finding.severity.rank, finding.fingerprint


def _told(finding: Finding, waiver: Waiver) -> Finding:
    day = waiver.expires.isoformat()
    return replace(
        finding, message=f"{finding.message} (waived by {safe(waiver.owner)} until {day})"
    )


def _expired(waiver: Waiver, count: int, dataset: str) -> Finding:
    code = REG009
    what = _subject(waiver)
    return Finding(
        code=code.code,
        rule=code.rule,
        severity=code.severity,
        message=f"The waiver of `{safe(what)}` by {safe(waiver.owner)} expired on "
        f"{waiver.expires.isoformat()}, and what it covered is still there; its reason was: "
        f"{safe(waiver.reason)}",
        hint=code.hint,
        fingerprint=fingerprint(code.code, dataset=dataset, subject=what),
        count=count,
    )


def _note(waiver: Waiver) -> str:
    return (
        f"the waiver of `{safe(_subject(waiver))}` by {safe(waiver.owner)} expired on "
        f"{waiver.expires.isoformat()}: what it covered counts again"
    )


def _subject(waiver: Waiver) -> str:
    return waiver.fingerprint if waiver.code == "*" else waiver.code

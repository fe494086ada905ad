"""The gate: from findings to pass or fail. Pure data; today's date is passed in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timezone
from enum import Enum
from fnmatch import fnmatchcase
from typing import Literal

from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.findings import Finding, Severity
from tfrecreg.core.values.text import safe


class FailOn(str, Enum):
    """The lowest severity that fails the gate."""

    ERROR = "error"
    WARNING = "warning"
    NEVER = "never"

    @classmethod
    def parse(cls, value: FailOn | str) -> FailOn:
        """``error``, ``warning`` or ``never``."""
        try:
            return cls(value)
        except ValueError:
            raise UsageError(
                f"`fail_on` should be `error`, `warning` or `never`, found `{safe(str(value))}`",
                hint="`never` reports without judging",
            ) from None

    def fails(self, severity: Severity) -> bool:
        """Whether a finding of `severity` fails. Information never does."""
        return self is not FailOn.NEVER and severity.rank >= Severity(self.value).rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """An accepted finding: `[[waivers]]` in `tfrecreg.toml`.

    Globs are those of :func:`fnmatch.fnmatchcase`: ``*``, ``?`` and ``[…]``; a literal ``[`` is
    written ``[[]``. If both globs are given, both must match.
    """

    owner: str
    """Person or team responsible for the waiver."""
    reason: str
    expires: date
    """The last day on which it is valid."""
    code: str = "*"
    """Glob over codes: ``IMG*``."""
    fingerprint: str = "*"
    """Glob over fingerprints: ``SRC003:mnist:train:*``."""

    def __post_init__(self) -> None:
        if self.code == "*" and self.fingerprint == "*":
            raise ValueError("a waiver needs a `code` or a `fingerprint` to match")
        for name in ("owner", "reason"):
            if not getattr(self, name).strip():
                raise ValueError(f"a waiver's `{name}` may not be empty")

    def covers(self, finding: Finding) -> bool:
        """Whether it matches `finding`, regardless of its date."""
        return fnmatchcase(finding.code, self.code) and fnmatchcase(
            finding.fingerprint, self.fingerprint
        )


@dataclass(frozen=True, slots=True)
class Lowered:
    """Findings of one code whose severity a gate lowered."""

    code: str
    own: Severity
    """The severity that the validator gave."""
    given: Severity
    findings: int
    """Their number."""

    def to_json(self) -> dict[str, str | int]:
        """As the report's JSON has it."""
        return {"code": self.code, "from": self.own, "to": self.given, "findings": self.findings}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict of a gate on findings."""

    status: Literal["pass", "fail"]
    fail_on: FailOn
    findings: tuple[Finding, ...]
    """The findings without a waiver, in their order, with the severities of the gate."""
    waived: tuple[tuple[Finding, Waiver], ...]
    """The findings with a waiver, each with the first waiver that matches."""
    lapsed: tuple[tuple[Finding, Waiver], ...] = ()
    """Those of `findings` that match an expired waiver, each with the first one. They fail with any
    severity: a finding that was once accepted needs a new decision.
    """
    lowered: tuple[Lowered, ...] = ()
    """Those of `findings` whose severity the gate lowered, by code."""

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that fail the gate."""
        return tuple(found for found in self.findings if self.fail_on.fails(found.severity))


def judge(
    findings: Iterable[Finding],
    fail_on: FailOn,
    *,
    severity: Mapping[str, Severity] | None = None,
    waivers: Sequence[Waiver] = (),
    today: date,
) -> Verdict:
    """Apply a gate's policy."""
    expired = tuple(waiver for waiver in waivers if waiver.expires < today)
    holding = [waiver for waiver in waivers if waiver.expires >= today]
    kept: list[Finding] = []
    waived: list[tuple[Finding, Waiver]] = []
    lapsed: list[tuple[Finding, Waiver]] = []
    lowered: Counter[tuple[str, Severity, Severity]] = Counter()
    for finding in findings:
        given = severity_of(finding.code, finding.severity, severity or {})
        judged = replace(finding, severity=given)
        waiver = next((waiver for waiver in holding if waiver.covers(judged)), None)
        if waiver is not None:
            waived.append((judged, waiver))
            continue
        kept.append(judged)
        if judged.severity.rank < finding.severity.rank:
            lowered[finding.code, finding.severity, judged.severity] += 1
        lapsed += [(judged, waiver) for waiver in expired if waiver.covers(judged)][:1]
    failed = any(fail_on.fails(finding.severity) for finding in kept)
    failed = failed or (bool(lapsed) and fail_on is not FailOn.NEVER)
    return Verdict(
        status="fail" if failed else "pass",
        fail_on=fail_on,
        findings=tuple(kept),
        waived=tuple(waived),
        lapsed=tuple(lapsed),
        lowered=tuple(Lowered(*each, lowered[each]) for each in sorted(lowered)),
    )


def concerns(waiver: Waiver, dataset: str) -> bool:
    """Whether a waiver may cover findings of `dataset`; False only if it certainly does not.

    A fingerprint is ``CODE:dataset:…``: if its first two parts have no wildcard, the second one is
    the dataset.
    """
    code, _, rest = waiver.fingerprint.partition(":")
    named = rest.partition(":")[0]
    return not named or named == dataset or any(sign in code + named for sign in "*?[")


def next_expiry(waivers: Iterable[Waiver], dataset: str, today: date | None = None) -> date | None:
    """The next day on which a waiver of a dataset holds for the last time; None without one."""
    day = today or datetime.now(timezone.utc).date()
    holding = [each.expires for each in waivers if concerns(each, dataset)]
    return min((each for each in holding if each >= day), default=None)


def severity_of(code: str, own: Severity, overrides: Mapping[str, Severity]) -> Severity:
    """The severity that a gate gives to findings of a code: see :func:`judge`."""
    matching = [
        (sum(character.isalnum() for character in glob), given.rank, given)
        for glob, given in overrides.items()
        if fnmatchcase(code, glob)
    ]
    return max(matching, key=lambda match: match[:2])[2] if matching else own

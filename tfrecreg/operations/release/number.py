"""The number of a release, which must not say less than what changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tfrecreg.codes import REG001, REG005
from tfrecreg.errors import RefusedError
from tfrecreg.findings import Code, Finding, fingerprint
from tfrecreg.manifest import Change, Manifest
from tfrecreg.reference import Version, parse_version
from tfrecreg.registry.chain import RANK, step
from tfrecreg.text import safe

__all__ = ["choose_number"]


def choose_number(
    name: str,
    version: Version | None,
    bump: Literal["auto", "patch", "minor", "major"],
    parent: Manifest | None,
    change: Change,
    versions: Sequence[Version],
    hint: str = "",
) -> Version:
    """The number that was asked for, or the next one.

    Args:
        name: of the dataset.
        version: the number that was asked for; None to count up from the parent.
        bump: which part to count up; ``auto`` for the smallest legal one.
        parent: the release before; None for a first one.
        change: what changed since.
        versions: of all releases.
        hint: how to know more of the change, where not all is known of it.

    Raises:
        RefusedError: it says less than what changed (REG001), or what changed would be missing
            from a release above it that has the same MAJOR number (REG005).
    """
    if parent is None or parent.release is None or change.level == "initial":
        return version or Version(1, 0, 0)
    before = parse_version(parent.release.version)
    smallest = before.bump(change.level)
    legal = f"the smallest legal number is {smallest}"
    next_one = f"`tfrecreg release {name} --bump auto` takes the next number"
    if version is None:
        version = before.bump(change.level if bump == "auto" else bump)
    if smallest in versions:
        legal = next_one
    said = step(before, version)
    if RANK[said] < RANK[change.level]:
        reasons = safe("; ".join(change.reasons), limit=2000)
        raise _refused(
            REG001,
            name,
            version,
            f"`{version}` understates the change since {before}: it is {change.level}, "
            f"not {said}: {reasons}",
            f"{legal}; it might be smaller if more were known: {hint}" if hint else legal,
        )
    above = [each for each in versions if each > version and each.major == version.major]
    if above and change.level != "patch":
        raise _refused(
            REG005,
            name,
            version,
            f"`{version}` would come before {above[0]}, which does not hold what changed "
            f"since {before}",
            next_one,
        )
    return version


def _refused(code: Code, name: str, version: Version, message: str, hint: str) -> RefusedError:
    finding = Finding(
        code=code.code,
        rule=code.rule,
        severity=code.severity,
        message=message,
        hint=hint,
        fingerprint=fingerprint(code.code, dataset=name, subject=str(version)),
        count=1,
    )
    return RefusedError(message, hint=hint, findings=(finding,))

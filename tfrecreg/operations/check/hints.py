"""Hints that know what is checked: the command that brings the bytes back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tfrecreg.findings import Finding
from tfrecreg.manifest.adopted import is_adopted
from tfrecreg.records import LFS_POINTER
from tfrecreg.scan import Target

__all__ = ["with_hints"]

_NO_TFRECORD = "CRC008"
_REPAIRABLE = frozenset({*(f"CRC00{number}" for number in range(1, 8)), _NO_TFRECORD})


def with_hints(findings: Sequence[Finding], target: Target) -> list[Finding]:
    """The findings, those of damaged bytes with the command that fits the target."""
    return [replace(finding, hint=_hint(finding, target) or finding.hint) for finding in findings]


def _hint(finding: Finding, target: Target) -> str:
    if finding.code == _NO_TFRECORD and any(
        LFS_POINTER in (each.detail or "") for each in finding.locations
    ):
        return "`git lfs pull` brings the files that the pointers of git-LFS stand for"
    if finding.code not in _REPAIRABLE:
        return ""
    # A build that is not in its place yet has no home, and nothing to repair.
    if target.home is None or target.manifest is None or is_adopted(target.manifest):
        return ""
    command = f"tfrecreg build {target.dataset} --repair {target.name}"
    return f"`{command}` makes the damaged files again, byte for byte"

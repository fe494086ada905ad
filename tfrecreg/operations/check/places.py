"""The records behind what TFDV says of whole splits, from what was found record by record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tfrecreg.codes.tfdv import record_code
from tfrecreg.findings import Finding

__all__ = ["with_places"]


def with_places(findings: Sequence[Finding]) -> list[Finding]:
    """Give each anomaly the places of the findings that are its cause.

    Args:
        findings: of all validators that ran. TFDV's statistics know no records; the validator
            `schema` does, where it ran.
    """
    found = {_subject(each.code, each): each for each in findings if each.locations}
    told = []
    for each in findings:
        cause = found.get(_subject(record_code(each.code), each))
        if cause is not None:
            each = replace(each, count=cause.count, locations=cause.locations)
        told.append(each)
    return told


def _subject(code: str, finding: Finding) -> tuple[str, str | None, str | None]:
    if not finding.locations:
        return code, None, None
    first = finding.locations[0]
    return code, first.split, first.feature

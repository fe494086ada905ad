"""Findings that repeat what another one says better: one mistake is one finding."""

from __future__ import annotations

from collections.abc import Sequence

from tfrecreg.codes import ANN002, SCH006, SCH007
from tfrecreg.findings import Finding
from tfrecreg.validators.annotations.names import BOX

__all__ = ["without_echoes"]

_OF_VALUES = (SCH006.code, SCH007.code)


def without_echoes(findings: Sequence[Finding]) -> list[Finding]:
    """Drop what is told twice.

    `SHD002` of shards whose damage a `CRC` finding names. `SCH006` and `SCH007` of the sides of
    boxes, where `ANN002` names the very records: it shows the whole box. Only where both were
    looked for: with `--only manifest` the digest is all there is to tell.
    """
    damaged = {
        location.shard
        for finding in findings
        if finding.code.startswith("CRC")
        for location in finding.locations
    }
    boxes = [finding for finding in findings if finding.code == ANN002.code]
    return [
        finding
        for finding in findings
        if not (finding.code == "SHD002" and _is_within(finding, damaged))
        and not any(_is_of_box(finding, box) for box in boxes)
    ]


def _is_within(finding: Finding, shards: set[str | None]) -> bool:
    places = finding.locations
    return bool(places) and all(location.shard in shards for location in places)


def _is_of_box(finding: Finding, box: Finding) -> bool:
    """Whether a finding about the side of a box has no record that the one about boxes lacks."""
    if finding.code not in _OF_VALUES or finding.count > box.count or not finding.locations:
        return False
    records = {(place.shard, place.record) for place in box.locations}
    return all(
        place.feature in BOX and (place.shard, place.record) in records
        for place in finding.locations
    )

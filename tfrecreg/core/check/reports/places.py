"""The locations of a finding, as text. All formats share it."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.core.values.findings import Finding, Location
from tfrecreg.core.values.text import safe


def location_text(location: Location) -> str:
    """Shard, record, offset and key as far as known, escaped. Never empty."""
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
    """The first locations of a finding with their details, and the number of the others."""
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


def safe_message(text: str, *, limit: int = 2000) -> str:
    """A message, escaped only if it contains misleading characters.

    Messages escape the names in them; those of plugins may not.

    Args:
        text: the message.
        limit: the maximum number of characters.
    """
    bare = text.replace("\\", "")
    if len(text) <= limit and safe(bare, limit=len(bare) + 1) == bare:
        return text
    return safe(text, limit=limit)

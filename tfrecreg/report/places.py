"""Where a finding was seen, in words: the same in all formats."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.findings import Finding, Location
from tfrecreg.text import safe

__all__ = ["place", "places", "plain", "subject"]


def place(location: Location) -> str:
    """Shard, record, offset and key, as far as they are known: never empty, always escaped."""
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


def places(finding: Finding, limit: int) -> Iterator[str]:
    """The first places of a finding with what was found there, and how many more there are."""
    for location in finding.locations[:limit]:
        detail = f": {safe(location.detail, limit=300)}" if location.detail else ""
        outcome = f" (TensorFlow {location.tensorflow.value})" if location.tensorflow else ""
        yield f"{place(location)}{detail}{outcome}"
    more = finding.count - min(len(finding.locations), limit)
    if finding.locations and more > 0:
        yield f"… and {more:,} more"


def subject(finding: Finding) -> str:
    """What a finding without places is about, escaped; empty where it has places, or says it."""
    if finding.locations:
        return ""
    return safe(finding.fingerprint.rsplit(":", 1)[-1])


def plain(text: str, *, limit: int = 2000) -> str:
    """A message, in which names are escaped already: as it is unless anything in it would mislead.

    Args:
        text: of a finding, whoever made it: a plugin may have escaped nothing.
        limit: the most characters to return.
    """
    bare = text.replace("\\", "")
    if len(text) <= limit and safe(bare, limit=len(bare) + 1) == bare:
        return text
    return safe(text, limit=limit)

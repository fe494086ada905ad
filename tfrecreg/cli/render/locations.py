"""Where a finding was seen, in words: the same in all formats."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

from tfrecreg.findings import Finding, Location
from tfrecreg.manifest import MANIFEST_NAME
from tfrecreg.text import safe

if TYPE_CHECKING:
    from tfrecreg.operations.check import Report

__all__ = ["finding_path", "path_of", "place", "places", "plain", "subject", "uri"]


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


_LONGEST = 4096
"""Characters: Linux takes no longer path."""


def path_of(report: Report, shard: str | None, prefix: str) -> str | None:
    """Where a shard of the report is; without one, where its manifest is; None for neither.

    Args:
        report: what it was found by.
        shard: as a location names it.
        prefix: the path that leads to the registry, empty for the current folder.
    """
    if shard is not None and len(shard) > _LONGEST:
        shard = None  # no file is called so
    if report.folder is None:
        return shard
    # Below the folder, whatever a damaged manifest calls it.
    inner = posixpath.normpath(f"/{shard or MANIFEST_NAME}").lstrip("/")
    return posixpath.normpath(posixpath.join(prefix, report.folder, inner))


def finding_path(report: Report, finding: Finding, prefix: str) -> str | None:
    """Where the first shard of a finding is."""
    shards = (location.shard for location in finding.locations if location.shard is not None)
    return path_of(report, next(shards, None), prefix)


def uri(path: str) -> str:
    """A path as a relative reference of RFC 3986: every byte of a name survives."""
    data = path.encode("utf-8", "surrogateescape" if _escaped(path) else "surrogatepass")
    # A colon in the first part would be a scheme, which quoting it rules out; two slashes, a host.
    quoted = quote(data, safe="/-._~")
    return f"/{quoted.lstrip('/')}" if quoted.startswith("//") else quoted


def _escaped(path: str) -> bool:
    """Whether all surrogates in it stand for bytes of a name that was not UTF-8."""
    return all(0xDC80 <= ord(each) <= 0xDCFF for each in path if "\ud800" <= each <= "\udfff")

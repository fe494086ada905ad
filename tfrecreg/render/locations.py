"""Where a finding was seen, as text and as paths. All formats share it."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

from tfrecreg.findings import Finding, Location
from tfrecreg.manifest.model import MANIFEST_NAME
from tfrecreg.storage.urls import is_url
from tfrecreg.text import safe

if TYPE_CHECKING:
    from tfrecreg.reports.model import Report


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


_LONGEST = 4096
"""The maximum length of a path on Linux, in characters."""


def shard_path(report: Report, shard: str | None, prefix: str) -> str | None:
    """The path of a shard, or else of the manifest; None if there is neither.

    Args:
        report: the report with the finding.
        shard: the name in a location.
        prefix: the path of the registry; empty for the current folder.
    """
    if shard is not None and len(shard) > _LONGEST:
        shard = None  # no file has such a name
    if report.folder is None:
        return shard
    # Inside the folder, whatever name a damaged manifest gives it.
    inner = posixpath.normpath(f"/{shard or MANIFEST_NAME}").lstrip("/")
    if is_url(report.folder):
        return f"{report.folder}/{inner}"
    folder = report.folder
    if posixpath.isabs(folder):  # a path in the work tree is what other programs know
        folder, prefix = os.path.relpath(folder), ""
    return posixpath.normpath(posixpath.join(prefix, folder, inner))


def finding_path(report: Report, finding: Finding, prefix: str) -> str | None:
    """The path of the first shard of a finding."""
    shards = (location.shard for location in finding.locations if location.shard is not None)
    return shard_path(report, next(shards, None), prefix)


def uri(path: str) -> str:
    """A path as a relative reference (RFC 3986) that keeps every byte of a name."""
    data = path.encode("utf-8", "surrogateescape" if _escaped(path) else "surrogatepass")
    # Quoting a colon keeps it from being a scheme; two leading slashes would start a host.
    quoted = quote(data, safe="/-._~")
    return f"/{quoted.lstrip('/')}" if quoted.startswith("//") else quoted


def _escaped(path: str) -> bool:
    """Whether all surrogates in it stand for bytes of a name that is not UTF-8."""
    return all(0xDC80 <= ord(each) <= 0xDCFF for each in path if "\ud800" <= each <= "\udfff")

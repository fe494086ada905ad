"""Paths of shards as other programs want them: relative to where the command runs."""

from __future__ import annotations

import posixpath
from urllib.parse import quote

from tfrecreg.findings import Finding
from tfrecreg.manifest import MANIFEST_NAME
from tfrecreg.operations.check import Report

__all__ = ["finding_path", "path_of", "uri"]

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

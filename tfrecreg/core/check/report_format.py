"""What writes reports for other programs: the interface of a report format."""

from __future__ import annotations

import os
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tfrecreg._version import __version__
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.interface import Target, Validator
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import MANIFEST_NAME
from tfrecreg.core.storage.paths import is_url
from tfrecreg.core.values.findings import Code

_LONGEST = 4096
"""The maximum length of a path on Linux, in characters."""
_REGISTRY = f"{layout.RELEASES}/"
"""Begins the path of a file of a release, which is relative to the registry."""


def _no_note(line: str) -> None:
    del line


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportContext:
    """What a format is given beside the reports."""

    prefix: str = ""
    """Relative path from the current folder to the registry of the reports; empty if they have
    none, or if it is the current folder.
    """
    codes: Mapping[str, Code] = field(default_factory=dict)
    """Descriptions of the codes of the findings. A report may come from a machine with other
    plugins, so that some of its codes are unknown here.
    """
    note: Callable[[str], None] = _no_note
    """Tells the user something in one line, beside the document."""
    version: str = __version__
    """The version of tfrecreg."""

    def path(self, report: Report, shard: str | None = None) -> str | None:
        """The path of a shard, relative to the current folder, or else its URL.

        Args:
            report: the report with the finding.
            shard: the name in a location; None for the manifest.

        Returns:
            None if there is neither a shard nor a manifest.
        """
        if shard is not None and len(shard) > _LONGEST:
            shard = None  # no file has such a name
        if report.folder is None:
            return shard
        # Inside the folder, even if a damaged manifest gives it another name.
        inner = posixpath.normpath(f"/{shard or MANIFEST_NAME}").lstrip("/")
        if inner.startswith(_REGISTRY) and not posixpath.isabs(report.folder):
            return posixpath.normpath(posixpath.join(self.prefix, inner))
        if is_url(report.folder):
            return f"{report.folder}/{inner}"
        folder, prefix = report.folder, self.prefix
        if posixpath.isabs(folder):  # other programs expect a path in the work tree
            folder, prefix = os.path.relpath(folder), ""
        return posixpath.normpath(posixpath.join(prefix, folder, inner))


class ReportFormat(ABC):
    """Writes the reports of a call as one document. It is made without arguments, once a call."""

    def look(self, target: Target) -> Sequence[Validator]:
        """Validators that look at the records in the same pass as the check, and find nothing.

        Called once for each target that is read, before it is. What they have seen is for
        :meth:`render`. Not called where reports are written that have no records at hand, as by
        `gate`.
        """
        del target
        return ()

    @abstractmethod
    def render(self, reports: Sequence[Report], context: ReportContext) -> str:
        """The document, with its last line feed. It escapes names from data as its format needs.

        Also called for a report that says why the command failed, and with ``--output`` once
        before the work, for one that says that it did not finish.

        Args:
            reports: one or more, in the order of the targets.
            context: where they are from.
        """

    def finish(self, reports: Sequence[Report], context: ReportContext) -> None:
        """Called once the document is written. Does nothing by default.

        Not called for the report of before the work.
        """
        del reports, context

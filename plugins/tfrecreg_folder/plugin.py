"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.api import Source, SourceRecord, hookimpl

_SUFFIXES = ("[wW][aA][vV]", "[fF][lL][aA][cC]", "[mM][pP][34]", "[mM]4[aA]", "[mM][oO][vV]")


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `folder`."""
    yield SourceRecord(
        "folder",
        "files of any kind, sounds and videos with what their headers say",
        _load,
        recognizes=[f"{depth}*.{suffix}" for depth in ("", "*/", "*/*/") for suffix in _SUFFIXES],
    )


def _load() -> type[Source]:
    from tfrecreg_folder.source import FolderSource

    return FolderSource

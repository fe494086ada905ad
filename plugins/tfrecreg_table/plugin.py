"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.api import Source, SourceRecord, hookimpl

_SUFFIXES = ("csv", "tsv", "jsonl", "ndjson", "parquet")


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `table`."""
    yield SourceRecord(
        "table",
        "rows of CSV, TSV, JSON Lines or Parquet, with the files they name",
        _load,
        recognizes=[f"*.{suffix}" for suffix in _SUFFIXES],
    )


def _load() -> type[Source]:
    from tfrecreg_table.source import TableSource

    return TableSource

"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_SUFFIXES = ("csv", "tsv", "jsonl", "ndjson", "parquet")


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `table`."""
    yield SourceRecord(
        "table",
        "rows of CSV, TSV, JSON Lines or Parquet, with the files they name",
        _load,
        recognizes=[
            *(f"*.{suffix}" for suffix in _SUFFIXES),
            *(f"*/metadata.{suffix}" for suffix in ("csv", "jsonl", "parquet")),
        ],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg_table.recognition import recognize_tables

    return recognize_tables(preview)


def _load() -> type[Source]:
    from tfrecreg_table.source import TableSource

    return TableSource

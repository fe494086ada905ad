"""The bundled source `table`: the rows of CSV, TSV, JSON Lines and Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `table`."""
    yield SourceRecord(
        "table",
        "rows of CSV, TSV, JSON Lines or Parquet, with the files they name",
        _load,
        recognizes=[
            *("*.csv", "*.tsv", "*.jsonl", "*.ndjson", "*.parquet"),
            *("*/metadata.csv", "*/metadata.jsonl", "*/metadata.parquet"),
        ],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    """Tables directly in the folder.

    Parquet files alone are a layout: their columns have names and types. Where they have Hugging
    Face's features, its source recognizes them exactly.
    """
    from tfrecreg.api import Recognition, listed
    from tfrecreg_table import tables

    named, media = tables.metadata_tables(preview)
    if media:
        by = listed(named, most=3)
        reason = f"{preview.counted(len(media), 'media file')}, described by {by}"
        return Recognition("exact", reason, preview.aside([*named, *media]))
    found = [path for path in preview.files() if tables.is_found_table(path)]
    if not found:
        return None
    used = found if len(found) == 1 else tables.split_tables(found)
    reason = f"{preview.counted(len(used or found), 'table')} ({listed(used or found, most=3)})"
    if not used:
        reason += ", none named after a split"
    folders = preview.folders()
    if folders:
        reason += f" beside folders ({listed(folders, most=3)}), whose files columns may name"
    is_layout = not folders and all(path.lower().endswith(".parquet") for path in found)
    aside = preview.aside([*(used or found), *folders])
    return Recognition("layout" if is_layout else "general", reason, aside)


def _load() -> type[Source]:
    from tfrecreg_table.source import TableSource

    return TableSource

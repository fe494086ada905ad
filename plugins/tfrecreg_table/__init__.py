"""The bundled source `table`: the rows of CSV, TSV, JSON Lines and Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
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
    """Recognize tables directly in the folder, and tables of metadata beside media files.

    A folder that has only Parquet files counts as a layout, because their columns have names and
    types. If the files have Hugging Face's features, the source `huggingface` recognizes the folder
    exactly.
    """
    from tfrecreg.api import Recognition, listed
    from tfrecreg_table.tables import is_table, metadata_tables, split_of

    named, media = metadata_tables(preview)
    if media:
        reason = (
            f"{preview.counted(len(media), 'media file')}, described by {listed(named, most=3)}"
        )
        return Recognition("exact", reason, preview.aside([*named, *media]))
    found = [path for path in preview.files() if is_table(path)]
    if not found:
        return None
    used = [path for path in found if split_of(path) or len(found) == 1] or found
    reason = f"{preview.counted(len(used), 'table')} ({listed(used, most=3)})"
    if folders := preview.folders():
        reason += f" beside folders ({listed(folders, most=3)}); columns may name files in them"
    is_layout = not folders and all(path.lower().endswith(".parquet") for path in found)
    aside = preview.aside([*used, *folders])
    return Recognition("layout" if is_layout else "general", reason, aside)


def _load() -> type[Source]:
    from tfrecreg_table.source import TableSource

    return TableSource

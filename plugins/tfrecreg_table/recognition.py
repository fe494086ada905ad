"""Whether a folder has tables, where no source is named."""

from __future__ import annotations

from tfrecreg.api import RawPreview, Recognition, listed, media_kind, safe
from tfrecreg_table.rows import suffix_of
from tfrecreg_table.table_files import (
    FOUND_SUFFIXES,
    METADATA,
    has_file_names,
    is_split_folder,
    split_tables,
)

_SHOWN = 3


def recognize_tables(preview: RawPreview) -> Recognition | None:
    """Why: tables directly in the folder. None if there are none.

    Parquet files alone are a layout: their columns have names and types. Where they have Hugging
    Face's features, its source recognizes them exactly.
    """
    named = _metadata(preview)
    tops = tuple(path[: path.rfind("/") + 1] for path in named)
    below = [path for path in preview.below() if path.startswith(tops)]
    media = [path for path in below if media_kind(path) != "file"]
    if media:
        reason = f"{preview.counted(len(media), 'media file')}, described by {_names(named)}"
        return Recognition("exact", reason, preview.aside([*named, *media]))
    found = [path for path in preview.files() if suffix_of(path) in FOUND_SUFFIXES]
    if not found:
        return None
    used = found if len(found) == 1 else split_tables(found)
    folders = preview.folders()
    reason = f"{preview.counted(len(used or found), 'table')} ({_names(used or found)})"
    if not used:
        reason += ", none named after a split"
    if folders:
        reason += f" beside folders ({_names(folders)}), whose files columns may name"
    alone = not folders and all(suffix_of(path) == "parquet" for path in found)
    aside = preview.aside([*(used or found), *folders])
    return Recognition("layout" if alone else "general", reason, aside)


def _metadata(preview: RawPreview) -> list[str]:
    """Tables of Hugging Face's folders of images, which name the files beside them."""
    found = []
    for folder in ("", *filter(is_split_folder, preview.folders())):
        here = [path for path in preview.files(folder) if path.rpartition("/")[2] in METADATA]
        for path in here[:1]:
            if has_file_names(path, preview.start(path), preview.end(path)):
                found.append(path)
    return found


def _names(names: list[str]) -> str:
    if len(names) <= _SHOWN:
        return listed(names)
    shown = ", ".join(f"`{safe(name, limit=60)}`" for name in names[:_SHOWN])
    return f"{shown} and {len(names) - _SHOWN:,} more"

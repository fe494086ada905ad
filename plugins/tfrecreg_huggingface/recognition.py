"""Whether Parquet files are those of a dataset of Hugging Face's, where no source is named."""

from __future__ import annotations

import re

from tfrecreg.api import RawPreview, Recognition, safe
from tfrecreg_huggingface.readme import README

_NUMBERED = re.compile(r".*-[0-9]{5}-of-[0-9]{5}(-[0-9a-f]+)?\.parquet")
_HEADER = re.compile(rb"---[ \t]*\r?\n.*?^(dataset_info|configs)[ \t]*:", re.MULTILINE | re.DOTALL)
_IN_FOOTER = b"huggingface"
"""The key of the features in the metadata of a schema."""
_LOOKED_INTO = 5
"""Parquet files in which it is looked for."""


def recognize_data_files(preview: RawPreview) -> Recognition | None:
    """Parquet files whose README or schema has Hugging Face's features, or in the folders of the
    Hub; None for others beside folders, which are tables that may name files.
    """
    files = [path for path in preview.below() if path.endswith(".parquet")]
    if not files:
        return None
    reason = preview.counted(len(files), "Parquet file")
    aside = preview.aside([*files, README])
    if README in preview.files() and (found := _HEADER.match(_header(preview))):
        reason += f" described by Hugging Face's `{found[1].decode()}` in `{README}`"
        return Recognition("exact", reason, aside)
    for path in files[:_LOOKED_INTO]:
        if _IN_FOOTER in preview.end(path):
            reason += f" with Hugging Face's features in the schema of `{safe(path, limit=200)}`"
            return Recognition("exact", reason, aside)
    if any("/" in path or _NUMBERED.fullmatch(path) for path in files):
        reason += ", arranged as on the Hub, without features"
        return Recognition("layout", reason, aside)
    if preview.folders():
        return None
    return Recognition("general", f"{reason} without Hugging Face's features", aside)


def _header(preview: RawPreview) -> bytes:
    """The block of YAML at the beginning of the README; empty without one."""
    start = preview.start(README).removeprefix(b"\xef\xbb\xbf")
    end = re.search(rb"^---[ \t]*\r?$", start[3:], re.MULTILINE)
    return start[: end.start() + 3] if end and start.startswith(b"---") else b""

"""The bundled source `huggingface`: datasets in Parquet files, as Hugging Face publishes them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tfrecreg.api import MissingExtraError, Source, SourceRecord, hookimpl, safe

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_README = "README.md"
_NUMBERED = re.compile(r".*-[0-9]{5}-of-[0-9]{5}(-[0-9a-f]+)?\.parquet")
_HEADER = re.compile(
    rb"(?:\xef\xbb\xbf)?---[ \t]*\r?\n(?:(?!---[ \t]*\r?$).*\n)*?(dataset_info|configs)[ \t]*:",
    re.MULTILINE,
)
_LOOKED_INTO = 5
"""Maximum number of Parquet files whose footers are examined."""


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    yield SourceRecord(
        "huggingface",
        "Parquet files as Hugging Face publishes them, with their features",
        _load,
        recognizes=["*.parquet", "data/*.parquet", "*/train*.parquet"],
        examine=_examine,
        extra="parquet",
    )


def _examine(preview: RawPreview) -> Recognition | None:
    """Recognize Parquet files if a README or a schema describes Hugging Face's features, or if the
    paths are as on the Hub, such as `data/train.parquet`. Other Parquet files are a general match,
    or None if folders are beside them, because the files' columns may hold paths into these
    folders.
    """
    from tfrecreg.api import Recognition

    files = [path for path in preview.below() if path.endswith(".parquet")]
    if not files:
        return None
    reason = preview.counted(len(files), "Parquet file")
    aside = preview.aside([*files, _README])
    if _README in preview.files() and (found := _HEADER.match(preview.start(_README))):
        reason += f" described by Hugging Face's `{found[1].decode()}` in `{_README}`"
        return Recognition("exact", reason, aside)
    for path in files[:_LOOKED_INTO]:
        if b"huggingface" in preview.end(path):  # a key in the metadata of the schema
            reason += f" with Hugging Face's features in the schema of `{safe(path, limit=200)}`"
            return Recognition("exact", reason, aside)
    if any("/" in path or _NUMBERED.fullmatch(path) for path in files):
        reason += ", arranged as on the Hub, but without Hugging Face's features"
        return Recognition("layout", reason, aside)
    if preview.folders():
        return None
    return Recognition("general", f"{reason} without Hugging Face's features", aside)


def _load() -> type[Source]:
    if find_spec("pyarrow") is None:
        raise MissingExtraError("reading Parquet files", "parquet")
    from tfrecreg_huggingface.source import HuggingFaceSource

    return HuggingFaceSource

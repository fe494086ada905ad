"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tfrecreg.api import MissingExtraError, Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `huggingface`."""
    yield SourceRecord(
        "huggingface",
        "Parquet files as Hugging Face publishes them, with their features",
        _load,
        recognizes=["*.parquet", "data/*.parquet", "*/train*.parquet"],
        examine=_examine,
        extra="parquet",
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg_huggingface.recognition import recognize_data_files

    return recognize_data_files(preview)


def _load() -> type[Source]:
    if find_spec("pyarrow") is None:
        raise MissingExtraError("reading Parquet files", "parquet")
    from tfrecreg_huggingface.source import HuggingFaceSource

    return HuggingFaceSource

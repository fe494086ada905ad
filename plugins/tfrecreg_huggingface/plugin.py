"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

from tfrecreg.api import MissingExtraError, Source, SourceRecord, hookimpl


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `huggingface`."""
    yield SourceRecord(
        "huggingface",
        "Parquet files as Hugging Face publishes them, with their features",
        _load,
        recognizes=["*.parquet", "data/*.parquet", "*/train*.parquet"],
        extra="parquet",
    )


def _load() -> type[Source]:
    if find_spec("pyarrow") is None:
        raise MissingExtraError("reading Parquet files", "parquet")
    from tfrecreg_huggingface.source import HuggingFaceSource

    return HuggingFaceSource

"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.api import Source, SourceRecord, hookimpl


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `webdataset`."""
    yield SourceRecord(
        "webdataset",
        "samples in tar files, as WebDataset reads them",
        _load,
        recognizes=["*.tar", "[tT]rain*/*.tar", "[vV]al*/*.tar", "[tT]est*/*.tar"],
    )


def _load() -> type[Source]:
    from tfrecreg_webdataset.source import WebDatasetSource

    return WebDatasetSource

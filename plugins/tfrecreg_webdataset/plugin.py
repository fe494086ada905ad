"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `webdataset`."""
    yield SourceRecord(
        "webdataset",
        "samples in tar files, as WebDataset reads them",
        _load,
        recognizes=["*.tar", "[tT][rR]*/*.tar", "[vV][aA]*/*.tar", "[tT][eE]*/*.tar"],
        examine=_examine,
        refuses=[f"{folder}*.{each}" for folder in ("", "*/") for each in ("tar", "tgz", "tar.gz")],
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg_webdataset.recognition import recognize_shards

    return recognize_shards(preview)


def _load() -> type[Source]:
    from tfrecreg_webdataset.source import WebDatasetSource

    return WebDatasetSource

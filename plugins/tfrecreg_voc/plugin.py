"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.api import Source, SourceRecord, hookimpl


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `voc`."""
    yield SourceRecord(
        "voc",
        "images with Pascal VOC's XML: boxes, and the PNGs of segmentations",
        _load,
        recognizes=["Annotations/*.xml", "VOC*/Annotations/*.xml", "annotations/*.xml"],
    )


def _load() -> type[Source]:
    from tfrecreg_voc.source import VocSource

    return VocSource

"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `voc`."""
    yield SourceRecord(
        "voc",
        "images with Pascal VOC's XML: boxes, and the PNGs of segmentations",
        _load,
        recognizes=[
            *("Annotations/*.xml", "VOC*/Annotations/*.xml", "*/VOC*/Annotations/*.xml"),
            *("annotations/*.xml", "xml*/*.xml", "labels/*.xml"),
            *("[tT][rR]*/*.xml", "[vV][aA]*/*.xml", "[tT][eE]*/*.xml", "*.xml"),
        ],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg_voc.recognition import recognize_annotations

    return recognize_annotations(preview)


def _load() -> type[Source]:
    from tfrecreg_voc.source import VocSource

    return VocSource

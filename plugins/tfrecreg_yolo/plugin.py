"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `yolo`."""
    yield SourceRecord(
        "yolo",
        "images with YOLO's label files: boxes, polygons, keypoints, oriented boxes",
        _load,
        recognizes=["data.yaml", "labels/*.txt", "labels/*/*.txt", "*/labels/*.txt", "obj.data"],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg_yolo.recognition import recognize_label_files

    return recognize_label_files(preview)


def _load() -> type[Source]:
    from tfrecreg_yolo.source import YoloSource

    return YoloSource

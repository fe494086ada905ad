"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.api import Source, SourceRecord, hookimpl


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `yolo`."""
    yield SourceRecord(
        "yolo",
        "images with YOLO's label files: boxes, polygons, keypoints, oriented boxes",
        _load,
        recognizes=["data.yaml", "labels/*.txt", "labels/*/*.txt", "*/labels/*.txt", "obj.data"],
    )


def _load() -> type[Source]:
    from tfrecreg_yolo.source import YoloSource

    return YoloSource

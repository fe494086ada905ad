"""Announces the source. Nothing is read or imported before a build needs it."""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.api import Source, SourceRecord, hookimpl

_TASKS = ("instances", "person_keypoints", "captions", "panoptic")


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `coco`."""
    yield SourceRecord(
        "coco",
        "images with COCO's JSON: instances, keypoints, captions, panoptic",
        _load,
        recognizes=[
            *(f"annotations/{task}*.json" for task in _TASKS),
            "*/_annotations.coco.json",
        ],
    )


def _load() -> type[Source]:
    from tfrecreg_coco.source import CocoSource

    return CocoSource

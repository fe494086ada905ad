"""The bundled source `coco`: images with annotations in COCO's JSON.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `files`: options; annotation files as structs; which of them are read for which split and task
- `folders`: the folders of the images, and the existing images
- `source`: :class:`~tfrecreg_coco.source.CocoSource`: items in the parent, examples in workers
- `objects`: objects with their masks, and panoptic segments, of one image

Schemas: `coco.pbtxt` and the parts `coco_*.pbtxt` and `objects*.pbtxt`, which the repository has in
`schemas/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl, safe

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_TASKS = ("instances", "person_keypoints", "captions", "panoptic")
_NAMED = (
    *(f"annotations/{task}*.json" for task in _TASKS),
    "*/_annotations.coco.json",
    *(f"{task}*.json" for task in _TASKS),
)
_OTHERS = (
    *("annotations/*.json", "annotations*.json", "labels*.json", "result*.json", "*coco*.json"),
    *("train*.json", "val*.json", "test*.json"),
    *("[tT][rR]*/*.json", "[vV][aA]*/*.json", "[tT][eE]*/*.json"),
)
_IS_DATASET = re.compile(
    rb'"images"\s*:\s*\[.*"file_name"|"annotations"\s*:\s*\[.*"image_id"', re.DOTALL
)


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    """Announce the source `coco`."""
    yield SourceRecord(
        "coco",
        "images with COCO's JSON: instances, keypoints, captions, panoptic",
        _load,
        recognizes=[*_NAMED, *_OTHERS],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg.api import Recognition
    from tfrecreg_coco.files import split_word

    named = dict.fromkeys(path for glob in _NAMED for path in preview.matches(glob))
    # A list is one of results, as evaluations write them beside the annotations.
    found = [path for path in named if not preview.start(path).lstrip().startswith(b"[")]
    for path in dict.fromkeys(path for glob in _OTHERS for path in preview.matches(glob)):
        folder = path.rpartition("/")[0]
        usual = folder in ("", "annotations") or split_word(f"{folder}/x.json", "")
        start = preview.start(path) if usual and path not in named else b""
        if start.lstrip().startswith(b"{") and _IS_DATASET.search(start):
            found.append(path)
    if not found:
        return None
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return Recognition("exact", f"annotations in COCO's JSON: `{safe(found[0])}`{more}")


def _load() -> type[Source]:
    from tfrecreg_coco.source import CocoSource

    return CocoSource

"""The bundled source `coco`: images with annotations in COCO's JSON.

The page `docs/sources/boxes.md` says what is read.

- `dataset`: the options, the annotation files, the splits, and the images of each split
- `source`: :class:`~tfrecreg_coco.source.CocoSource`, which lists items and gives the features of
  objects, captions and segments. :class:`tfrecreg.api.ObjectSource` makes examples from these.

Schemas: `coco.pbtxt`, the parts `coco_*.pbtxt`, and `objects*.pbtxt`, which all object sources use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl, safe

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_GLOBS = (
    *("annotations/*.json", "*/_annotations.coco.json", "annotations*.json", "labels*.json"),
    *("instances*.json", "person_keypoints*.json", "captions*.json", "panoptic*.json"),
    *("result*.json", "*coco*.json", "train*.json", "val*.json", "test*.json"),
    *("[tT][rR]*/*.json", "[vV][aA]*/*.json", "[tT][eE]*/*.json"),
)
_IS_DATASET = re.compile(
    rb'"images"\s*:\s*\[.*"file_name"|"annotations"\s*:\s*\[.*"image_id"', re.DOTALL
)


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    yield SourceRecord(
        "coco",
        "images with COCO's JSON: instances, keypoints, captions, panoptic",
        _load,
        recognizes=[*_GLOBS],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg.api import Recognition
    from tfrecreg_coco.dataset import task_and_word

    found = []
    for path in dict.fromkeys(path for glob in _GLOBS for path in preview.matches(glob)):
        start = preview.start(path).lstrip()
        # A list contains results, as evaluations write them beside the annotations.
        named = task_and_word(path)[0] and not start.startswith(b"[")
        if named or (start.startswith(b"{") and _IS_DATASET.search(start)):
            found.append(path)
    if not found:
        return None
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return Recognition("exact", f"annotations in COCO's JSON: `{safe(found[0])}`{more}")


def _load() -> type[Source]:
    from tfrecreg_coco.source import CocoSource

    return CocoSource

"""The bundled source `yolo`: images with label files of the YOLO family.

The page `docs/sources/boxes.md` says what is read.

- `dataset`: the options, the raw files, their description, and the images of each split
- `source`: :class:`~tfrecreg_yolo.source.YoloSource`: the items, and the features of their objects.
  :class:`tfrecreg.api.ObjectSource` makes examples from these items and features.

Schemas: `yolo.pbtxt`, and the parts `objects*.pbtxt`, which all object sources use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl, listed

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_DESCRIBES = re.compile(rb"^[ \t]*(?:names|nc|classes|train|kpt_shape)[ \t]*[:=]", re.MULTILINE)
_DESCRIPTIONS = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml", "obj.data")
_LISTS = ("classes.txt", "obj.names", "train.txt", "val.txt", "valid.txt", "test.txt")
_NUMBERS = re.compile(rb"[-.e0-9\s]+")
_LOOKED_INTO = 10
"""Maximum number of label files that are searched for a row. Some may be empty."""


@hookimpl
def tfrecreg_sources() -> Iterator[SourceRecord]:
    yield SourceRecord(
        "yolo",
        "images with YOLO's label files: boxes, polygons, keypoints, oriented boxes",
        _load,
        recognizes=["data.yaml", "labels/*.txt", "labels/*/*.txt", "*/labels/*.txt", "obj.data"],
        examine=_examine,
    )


def _examine(preview: RawPreview) -> Recognition | None:
    from tfrecreg.api import Recognition
    from tfrecreg_yolo.dataset import SUFFIXES, label_paths

    files = preview.below()
    texts = {path for path in files if path.endswith(".txt")}
    images = [path for path in files if path.lower().endswith(SUFFIXES)]
    found = (next(filter(texts.__contains__, label_paths(path)), "") for path in images)
    labels = [path for path in found if path]
    described = [
        path
        for path in preview.files()
        if path in _DESCRIPTIONS and _DESCRIBES.search(preview.start(path))
    ]
    has_rows = False
    # The first non-empty label file in a folder `labels` begins with a row.
    for path in [each for each in labels if "labels" in each.split("/")][:_LOOKED_INTO]:
        line = preview.start(path).partition(b"\n")[0]
        if words := line.split():
            has_rows = len(words) >= 5 and _NUMBERS.fullmatch(line) is not None
            break
    if not images or not (described or has_rows):
        return None
    reason = f"{preview.counted(len(images), 'image')}, {len(labels):,} with YOLO's label files"
    if described:
        reason += f", described by {listed(described)}"
    beside = [path for path in preview.files() if path in _LISTS]
    return Recognition("exact", reason, preview.aside([*images, *labels, *described, *beside]))


def _load() -> type[Source]:
    from tfrecreg_yolo.source import YoloSource

    return YoloSource

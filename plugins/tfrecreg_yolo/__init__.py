"""The bundled source `yolo`: images with label files of the YOLO family.

It is a plugin like any other: it is announced through the entry-point group `tfrecreg` and imports
nothing of the project but `tfrecreg.api`.

- `dataset`: options; the files of the raw data, what describes them, and the images of each split
- `source`: :class:`~tfrecreg_yolo.source.YoloSource`: items in the parent, examples in workers

Schemas: `yolo.pbtxt`, and the parts `objects*.pbtxt` that all sources of objects have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tfrecreg.api import Source, SourceRecord, hookimpl, listed

if TYPE_CHECKING:
    from tfrecreg.api import RawPreview, Recognition

_DESCRIBES = re.compile(rb"^[ \t]*(?:names|nc|classes|train|kpt_shape)[ \t]*[:=]", re.MULTILINE)
_DESCRIPTIONS = ("data.yaml", "data.yml", "dataset.yaml", "dataset.yml", "obj.data")
_LISTS = ("classes.txt", "obj.names", "train.txt", "val.txt", "valid.txt", "test.txt")
_NUMBERS = re.compile(rb"[-.e0-9\s]+")
_LOOKED_INTO = 10
"""Label files in which a row is looked for: those of images without objects are empty."""


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
    if not images or not (described or _have_rows(preview, labels)):
        return None
    reason = f"{preview.counted(len(images), 'image')}, {len(labels):,} with YOLO's label files"
    if described:
        reason += f", described by {listed(described)}"
    beside = [path for path in preview.files() if path in _LISTS]
    return Recognition("exact", reason, preview.aside([*images, *labels, *described, *beside]))


def _have_rows(preview: RawPreview, labels: Iterable[str]) -> bool:
    """Whether the first label file in a folder `labels` that is not empty begins with a row."""
    for path in [each for each in labels if "labels" in each.split("/")][:_LOOKED_INTO]:
        line = preview.start(path).partition(b"\n")[0]
        if words := line.split():
            return len(words) >= 5 and _NUMBERS.fullmatch(line) is not None
    return False


def _load() -> type[Source]:
    from tfrecreg_yolo.source import YoloSource

    return YoloSource

"""The options of the source `coco`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tfrecreg.api import ObjectOptions, UsageError

TASKS = ("instances", "stuff", "keypoints", "captions", "panoptic", "images")
"""Tasks of an annotation file, in the order in which files are merged."""

OBJECT_TASKS = ("instances", "stuff", "keypoints")
"""The tasks that read boxes."""

_PREFIXED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_]*):(.+)", re.DOTALL)


MaskForm = Literal["none", "polygons", "rle", "png"]


@dataclass(frozen=True)
class CocoOptions(ObjectOptions):
    """Options of the source `coco`."""

    tasks: tuple[
        Literal["instances", "stuff", "keypoints", "captions", "panoptic", "images"], ...
    ] = ()
    """What to read, such as `instances,keypoints,captions`. Files of several kinds become one
    record per image. Default: instances where there are any, else the only kind that there is."""
    annotations: tuple[str, ...] = ()
    """The files of annotations, where they do not lie in a usual place. `validation:a.json` also
    names the split."""
    images: tuple[str, ...] = ()
    """The folder of the images, where it is not found. `train:a,validation:b` for each split."""
    segments: tuple[str, ...] = ()
    """The folder of the panoptic PNGs, if it is not beside the JSON under its name.
    `train:a,validation:b` for each split."""
    splits: tuple[str, ...] = ()
    """Read only these splits."""
    masks: MaskForm = "none"
    """Segmentations of the objects: left out, as polygons where they are polygons, as compressed
    RLE, or as one PNG per object. The last two need the extra `coco`."""
    categories: Literal["as-is", "contiguous"] = "as-is"
    """`as-is`: labels are the ids of the categories. `contiguous`: labels count from 0 in the order
    of the ids."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_repeated("tasks", "splits")
        if self.masks != "none" and self.tasks and not set(OBJECT_TASKS) & set(self.tasks):
            raise UsageError(
                f"`masks={self.masks}` needs objects, and `tasks` names none of "
                f"{', '.join(OBJECT_TASKS)}",
                hint="leave out `masks`, or add instances to `tasks`",
            )


def split_and_path(value: str) -> tuple[str, str]:
    """Split and path of a value such as ``validation:a.json``; the split is empty in ``a.json``."""
    match = _PREFIXED.fullmatch(value)
    return (match[1], match[2]) if match else ("", value)

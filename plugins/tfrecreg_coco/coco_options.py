"""The options of the source `coco`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tfrecreg.api import UsageError, safe

TASKS = ("instances", "stuff", "keypoints", "captions", "panoptic", "images")
"""Tasks of an annotation file, in the order in which files are merged."""

OBJECT_TASKS = ("instances", "stuff", "keypoints")
"""The tasks that read boxes."""

_PREFIXED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_]*):(.+)", re.DOTALL)


@dataclass(frozen=True)
class CocoOptions:
    """Options of the source `coco`."""

    tasks: tuple[
        Literal["instances", "stuff", "keypoints", "captions", "panoptic", "images"], ...
    ] = ()
    """What to read, as `instances,keypoints,captions`. Files of several kinds become one record an
    image. Default: instances where there are any, else the only kind that there is."""
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
    masks: Literal["none", "polygons", "rle", "png"] = "none"
    """Segmentations of the objects: left out, as polygons where they are polygons, as compressed
    RLE, or as one PNG an object. The last two need the extra `coco`."""
    categories: Literal["as-is", "contiguous"] = "as-is"
    """`as-is`: labels are the ids of the categories. `contiguous`: labels count from 0 in the order
    of the ids."""
    bad_boxes: Literal["drop", "keep", "skip-image", "fail"] = "drop"
    """Handling of boxes that are not finite, have no area or leave the image: drop the object, keep
    it unchanged, skip the image, or fail.
    """
    clip: float = 1.0
    """Clip a box that sticks out of its image by at most this many pixels."""
    dangling: Literal["fail", "drop"] = "fail"
    """Handling of annotations whose image or category is not listed."""

    def __post_init__(self) -> None:
        if self.clip < 0:
            raise UsageError(
                f"the option `clip` is {self.clip:g}, expected 0 or more pixels",
                hint="--option clip=1",
            )
        for name, values in (("tasks", self.tasks), ("splits", self.splits)):
            repeated = {each for each in values if values.count(each) > 1}
            if repeated:
                raise UsageError(
                    f"the option `{name}` has `{safe(min(repeated))}` twice",
                    hint="name each only once",
                )
        if self.masks != "none" and self.tasks and not set(OBJECT_TASKS) & set(self.tasks):
            raise UsageError(
                f"`masks={self.masks}` is about objects, and `tasks` names none of "
                f"{', '.join(OBJECT_TASKS)}",
                hint="leave out `masks`, or add instances to `tasks`",
            )


def split_and_path(value: str) -> tuple[str, str]:
    """Split and path of a value such as ``validation:a.json``; the split is empty in ``a.json``."""
    match = _PREFIXED.fullmatch(value)
    return (match[1], match[2]) if match else ("", value)

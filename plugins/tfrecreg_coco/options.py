"""The options of the source `coco`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tfrecreg.api import UsageError, safe

__all__ = ["KINDS", "OBJECTS", "CocoOptions", "named"]

KINDS = ("instances", "stuff", "keypoints", "captions", "panoptic", "images")
"""What a file of annotations can be read for, in the order in which files are merged."""

OBJECTS = ("instances", "stuff", "keypoints")
"""The tasks that read boxes."""

_NAMED = re.compile(r"([A-Za-z0-9][A-Za-z0-9_]*):(.+)", re.DOTALL)


@dataclass(frozen=True)
class CocoOptions:
    """What `--option` takes for the source `coco`."""

    tasks: tuple[
        Literal["instances", "stuff", "keypoints", "captions", "panoptic", "images"], ...
    ] = ()
    """What to read, as `instances,keypoints,captions`; files of several kinds become one record a
    picture. Without it: instances where there are any, else the one kind that there is."""
    annotations: tuple[str, ...] = ()
    """The files of annotations, where they do not lie in a usual place; `validation:a.json` also
    names the split."""
    images: tuple[str, ...] = ()
    """The folder of the pictures, where it is not found; `train:a,validation:b` for each split."""
    segments: tuple[str, ...] = ()
    """The folder of the panoptic PNGs, where it does not lie beside the JSON under its name;
    `train:a,validation:b` for each split."""
    splits: tuple[str, ...] = ()
    """Read these splits only."""
    masks: Literal["none", "polygons", "rle", "png"] = "none"
    """Segmentations of the objects: left out, as polygons where they are such, as compressed RLE,
    or as a PNG an object. The last two need the extra `coco`."""
    categories: Literal["as-is", "contiguous"] = "as-is"
    """`as-is`: labels are the ids of the categories. `contiguous`: they are counted from 0 in the
    order of the ids."""
    bad_boxes: Literal["drop", "keep", "skip-image", "fail"] = "drop"
    """What to do about a box that is not finite, has no area or leaves the picture: drop the
    object, keep it as it is, skip the picture, or fail."""
    clip: float = 1.0
    """A box that sticks out of its picture by no more than so many pixels is clipped."""
    dangling: Literal["fail", "drop"] = "fail"
    """What to do about annotations whose picture or category is not listed."""

    def __post_init__(self) -> None:
        if self.clip < 0:
            raise UsageError(
                f"the option `clip` is {self.clip:g}, expected 0 or more pixels",
                hint="--option clip=1",
            )
        for name in ("tasks", "splits"):
            given = getattr(self, name)
            twice = {each for each in given if given.count(each) > 1}
            if twice:
                raise UsageError(
                    f"the option `{name}` has `{safe(min(twice))}` twice", hint="name each once"
                )
        if self.masks != "none" and self.tasks and not set(OBJECTS) & set(self.tasks):
            raise UsageError(
                f"`masks={self.masks}` is about objects, and `tasks` names none of "
                f"{', '.join(OBJECTS)}",
                hint="leave `masks` away, or add instances to `tasks`",
            )


def named(values: tuple[str, ...]) -> list[tuple[str, str]]:
    """Values of an option that may begin with the name of a split: pairs of it, or "", and path."""
    pairs = []
    for value in values:
        match = _NAMED.fullmatch(value)
        pairs.append((match[1], match[2]) if match else ("", value))
    return pairs

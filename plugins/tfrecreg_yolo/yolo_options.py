"""The options of the source `yolo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfrecreg.api import ObjectOptions, Symlinks, UsageError

YoloTask = Literal["detect", "segment", "pose", "obb"]
MAX_KEYPOINTS = 10_000
"""Most keypoints of an object."""


@dataclass(frozen=True)
class YoloOptions(ObjectOptions):
    """Options of the source `yolo`."""

    task: Literal["auto", "detect", "segment", "pose", "obb"] = "auto"
    """What a row of a label file is: a box, a polygon, a box with keypoints, or an oriented box.
    `detect` takes the boxes around polygons. `auto` looks at all label files, and refuses rows that
    may be of several kinds."""
    data: str = ""
    """The file that describes the dataset, if it is not `data.yaml` or `obj.data`."""
    classes: tuple[str, ...] = ()
    """The names of the classes in order of their numbers, where no file lists them."""
    kpt_shape: tuple[int, ...] = ()
    """Number of keypoints, and of numbers for each: `17,3`, if `data.yaml` does not have it."""
    splits: tuple[str, ...] = ()
    """Read only these splits."""
    unlabeled: Literal["background", "skip"] = "background"
    """Handling of images without a label file: write them without objects, or skip them."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead. `inside`: follow those that stay in the raw
    folder. `none`: follow none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kpt_shape and not is_keypoint_shape(self.kpt_shape):
            shown = ",".join(map(str, self.kpt_shape))
            raise UsageError(
                f"the option `kpt_shape` is {shown}, expected the number of keypoints and 2 or 3",
                hint="--option kpt_shape=17,3",
            )
        self.refuse_repeated("splits", "classes")


def is_keypoint_shape(shape: tuple[int, ...]) -> bool:
    """Whether `shape` is a number of keypoints, and 2 or 3 numbers for each."""
    return len(shape) == 2 and 1 <= shape[0] <= MAX_KEYPOINTS and shape[1] in (2, 3)

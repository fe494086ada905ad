"""The options of the source `voc`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tfrecreg.api import ObjectOptions, Symlinks

VOC_CLASSES = (
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa"),
    *("train", "tvmonitor"),
)
"""The classes of Pascal VOC since 2007, in their order."""


@dataclass(frozen=True)
class VocOptions(ObjectOptions):
    """Options of the source `voc`."""

    coordinates: Literal["auto", "pixels", "edges"] = "auto"
    """What the numbers of a box mean: its first and last pixel, counted from 1, as in Pascal VOC;
    or its edges in pixels, counted from 0, as many programs write them. `auto`: edges if a number
    is 0, or if most `source` elements name something other than VOC."""
    classes: tuple[str, ...] = ()
    """The classes in order of their numbers. Default: VOC's own if all twenty occur and no other,
    else all names in the data, sorted by their bytes."""
    image_set: Literal["Main", "Segmentation", "Layout", "Action", "none"] = "Main"
    """The folder of `ImageSets` that lists the splits; `none` to ignore `ImageSets`."""
    splits: tuple[str, ...] = ()
    """Read only these splits."""
    masks: tuple[Literal["class", "object"], ...] = ()
    """The PNGs to write, byte for byte: those of `SegmentationClass`, of `SegmentationObject`."""
    unlabeled: Literal["skip", "background"] = "skip"
    """Handling of images without an XML: leave them out, or write them without objects."""
    symlinks: Symlinks = "all"
    """`all`: follow symbolic links wherever they lead. `inside`: follow those that stay in the raw
    folder. `none`: follow none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.refuse_repeated("splits", "classes", "masks")

"""The options of the validator `annotations`, and the features of labels and objects.

Features have the names of TensorFlow's object detection. Source: `tfexample_decoder` and the
dataset tools of the TensorFlow models repository (``research/object_detection``); its image
classification calls labels `image/class/label`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from msgspec import Meta

_Text = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationsOptions:
    """Options in `limits.annotations`; not needed if features have the usual names."""

    label: _Text | None = None
    """The feature of class numbers, if it has another name."""
    text: _Text | None = None
    """The feature of the class names for `label`."""
    label_map: _Text | None = None
    """Path of a file of class names: see `label_maps`. Overrides the manifest."""
    imbalance: Annotated[float, Meta(gt=1)] | None = None
    """Largest allowed ratio of the most frequent class of a split to the rarest one."""

    def __post_init__(self) -> None:
        if self.text is not None and self.label is None:
            raise ValueError("`text` belongs to a `label`, which is not named")
        if self.imbalance is not None and not math.isfinite(self.imbalance):
            raise ValueError("expected a finite `imbalance`")


BOX = tuple(f"image/object/bbox/{side}" for side in ("xmin", "xmax", "ymin", "ymax"))
"""Sides of boxes, as fractions of the image's sides."""
OBJECT_LABEL = "image/object/class/label"
IMAGE_LABEL = "image/class/label"
PER_OBJECT = (
    OBJECT_LABEL,
    "image/object/class/text",
    "image/object/is_crowd",
    "image/object/area",
    "image/object/difficult",
    "image/object/truncated",
    "image/object/view",
    "image/object/weight",
    "image/object/group_of",
    "image/object/keypoint/num",
)
"""Lists with one value per object. An empty list counts as absent."""
KEYPOINTS = tuple(f"image/object/keypoint/{name}" for name in ("x", "y", "visibility"))
"""Lists with the same number of values for every object."""

OF_OBJECTS = frozenset((*BOX, *PER_OBJECT, *KEYPOINTS))


class Labels(NamedTuple):
    """A feature of class numbers, and the feature of the names for them."""

    label: str
    text: str | None
    """None if unknown: a feature `text` beside `label` may be anything."""


def labels_of(options: AnnotationsOptions, mapped: Iterable[str]) -> tuple[Labels, ...]:
    """The features of class numbers to check."""
    if options.label is not None:
        return (Labels(options.label, options.text or _text_of(options.label)),)
    names = dict.fromkeys((OBJECT_LABEL, IMAGE_LABEL, *sorted(mapped)))
    return tuple(Labels(name, _text_of(name)) for name in names)


def known_features(labels: Iterable[Labels]) -> set[str]:
    """The names of all features to check."""
    return {*OF_OBJECTS, *(each.label for each in labels)}


def _text_of(label: str) -> str | None:
    """``image/class/text`` for ``image/class/label``, ``species/text`` for ``species``."""
    head, found, _ = label.rpartition("class/label")
    if found and (not head or head.endswith("/")):
        return f"{head}class/text"
    return f"{label}/text" if label.rpartition("/")[2] != "label" else None

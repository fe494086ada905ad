"""What may be asked of the validator `annotations`, in `limits.annotations` of a gate."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from msgspec import Meta

__all__ = [
    "BOX",
    "KEYPOINTS",
    "OBJECT_LABEL",
    "OF_OBJECTS",
    "PER_OBJECT",
    "PICTURE_LABEL",
    "AnnotationsOptions",
    "Labels",
    "known_features",
    "labels_of",
]


Text = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationsOptions:
    """The options; none is needed where features have the field's usual names."""

    label: Text | None = None
    """The feature of class numbers, where it is called otherwise."""
    text: Text | None = None
    """The feature of class names that belongs to it."""
    label_map: Text | None = None
    """Path of a file of class names, where no manifest has them: see `label_map`."""
    imbalance: Annotated[float, Meta(gt=1)] | None = None
    """How often the commonest class of a split may be there for each time that the rarest is."""

    def __post_init__(self) -> None:
        if self.text is not None and self.label is None:
            raise ValueError("`text` belongs to a `label`, which is not named")
        if self.imbalance is not None and not math.isfinite(self.imbalance):
            raise ValueError("expected a finite `imbalance`")


BOX = tuple(f"image/object/bbox/{side}" for side in ("xmin", "xmax", "ymin", "ymax"))
"""Sides of boxes, in parts of the picture's sides."""
OBJECT_LABEL = "image/object/class/label"
PICTURE_LABEL = "image/class/label"
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
"""Lists with one value for each object. One that is empty is one that is not given."""
KEYPOINTS = tuple(f"image/object/keypoint/{name}" for name in ("x", "y", "visibility"))
"""Lists with as many values for every object."""

OF_OBJECTS = frozenset((*BOX, *PER_OBJECT, *KEYPOINTS))


class Labels(NamedTuple):
    """A feature of class numbers, and the one of names that belongs to it."""

    label: str
    text: str | None
    """None where nobody says which one: `text` beside `label` may be anything."""


def labels_of(options: AnnotationsOptions, mapped: Iterable[str]) -> tuple[Labels, ...]:
    """The features of class numbers that are looked at, where a record has them.

    Args:
        options: may name one.
        mapped: features that a manifest has names for.
    """
    if options.label is not None:
        return (Labels(options.label, options.text or _text_of(options.label)),)
    names = dict.fromkeys((OBJECT_LABEL, PICTURE_LABEL, *sorted(mapped)))
    return tuple(Labels(name, _text_of(name)) for name in names)


def known_features(labels: Iterable[Labels]) -> set[str]:
    """All features that are looked at."""
    return {*OF_OBJECTS, *(each.label for each in labels)}


def _text_of(label: str) -> str | None:
    """``image/class/text`` for ``image/class/label``, ``species/text`` for ``species``."""
    head, found, _ = label.rpartition("class/label")
    if found and (not head or head.endswith("/")):
        return f"{head}class/text"
    return f"{label}/text" if label.rpartition("/")[2] != "label" else None

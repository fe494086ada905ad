"""The options of the validator `annotations`, and the features of labels and objects.

The features have the same names as in `tfexample_decoder` and the dataset tools of the TensorFlow
models repository (``research/object_detection``). Models for image classification in that
repository call labels `image/class/label`.

The module also counts the classes of records, and collects the names of class numbers.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from msgspec import Meta

from tfrecreg.core.values.shards import LabelMap
from tfrecreg.core.values.text import safe_value

_Text = Annotated[str, Meta(min_length=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnotationsOptions:
    """Options in `limits.annotations`; not needed if the features have their usual names."""

    label: _Text | None = None
    """The feature of class numbers, if it has an unusual name."""
    text: _Text | None = None
    """The feature with the class names for the numbers in the feature that `label` names."""
    label_map: _Text | None = None
    """Path of a file of class names: see `label_maps`. Overrides the manifest."""
    imbalance: Annotated[float, Meta(gt=1)] | None = None
    """Largest allowed ratio of the most frequent class of a split to the rarest one."""

    def __post_init__(self) -> None:
        if self.text is not None and self.label is None:
            raise ValueError(
                "`text` needs `label`, because `text` holds the names for the numbers in `label`"
            )
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
    """A feature with class numbers, and the feature with the names of these classes."""

    label: str
    text: str | None
    """None if no such feature is known. A feature `text` is not assumed to name the classes in
    `label`, because it may hold anything.
    """


def labels_of(options: AnnotationsOptions, mapped: Iterable[str]) -> tuple[Labels, ...]:
    """The pairs of features to check: one has class numbers, the other has the class names."""
    if options.label is not None:
        return (Labels(options.label, options.text or _text_of(options.label)),)
    names = dict.fromkeys((OBJECT_LABEL, IMAGE_LABEL, *sorted(mapped)))
    return tuple(Labels(name, _text_of(name)) for name in names)


def _text_of(label: str) -> str | None:
    """The feature that names the classes of the feature `label`: ``image/class/text`` for
    ``image/class/label``, and ``species/text`` for ``species``."""
    head, found, _ = label.rpartition("class/label")
    if found and (not head or head.endswith("/")):
        return f"{head}class/text"
    return f"{label}/text" if label.rpartition("/")[2] != "label" else None


_MOST_CLASSES = 100_000
_MOST_SHOWN = 1000
_MOST_NAMES = 10_000
_NAMES_KEPT = 3
_MOST_NAME_BYTES = 256


@dataclass(slots=True)
class ClassCounts:
    """Number of objects or records per class, for up to 100,000 classes. Counts can be merged."""

    counts: dict[int, int] = field(default_factory=dict)
    full: bool = False
    """Whether the counts are incomplete because the records have more classes than the limit."""

    def add(self, label: int, times: int = 1) -> None:
        """Add `times` to the count of the class `label`."""
        known = self.counts.get(label)
        if known is not None:
            self.counts[label] = known + times
        elif len(self.counts) < _MOST_CLASSES:
            self.counts[label] = times
        else:
            self.full = True

    def merge(self, other: ClassCounts) -> None:
        """Add the counts of another shard."""
        self.full |= other.full
        for label, times in other.counts.items():
            self.add(label, times)

    def proper(self) -> dict[int, int]:
        """The counts without negative class numbers: -1 usually means "no label"."""
        return {label: times for label, times in self.counts.items() if label >= 0}


def histogram(counts: Mapping[int, int], names: LabelMap) -> dict[str, int]:
    """Number of objects or records by class number and name, in the order of class numbers."""
    if len(counts) > _MOST_SHOWN:
        return {}
    shown = {label: names.get(label, "") for label in sorted(counts)}
    return {
        f"{label} {name}" if name not in ("", str(label)) else str(label): counts[label]
        for label, name in shown.items()
    }


@dataclass(slots=True)
class ClassNames:
    """A limited number of the names that records give to class numbers."""

    names: dict[int, list[bytes]] = field(default_factory=dict)
    """For each class number, the first three names in byte order, whenever they were read."""
    full: bool = False
    """Whether names are missing because the records have more classes than the limit."""

    def add(self, label: int, name: bytes) -> None:
        """Add a record's name for the class `label`."""
        name = name[:_MOST_NAME_BYTES]
        known = self.names.get(label)
        if known is None:
            if len(self.names) >= _MOST_NAMES:
                self.full = True
                return
            self.names[label] = [name]
        elif name not in known:
            insort(known, name)
            del known[_NAMES_KEPT:]

    def merge(self, other: ClassNames) -> None:
        """Add the names of another shard."""
        self.full |= other.full
        for label, names in other.names.items():
            for name in names:
                self.add(label, name)

    def conflicts(self) -> Iterator[str]:
        """Messages about numbers that have two names, and about names that have two numbers."""
        numbers: dict[bytes, int] = {}
        for label, names in sorted(self.names.items()):
            if len(names) > 1:
                first, second = (safe_value(name) for name in names[:2])
                yield f"{label} is called `{first}` and `{second}`"
            for name in names:
                other = numbers.setdefault(name, label)
                if other != label:
                    yield f"{other} and {label} are both called `{safe_value(name)}`"

    def as_map(self) -> LabelMap:
        """The first name of each number."""
        return {label: names[0].decode("utf-8", "replace") for label, names in self.names.items()}

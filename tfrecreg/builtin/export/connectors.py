"""Converts a schema to features of TensorFlow Datasets: `features.json` and label names.

Names are unchanged, including slashes, and stay at the top level: ``example["image/encoded"]``.
TFDS could also nest features in dictionaries, but `as_supervised` and `tfds.show_examples` read
only the top level. If features were nested, `a` and `a/b` could not both exist.

A required feature of fixed shape becomes a scalar or a tensor of that shape. Any other feature
becomes a sequence, which is empty if an example lacks the feature. The JSON follows TFDS's protos
``feature.proto`` and ``dataset_info.proto`` (proto3 JSON, where 64-bit integers are strings).

Images count as equal if their headers agree in everything that affects how TensorFlow decodes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from tfrecreg.api import (
    ExportedDataset,
    Feature,
    ImageError,
    ImageHeader,
    Kind,
    Schema,
    SchemaError,
    SchemaFeature,
    listed,
    read_header,
    safe,
    why_undecodable,
)

_PALETTE = 3
_MOST_CHUNKS = 1_000
"""Maximum number of chunks of a PNG to read."""
_BMP_DEPTH = 24
"""At any other depth, the decoded channels depend on TensorFlow's arguments."""


def look_at_image(data: bytes) -> ImageHeader | None:
    """The header of an image, with the channels that `tf.io.decode_image` chooses."""
    try:
        header = read_header(data)
    except ImageError:
        return None
    if why_undecodable(data, header) is not None:
        return None
    if header.format == "bmp" and int.from_bytes(data[28:30], "little") != _BMP_DEPTH:
        return None
    if header.format == "jpeg":
        if header.channels == 2:
            return None
        return header._replace(channels=min(header.channels, 3))  # CMYK becomes RGB
    if header.format == "png" and _is_transparent(data):
        return header._replace(channels=4)
    return header


@dataclass(slots=True)
class ImagesSeen:
    """What the images of one feature have in common. Picklable and mergeable."""

    count: int = 0
    formats: set[str] = field(default_factory=set)
    channels: set[int] = field(default_factory=set)
    depths: set[bool] = field(default_factory=set)
    """True stands for images with 16 bits per channel, and false for images of another depth."""
    heights: set[int] = field(default_factory=set)
    widths: set[int] = field(default_factory=set)
    strange: int = 0
    """Number of values that TensorFlow cannot decode as images, or that are too large to read."""
    where: str = ""
    """Where the first such value is."""

    def add(self, data: bytes, where: str) -> None:
        """Take another value into account."""
        header = look_at_image(data)
        if header is None:
            self.add_strange(where)
            return
        self.count += 1
        self.formats.add(header.format)
        self.channels.add(header.channels)
        self.depths.add(header.bits == 16)
        self.heights.add(header.height)
        self.widths.add(header.width)

    def add_strange(self, where: str) -> None:
        """Count a value that TensorFlow cannot decode or that cannot be read."""
        self.strange += 1
        self.where = self.where or where

    def add_value(self, feature: Feature | None, where: str) -> None:
        """Take the values of a feature into account."""
        if feature is not None and feature.kind is Kind.BYTES:
            for value in feature.values:
                self.add(value, where)

    def merge(self, other: ImagesSeen) -> None:
        """Add the results of `other`."""
        self.count += other.count
        self.formats |= other.formats
        self.channels |= other.channels
        self.depths |= other.depths
        self.heights |= other.heights
        self.widths |= other.widths
        self.strange += other.strange
        self.where = self.where or other.where


def _is_transparent(data: bytes) -> bool:
    """Whether a PNG has a palette with transparency, that is, a `tRNS` chunk before the pixels."""
    if data[25] != _PALETTE:
        return False
    at = 8
    for _ in range(_MOST_CHUNKS):
        kind, size = data[at + 4 : at + 8], int.from_bytes(data[at : at + 4], "big")
        if kind in (b"tRNS", b"IDAT") or at + 12 + size > len(data):
            return kind == b"tRNS" and at + 12 + size <= len(data)
        at += 12 + size
    return False


Json = dict[str, Any]

_NAME = attrgetter("name")
_CLASSES = "tensorflow_datasets.core.features"
_DTYPES = {"BYTES": "string", "INT": "int64", "FLOAT": "float32"}


SIDES = ("ymin", "xmin", "ymax", "xmax")
"""The sides of a box, in TFDS's order."""


@dataclass(slots=True)
class Connectors:
    """The features of a dataset, in TFDS's form."""

    features: dict[str, Json] = field(default_factory=dict)
    """Connectors by name."""
    label_files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The class names, in order of their numbers, for each label file."""
    supervised: tuple[str, str] | None = None
    """The only image and the only label, for `as_supervised`; None unless there is one of each."""
    notes: list[str] = field(default_factory=list)
    """Notes for the user, one line each."""

    def join_boxes(self, prefixes: Sequence[str]) -> None:
        """Replace the four sides of boxes with one `BBoxFeature`."""
        content = {"shape": _shape((4,)), "dtype": "float32", "bboxFormat": "REL_YXYX"}
        for prefix in prefixes:
            for side in SIDES:
                del self.features[f"{prefix}/{side}"]
            box = _connector("bounding_boxes.BBoxFeature", boundingBox=content)
            self.features[prefix] = _sequence(box)
        self.features = dict(sorted(self.features.items()))

    def to_json(self) -> Json:
        """The content of `features.json`."""
        return _connector("features_dict.FeaturesDict", featuresDict={"features": self.features})


def require_expressible(schema: Schema) -> None:
    """Raise unless TFDS can read examples of this schema."""
    if schema.describes_sequences():
        raise SchemaError(f"`{schema.where}` describes SequenceExamples, but TFDS reads Examples")
    for rule in relied_on(schema):
        if rule.kind in (None, "STRUCT") or rule.levels:
            what = "has no type" if rule.kind is None else "is a STRUCT or nested"
            raise SchemaError(
                f"`{schema.where}`: TFDS cannot read `{rule.name}`: this feature {what}",
                hint="declare features of the type BYTES, INT or FLOAT, then build again",
            )


def version_notes(dataset: ExportedDataset) -> Iterator[str]:
    """A note for the user if the dataset is a build: a build has no version."""
    if dataset.manifest.release is None:
        yield f"a build has no version number: it is exported as version {dataset.version}"


def relied_on(schema: Schema) -> list[SchemaFeature]:
    """The features that no lifecycle stage excludes, sorted by name."""
    return sorted((each for each in schema.features if not each.is_ignored), key=_NAME)


def make_connectors(
    schema: Schema, labels: Mapping[str, Sequence[str]], images: Mapping[str, ImagesSeen]
) -> Connectors:
    """The connectors of all features that no lifecycle stage excludes."""
    made = Connectors()
    for rule in relied_on(schema):
        leaf = _leaf(rule, labels, images, made.notes)
        made.features[rule.name] = _shaped(rule, leaf, made.notes)
    _add_labels(made, labels)
    made.supervised = _supervised(made.features)
    groups = [each.name for each in (*schema.sparse, *schema.weighted)]
    if groups:
        made.notes.append(
            f"TFDS has no sparse or weighted features: {listed(groups)} are exported as their "
            "component features"
        )
    ignored = sorted(each.name for each in schema.features if each.is_ignored)
    if ignored:
        made.notes.append(f"left out because of their lifecycle stage: {listed(ignored)}")
    return made


def _connector(kind: str, **content: Any) -> Json:
    return {"pythonClassName": f"{_CLASSES}.{kind}", **content}


def _tensor(rule: SchemaFeature, shape: Sequence[int | None] = ()) -> Json:
    dtype = _DTYPES[rule.kind or ""]
    content = {"dtype": dtype, "encoding": "none", "shape": _shape(shape)}
    return _connector("tensor_feature.Tensor", tensor=content)


def _shape(shape: Sequence[int | None]) -> Json:
    return {"dimensions": [str(-1 if size is None else size) for size in shape]} if shape else {}


def _sequence(feature: Json, length: int = -1) -> Json:
    return _connector(
        "sequence_feature.Sequence", sequence={"feature": feature, "length": str(length)}
    )


def _leaf(
    rule: SchemaFeature,
    labels: Mapping[str, Sequence[str]],
    images: Mapping[str, ImagesSeen],
    notes: list[str],
) -> Json:
    """The connector of a single value."""
    if rule.kind == "INT" and labels.get(rule.name):
        classes = {"numClasses": str(len(labels[rule.name]))}
        return _connector("class_label_feature.ClassLabel", classLabel=classes)
    if rule.is_image and rule.name in images:
        return _image(rule, images[rule.name], notes)
    if rule.is_text:
        return _connector("text_feature.Text", text={})
    return _tensor(rule)


def _image(rule: SchemaFeature, seen: ImagesSeen, notes: list[str]) -> Json:
    name = f"`{safe(rule.name)}`"
    if seen.strange:
        notes.append(
            f"{name} is exported as encoded bytes: TensorFlow cannot decode {seen.strange} of the "
            f"feature's {seen.count + seen.strange} values; the first such value is in {seen.where}"
        )
        return _tensor(rule)
    if "gif" in seen.formats and len(seen.formats) > 1:
        notes.append(f"{name} is exported as encoded bytes: GIF images have an extra dimension")
        return _tensor(rule)
    if seen.channels == {2} or seen.channels == {2, 4}:
        channels = 4
        notes.append(f"{name}: TFDS will return grey images with alpha as RGBA")
    elif len(seen.channels) > 1:
        channels = 3
        notes.append(f"{name}: TFDS will return all images as RGB, because their channels differ")
    else:
        channels = next(iter(seen.channels), 3)
    deep = seen.depths == {True} and seen.formats == {"png"}
    if True in seen.depths and not deep:
        notes.append(f"{name}: images with 16 bits per channel are reduced to the upper 8")
    sides = [next(iter(each)) if len(each) == 1 else None for each in (seen.heights, seen.widths)]
    shape = [None, None, None, 3] if seen.formats == {"gif"} else [*sides, channels]
    content: Json = {"dtype": "uint16" if deep else "uint8", "shape": _shape(shape)}
    if seen.formats in ({"png"}, {"jpeg"}):
        content["encodingFormat"] = next(iter(seen.formats))
    return _connector("image_feature.Image", image=content)


def _shaped(rule: SchemaFeature, leaf: Json, notes: list[str]) -> Json:
    """The connector for all values of a feature. `leaf` is the connector for a single value."""
    shape = rule.tensor_shape
    if shape is None or (len(shape) < 2 and (not rule.is_required or None in shape)):
        return _sequence(leaf)
    if shape == ():
        return leaf
    if shape.count(None) > 1:
        notes.append(f"`{safe(rule.name)}` is exported as a flat list: several dimensions vary")
        return _sequence(leaf)
    if "tensor" in leaf:
        if rule.is_required or None in shape:
            return _tensor(rule, shape)
        return _sequence(_tensor(rule, shape))
    if len(shape) == 1:
        return _sequence(leaf, shape[0] or 0)
    notes.append(
        f"`{safe(rule.name)}` is exported as plain values: TFDS supports images, texts and "
        "classes only as single values or in flat lists"
    )
    return _shaped(rule, _tensor(rule), notes)


def _add_labels(made: Connectors, labels: Mapping[str, Sequence[str]]) -> None:
    """For each feature with class names, add a file that lists these names."""
    for name, connector in made.features.items():
        inner = connector.get("sequence", {}).get("feature", connector)
        if "classLabel" not in inner:
            continue
        names, replaced = usable_names(labels[name])
        if replaced:
            made.notes.append(
                f"`{safe(name)}`: {replaced} of {len(names)} class names were replaced by numbers: "
                "TFDS accepts no name that is empty or repeated, has a line break, or begins or "
                "ends with white space"
            )
        # Like tfds.core.features.feature.convert_feature_name_to_filename at the top level.
        file = f"{name.replace('/', '.')}.labels.txt"
        if made.label_files.setdefault(file, names) != names:
            raise SchemaError(f"two features would need the same file `{safe(file)}` in TFDS")


def usable_names(names: Sequence[str]) -> tuple[tuple[str, ...], int]:
    """Class names that TFDS can read back, and the number of replaced names. TFDS reads one name
    per line, stripped, and names must be different and not empty.
    """
    taken, result = set(names), dict[str, None]()
    for number, name in enumerate(names):
        shown = name
        if not name or name != name.strip() or {"\n", "\r"} & set(name) or name in result:
            shown = str(number)
            while shown in taken:
                shown = f"class {shown}"
            taken.add(shown)
        result[shown] = None
    return tuple(result), sum(map(str.__ne__, names, result))


def _supervised(features: Mapping[str, Json]) -> tuple[str, str] | None:
    images = [name for name, connector in features.items() if "image" in connector]
    classes = [name for name, connector in features.items() if "classLabel" in connector]
    return (images[0], classes[0]) if len(images) == len(classes) == 1 else None

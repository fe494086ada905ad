"""Reads the files that TensorFlow Datasets and RLDS write next to shards.

`dataset_info.json` has splits, shards, counts, and the origin of the data. It is the JSON of TFDS's
``dataset_info.proto``, and its 64-bit integers are strings.

`features.json` has the features of a record. The name of a nested feature consists of its keys in
the dictionaries around it, joined with slashes. A `Dataset`, such as the steps of an RLDS
episode, is stored like a `Sequence`: the record has one list for each feature of a step. If several
dimensions of a feature vary, the record has one flat list of the values, and the lengths of the
rows: ``x/ragged_flat_values`` and ``x/ragged_row_lengths_0``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Annotated, Any, TypeVar

import msgspec

from tfrecreg.core.example.model import DeclaredFeature, Kind
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.documents import strict_json
from tfrecreg.core.values.errors import MissingFileError, StorageError
from tfrecreg.core.values.text import count, safe

INFO_NAME = "dataset_info.json"
FEATURES_NAME = "features.json"

_MOST_BYTES = 1 << 26
_MOST_SHARDS = 1 << 20
_MOST_SIZE = 1 << 31
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
"""TFDS's default template, for splits that name no template, as before TFDS 4.5."""
_HOLES = frozenset({"DATASET", "SPLIT", "FILEFORMAT", "SHARD_INDEX", "NUM_SHARDS", "SHARD_X_OF_Y"})
_DOI = re.compile(r"\b(10\.\d{4,9}/[^\s\"'{}<>,;]+)")

S = TypeVar("S", bound=msgspec.Struct)
_Name = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
_Size = Annotated[int, msgspec.Meta(ge=-1, lt=_MOST_SIZE)]
"""-1 for a varying size."""
_UNFINISHED = re.compile(r"^incomplete\.[0-9A-Za-z]{6,32}[._]|\.incomplete[0-9A-Za-z]*", re.ASCII)


def is_unfinished(name: str) -> bool:
    """Whether the name is one that TFDS gives to unfinished files and folders."""
    return _UNFINISHED.search(name) is not None


class NotTfdsError(ValueError):
    """The file does not come from TensorFlow Datasets. The text has the reason, escaped."""


class _Statistics(msgspec.Struct, frozen=True, rename="camel"):
    num_examples: _Count | None = None


class InfoSplit(msgspec.Struct, frozen=True, rename="camel"):
    """A split in `dataset_info.json`."""

    name: _Name
    lengths: tuple[_Count, ...] = msgspec.field(default=(), name="shardLengths")
    """Number of records of each shard. Empty if the file does not have the numbers."""
    bytes: _Count | None = msgspec.field(default=None, name="numBytes")
    """Size of all payloads in bytes, without framing. None if the file does not have the size."""
    template: str = msgspec.field(default=_TEMPLATE, name="filepathTemplate")
    num_shards: _Count = 0
    statistics: _Statistics = _Statistics()

    @property
    def shards(self) -> int:
        """Number of shards, from `lengths`, or from the field that TFDS wrote before 4.0."""
        return len(self.lengths) or self.num_shards

    @property
    def records(self) -> int | None:
        """Total number of records: the sum of `lengths`, or the number that TFDS wrote before 4.0.
        None if the file has neither.
        """
        if self.lengths:
            return sum(self.lengths)
        return self.statistics.num_examples if self.num_shards else None


class _Location(msgspec.Struct, frozen=True):
    urls: tuple[str, ...] = ()


class _Terms(msgspec.Struct, frozen=True):
    license: str = ""


class TfdsInfo(msgspec.Struct, frozen=True, rename="camel"):
    """A dataset of TFDS, as its folder describes it."""

    name: _Name
    version: str = ""
    file_format: str = "tfrecord"
    splits: tuple[InfoSplit, ...] = ()
    description: str = ""
    citation: str = ""
    location: _Location = _Location()
    redistribution_info: _Terms = _Terms()

    def files(self, split: InfoSplit) -> tuple[str, ...]:
        of = split.shards
        values = {
            "DATASET": self.name,
            "SPLIT": split.name,
            "FILEFORMAT": self.file_format or "tfrecord",
            "NUM_SHARDS": f"{of:05d}",
        }
        numbered = (
            {"SHARD_INDEX": f"{number:05d}", "SHARD_X_OF_Y": f"{number:05d}-of-{of:05d}"}
            for number in range(of)
        )
        template = split.template or _TEMPLATE
        return tuple(template.format_map({**values, **each}) for each in numbered)

    @property
    def doi(self) -> str:
        """The DOI from the citation or from the URL of a homepage; empty if neither has a DOI."""
        texts = (self.citation, *self.location.urls)
        found = next((hit for text in texts if (hit := _DOI.search(text))), None)
        return found[1].rstrip(".)") if found else ""


def _read(storage: Readable, folder: str, name: str, form: type[S]) -> S | None:
    try:
        data = storage.read(f"{folder}/{name}" if folder else name, limit=_MOST_BYTES)
    except MissingFileError:
        return None
    except StorageError as error:
        raise NotTfdsError(error.message) from None
    try:
        found = strict_json(data)
        if isinstance(found, dict):
            found = {key: value for key, value in found.items() if value is not None}
        return msgspec.convert(found, form, strict=False)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise NotTfdsError(f"it does not parse: {safe(reason, limit=200)}") from None


def read_info(storage: Readable, folder: str) -> TfdsInfo | None:
    """The description in a folder; None if the folder has no `dataset_info.json`."""
    info = _read(storage, folder, INFO_NAME, TfdsInfo)
    if info is None:
        return None
    if sum(split.shards for split in info.splits) > _MOST_SHARDS:
        raise NotTfdsError(f"it lists more than {_MOST_SHARDS} shards")
    for split in info.splits:
        holes = re.sub("|".join(f"{{{hole}}}" for hole in _HOLES), "", split.template)
        if re.search(r"[{}/\\]", holes):
            raise NotTfdsError(f"its `filepathTemplate` is `{safe(split.template, limit=200)}`")
    return info


def described_by(info: TfdsInfo) -> str:
    """The line that names the description that shards are checked against."""
    counts = [split.records for split in info.splits]
    known = sum(each for each in counts if each is not None)
    records = f"{known:,} records" if None not in counts else "some without counts"
    version = f" {safe(info.version)}" if info.version else ""
    return (
        f"checked against the `{INFO_NAME}` next to the shards: `{safe(info.name)}`{version} of "
        f"TensorFlow Datasets, {count(len(info.splits), 'split')}, {records}"
    )


class _Shape(msgspec.Struct, frozen=True):
    dimensions: tuple[_Size, ...] = ()


class _Dictionary(msgspec.Struct):
    features: dict[str, _Feature] = {}


class _Inner(msgspec.Struct):
    """A sequence of features, or an optional feature."""

    feature: _Feature
    length: _Size = -1


class _ClassLabel(msgspec.Struct, frozen=True, rename="camel"):
    num_classes: _Size = 0


class _Tensor(msgspec.Struct, frozen=True):
    dtype: str = ""
    encoding: str | None = None
    shape: _Shape = _Shape()


class _Feature(msgspec.Struct, rename="camel"):
    features_dict: _Dictionary | None = None
    sequence: _Inner | None = None
    optional: _Inner | None = None
    video: _Tensor | None = None
    class_label: _ClassLabel | None = None
    image: dict[str, Any] | None = None
    labeled_image: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    tensor: _Tensor | None = None
    bounding_box: _Tensor | None = None


_INTS = frozenset(
    {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (4, 8, 16, 32, 64))}
)
_FLOATS = frozenset({"float16", "float32", "float64", "bfloat16", "half"})
_Sizes = tuple[int, ...]
_Declared = Iterator[tuple[str, DeclaredFeature]]


def read_features(storage: Readable, folder: str) -> dict[str, DeclaredFeature] | None:
    """The features of known kinds in a folder's `features.json`; None if there is no such file."""
    whole = _read(storage, folder, FEATURES_NAME, _Feature)
    if whole is None:
        return None
    if whole.features_dict is None:
        raise NotTfdsError("it has no `featuresDict`, which TensorFlow Datasets writes since 4.5")
    return dict(_walk(whole, "", ()))


def _walk(plain: _Feature, name: str, lengths: _Sizes) -> _Declared:
    if plain.features_dict is not None:
        for key, each in sorted(plain.features_dict.features.items()):
            yield from _walk(each, f"{name}/{key}" if name else key, lengths)
    elif plain.sequence is not None:
        inner = plain.sequence
        yield from _walk(inner.feature, name, (*lengths, inner.length))
    elif plain.optional is not None:
        for below, declared in _walk(plain.optional.feature, name, lengths):
            yield below, replace(declared, shape=None)
    elif (leaf := _leaf(plain)) is not None:
        yield from _flat(name, leaf[0], (*lengths, *leaf[1]))


def _leaf(plain: _Feature) -> tuple[DeclaredFeature, _Sizes] | None:
    """The declaration and the shape of a single feature; None if its kind or dtype is unknown."""
    if plain.video is not None:
        return DeclaredFeature(Kind.BYTES, is_image=True), plain.video.shape.dimensions[:1]
    if plain.class_label is not None:
        return DeclaredFeature(Kind.INT64, classes=max(plain.class_label.num_classes, 0)), ()
    if plain.image is not None or plain.labeled_image is not None:
        return DeclaredFeature(Kind.BYTES, is_image=True), ()
    if plain.text is not None:
        return DeclaredFeature(Kind.BYTES, is_text=True), ()
    tensor, box = plain.tensor, plain.bounding_box
    if tensor is None and box is not None:
        shape = box.shape if box.shape.dimensions else _Shape((4,))
        tensor = _Tensor(box.dtype or "float32", box.encoding, shape)
    if tensor is None:
        return None
    if tensor.encoding not in ("none", "", None):
        return DeclaredFeature(Kind.BYTES), ()  # serialized, perhaps compressed
    sizes = tensor.shape.dimensions
    if tensor.dtype in ("string", "bytes", "object"):
        return DeclaredFeature(Kind.BYTES), sizes
    if tensor.dtype in _INTS:
        return DeclaredFeature(Kind.INT64, is_bool=tensor.dtype == "bool"), sizes
    return (DeclaredFeature(Kind.FLOAT), sizes) if tensor.dtype in _FLOATS else None


def _flat(name: str, declared: DeclaredFeature, shape: _Sizes) -> _Declared:
    ragged = shape.count(-1)
    if ragged < 2:
        fits = not ragged and prod(shape) < _MOST_SIZE
        yield name, replace(declared, shape=shape if fits else None)
        return
    yield f"{name}/ragged_flat_values", declared
    for number in range(ragged - 1):
        yield f"{name}/ragged_row_lengths_{number}", DeclaredFeature(Kind.INT64)

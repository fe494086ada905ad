"""The `dataset_info.json` of TensorFlow Datasets: splits, shards, counts, and where data are from.

The JSON is that of TFDS's proto ``dataset_info.proto``: names of fields in either spelling, 64-bit
integers as strings. RLDS writes the same.

The `features.json` of TensorFlow Datasets: the features of a record by their flat names.

A nested feature has the names of its dictionaries joined by slashes. A `Dataset`, such as the steps
of an RLDS episode, lies in a record as a `Sequence` does: a list for each feature of a step. Values
of more than one varying dimension are flat, beside the lengths of their rows:
``x/ragged_flat_values`` and ``x/ragged_row_lengths_0``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from tfrecreg.core.example.model import DeclaredFeature, Kind
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.documents import strict_json
from tfrecreg.core.values.errors import MissingFileError, StorageError
from tfrecreg.core.values.text import safe

INFO_NAME = "dataset_info.json"

_MOST_BYTES = 1 << 26
_MOST_SHARDS = 1 << 20
_MOST_TEXT = 1 << 20
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
"""TFDS's own, where a split names none: before version 4.5 none did."""
_HOLES = frozenset({"DATASET", "SPLIT", "FILEFORMAT", "SHARD_INDEX", "NUM_SHARDS", "SHARD_X_OF_Y"})
_DOI = re.compile(r"\b(10\.\d{4,9}/[^\s\"'{}<>,;]+)")
_UNFINISHED = re.compile(r"^incomplete\.[0-9A-Za-z]{6,32}[._]|\.incomplete[0-9A-Za-z]*", re.ASCII)


class NotTfdsError(ValueError):
    """A file of that name is not one of TensorFlow Datasets. The text is the reason, escaped."""


@dataclass(frozen=True, slots=True)
class InfoSplit:
    """A split, as the file describes it."""

    name: str
    lengths: tuple[int, ...]
    """Number of records of each shard: `shardLengths`. Empty if the file does not say."""
    shards: int
    """Number of shards: that of `lengths`, or `numShards` of TFDS before 4.0."""
    records: int | None
    """Number of records in all: the sum of `lengths`, or `statistics.numExamples` of TFDS before
    4.0. None if the file does not say.
    """
    bytes: int | None
    """Size of all payloads, without framing: `numBytes`. None if the file does not say."""
    template: str


@dataclass(frozen=True, slots=True)
class TfdsInfo:
    """A dataset of TFDS, as its folder describes it."""

    path: str
    """Place of the file, for messages. Not escaped."""
    name: str
    version: str
    file_format: str
    splits: tuple[InfoSplit, ...]
    description: str
    citation: str
    license: str
    urls: tuple[str, ...]

    def files(self, split: InfoSplit) -> tuple[str, ...]:
        """The names of the shards of a split, in order."""
        of = split.shards
        return tuple(self._file(split, number, of) for number in range(of))

    def _file(self, split: InfoSplit, number: int, of: int) -> str:
        values = {
            "DATASET": self.name,
            "SPLIT": split.name,
            "FILEFORMAT": self.file_format,
            "SHARD_INDEX": f"{number:05d}",
            "NUM_SHARDS": f"{of:05d}",
            "SHARD_X_OF_Y": f"{number:05d}-of-{of:05d}",
        }
        return re.sub(r"\{(\w+)\}", lambda hole: values[hole[1]], split.template)

    @property
    def doi(self) -> str:
        """The DOI that its citation or its homepage has; empty without one."""
        texts = (self.citation, *self.urls)
        found = next((hit for text in texts if (hit := _DOI.search(text))), None)
        return found[1].rstrip(".)") if found else ""


def is_unfinished(name: str) -> bool:
    """Whether a file or folder of this name is one that TFDS was writing when it ended."""
    return _UNFINISHED.search(name) is not None


def read_info(storage: Readable, folder: str) -> TfdsInfo | None:
    """The description in a folder; None if there is none."""
    path = f"{folder}/{INFO_NAME}" if folder else INFO_NAME
    try:
        data = storage.read(path, limit=_MOST_BYTES)
    except MissingFileError:
        return None
    except StorageError as error:
        raise NotTfdsError(error.message) from None
    try:
        plain = strict_json(data)
        return _info(plain, f"{storage.root.rstrip('/')}/{path}")
    except NotTfdsError:
        raise
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise NotTfdsError(f"it does not parse: {safe(reason, limit=200)}") from None


def _info(plain: object, path: str) -> TfdsInfo:
    if not isinstance(plain, dict):
        raise NotTfdsError("it is not an object")
    name = _text(plain, "name")
    listed = _field(plain, "splits", [])
    if not name or not isinstance(listed, list):
        raise NotTfdsError("it is not of TensorFlow Datasets: expected `name` and a list `splits`")
    splits = tuple(map(_split, listed))
    twice = [name for name, times in Counter(each.name for each in splits).items() if times > 1]
    if twice:
        raise NotTfdsError(f"it lists the split `{safe(twice[0])}` twice")
    if sum(split.shards for split in splits) > _MOST_SHARDS:
        raise NotTfdsError(f"it lists more than {_MOST_SHARDS} shards")
    place = _field(plain, "location", {})
    terms = _field(plain, "redistributionInfo", {})
    urls = _field(place, "urls", []) if isinstance(place, dict) else []
    return TfdsInfo(
        path=path,
        name=name,
        version=_text(plain, "version"),
        file_format=_text(plain, "fileFormat") or "tfrecord",
        splits=splits,
        description=_text(plain, "description"),
        citation=_text(plain, "citation"),
        license=_text(terms, "license") if isinstance(terms, dict) else "",
        urls=tuple(each for each in urls if isinstance(each, str)),
    )


def _split(plain: object) -> InfoSplit:
    if not isinstance(plain, dict) or not _text(plain, "name"):
        raise NotTfdsError("it has a split without a name")
    name = _text(plain, "name")
    where = f"of the split `{safe(name)}`"
    lengths = _field(plain, "shardLengths", [])
    if not isinstance(lengths, list):
        raise NotTfdsError(f"`shardLengths` {where} is not a list")
    numbers = tuple(_number(each, f"`shardLengths` {where}") for each in lengths)
    shards = len(numbers)
    records: int | None = sum(numbers)
    if not numbers:
        statistics = _field(plain, "statistics", {})
        declared = _field(statistics, "numExamples", None) if isinstance(statistics, dict) else None
        shards = _number(_field(plain, "numShards", 0), f"`numShards` {where}")
        said = declared is not None and shards > 0
        records = _number(declared, f"`numExamples` {where}") if said else None
    size = _field(plain, "numBytes", None)
    template = _text(plain, "filepathTemplate") or _TEMPLATE
    strange = sorted(set(re.findall(r"\{(\w+)\}", template)) - _HOLES)
    if strange or "/" in template or "\\" in template:
        shown = safe(template, limit=200)
        raise NotTfdsError(f"`filepathTemplate` {where} is not that of files here: `{shown}`")
    return InfoSplit(
        name=name,
        lengths=numbers,
        shards=shards,
        records=records,
        bytes=None if size is None else _number(size, f"`numBytes` {where}"),
        template=template,
    )


def _field(plain: Mapping[str, Any], name: str, default: Any) -> Any:
    """A field in the spelling of JSON, or in that of the proto."""
    if name in plain:
        return plain[name]
    return plain.get(re.sub(r"[A-Z]", lambda each: f"_{each[0].lower()}", name), default)


def _text(plain: Mapping[str, Any], name: str) -> str:
    value = _field(plain, name, "")
    return value[:_MOST_TEXT] if isinstance(value, str) else ""


def _number(value: object, where: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 53:
        raise NotTfdsError(f"{where} should be a number, found `{safe(str(value), limit=60)}`")
    return value


def described_by(infos: Iterable[TfdsInfo]) -> Iterator[str]:
    """One line for each: what the folder is judged by."""
    for info in infos:
        counts = [split.records for split in info.splits]
        known = sum(each for each in counts if each is not None)
        records = f"{known:,} records" if None not in counts else "not all counts"
        version = f" {safe(info.version)}" if info.version else ""
        splits = "1 split" if len(info.splits) == 1 else f"{len(info.splits)} splits"
        yield (
            f"judged by the `{INFO_NAME}` beside the shards: `{safe(info.name)}`{version} of "
            f"TensorFlow Datasets, {splits}, {records}"
        )


FEATURES_NAME = "features.json"

_TFDS_FEATURES_MOST_BYTES = 1 << 24
_MOST_FEATURES = 10_000
_MOST_DEPTH = 32
_MOST_RANK = 16
_MOST_SIZE = 1 << 31

_INTS = frozenset(
    {"bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (4, 8, 16, 32, 64))}
)
_FLOATS = frozenset({"float16", "float32", "float64", "bfloat16", "half"})

_Shape = tuple[int | None, ...]


@dataclass(slots=True)
class TfdsFeatures:
    """The features of a record."""

    features: dict[str, DeclaredFeature] = field(default_factory=dict)
    """Flat name to declaration."""
    label_files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Flat name of a class label to the names that the file of its class names may have."""
    unknown: list[str] = field(default_factory=list)
    """Names of features of kinds that are not read; those below them are not known either."""


def read_features(storage: Readable, folder: str) -> TfdsFeatures | None:
    """The features that a folder declares; None without such a file."""
    path = f"{folder}/{FEATURES_NAME}" if folder else FEATURES_NAME
    try:
        plain = strict_json(storage.read(path, limit=_TFDS_FEATURES_MOST_BYTES))
    except MissingFileError:
        return None
    except StorageError as error:
        raise NotTfdsError(error.message) from None
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise NotTfdsError(f"it does not parse: {safe(reason, limit=200)}") from None
    if isinstance(plain, dict) and "content" in plain and "featuresDict" not in plain:
        raise NotTfdsError("it has the form of TensorFlow Datasets before 4.5")
    if not isinstance(plain, dict) or not isinstance(plain.get("featuresDict"), dict):
        raise NotTfdsError("it is not of TensorFlow Datasets: expected `featuresDict`")
    found = TfdsFeatures()
    for flat in _walk(plain, "", (), _MOST_DEPTH, found):
        if len(found.features) >= _MOST_FEATURES:
            raise NotTfdsError(f"it declares more than {_MOST_FEATURES} features")
        found.features[flat[0]] = flat[1]
    return found


def _walk(
    plain: object, name: str, lengths: _Shape, depth: int, found: TfdsFeatures
) -> Iterator[tuple[str, DeclaredFeature]]:
    """The declarations below a feature."""
    if not isinstance(plain, dict) or depth == 0 or len(lengths) > _MOST_RANK:
        raise NotTfdsError(f"`{safe(name)}` is not a feature, or nested too deeply")
    inner: Any
    if (inner := _content(plain, "featuresDict", name)) is not None:
        members = inner.get("features", {})
        if not isinstance(members, dict):
            raise NotTfdsError(f"`features` of `{safe(name)}` is not an object")
        for key in sorted(members):
            below = f"{name}/{key}" if name else key
            yield from _walk(members[key], below, lengths, depth - 1, found)
    elif (inner := _content(plain, "sequence", name)) is not None:
        length = _size(inner.get("length", -1), name)
        yield from _walk(inner.get("feature"), name, (*lengths, length), depth - 1, found)
    elif (inner := _content(plain, "optional", name)) is not None:
        for below, each in _walk(inner.get("feature"), name, lengths, depth - 1, found):
            yield below, replace(each, shape=None)
    elif (inner := _content(plain, "video", name)) is not None:
        shape = _shape(inner.get("shape", {}), name)
        yield from _flat(name, DeclaredFeature(Kind.BYTES, is_image=True), (*lengths, *shape[:1]))
    else:
        yield from _leaf(plain, name, lengths, found)


def _leaf(
    plain: Mapping[str, Any], name: str, lengths: _Shape, found: TfdsFeatures
) -> Iterator[tuple[str, DeclaredFeature]]:
    inner: Any
    if (inner := _content(plain, "classLabel", name)) is not None:
        classes = _size(inner.get("numClasses", 0), name) or 0
        # TFDS writes slashes in a name as dots, and joins the names of nested features by hyphens.
        files = (f"{name.replace('/', end)}.labels.txt" for end in "-.")
        found.label_files[name] = tuple(dict.fromkeys(files))
        yield from _flat(name, DeclaredFeature(Kind.INT64, classes=classes), lengths)
    elif any(_content(plain, each, name) is not None for each in ("image", "labeledImage")):
        yield from _flat(name, DeclaredFeature(Kind.BYTES, is_image=True), lengths)
    elif _content(plain, "text", name) is not None:
        yield from _flat(name, DeclaredFeature(Kind.BYTES, is_text=True), lengths)
    else:
        inner = _content(plain, "tensor", name)
        box = _content(plain, "boundingBox", name)
        if inner is None and box is None:
            found.unknown.append(name)
            return
        inner = inner or {"dtype": "float32", "shape": {"dimensions": ["4"]}, **(box or {})}
        made = _tensor(inner, name)
        if made is None:
            found.unknown.append(name)
            return
        declared, shape = made
        yield from _flat(name, declared, (*lengths, *shape))


def _tensor(inner: Mapping[str, Any], name: str) -> tuple[DeclaredFeature, _Shape] | None:
    """The declaration of a tensor and the shape of its values; None for an unknown dtype."""
    dtype, encoding = inner.get("dtype", ""), inner.get("encoding", "none")
    if encoding not in ("none", "", None):
        return DeclaredFeature(Kind.BYTES), ()  # serialized, and packed perhaps
    shape = _shape(inner.get("shape", {}), name)
    if dtype in ("string", "bytes", "object"):
        return DeclaredFeature(Kind.BYTES), shape
    if dtype in _INTS:
        return DeclaredFeature(Kind.INT64, is_bool=dtype == "bool"), shape
    return (DeclaredFeature(Kind.FLOAT), shape) if dtype in _FLOATS else None


def _flat(
    name: str, declared: DeclaredFeature, shape: _Shape
) -> Iterator[tuple[str, DeclaredFeature]]:
    """The features of a record that hold values of this shape."""
    ragged = shape.count(None)
    if ragged < 2:
        fixed = tuple(size for size in shape if size is not None)
        fits = not ragged and prod(fixed) < _MOST_SIZE
        yield name, replace(declared, shape=fixed if fits else None)
        return
    yield f"{name}/ragged_flat_values", declared
    for number in range(ragged - 1):
        yield f"{name}/ragged_row_lengths_{number}", DeclaredFeature(Kind.INT64)


def _content(plain: Mapping[str, Any], kind: str, name: str) -> dict[str, Any] | None:
    inner = plain.get(kind)
    if inner is not None and not isinstance(inner, dict):
        raise NotTfdsError(f"`{kind}` of `{safe(name)}` is not an object")
    return inner


def _shape(plain: object, name: str) -> _Shape:
    sizes = plain.get("dimensions", []) if isinstance(plain, dict) else None
    if not isinstance(sizes, list) or len(sizes) > _MOST_RANK:
        raise NotTfdsError(f"the shape of `{safe(name)}` is not a list of up to {_MOST_RANK} sizes")
    return tuple(_size(each, name) for each in sizes)


def _size(value: object, name: str) -> int | None:
    """A size; None for one that varies, -1."""
    try:
        size = int(value) if isinstance(value, (str, int)) and len(str(value)) < 12 else -2
    except ValueError:
        size = -2
    if not -1 <= size < _MOST_SIZE:
        raise NotTfdsError(f"a size of `{safe(name)}` is `{safe(str(value), limit=40)}`")
    return None if size == -1 else size

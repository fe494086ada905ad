"""The `features.json` of TensorFlow Datasets: the features of a record by their flat names.

A nested feature has the names of its dictionaries joined by slashes. A `Dataset`, such as the steps
of an RLDS episode, lies in a record as a `Sequence` does: a list for each feature of a step. Values
of more than one varying dimension are flat, beside the lengths of their rows:
``x/ragged_flat_values`` and ``x/ragged_row_lengths_0``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from tfrecreg.core.example.declared import DeclaredFeature
from tfrecreg.core.example.model import Kind
from tfrecreg.core.registry.foreign.tfds_info import NotTfdsError
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.documents import strict_json
from tfrecreg.core.values.errors import MissingFileError, StorageError
from tfrecreg.core.values.text import safe

FEATURES_NAME = "features.json"

_MOST_BYTES = 1 << 24
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
        plain = strict_json(storage.read(path, limit=_MOST_BYTES))
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

"""Derives columns from a schema, and converts features to Arrow arrays and back.

A column stores a feature only if the conversion loses nothing: see :meth:`FeatureColumn.holds`.
`null` means that the feature is absent. An empty list means that the feature has no values.

Hugging Face's library Datasets reads the types of columns (image, class, text) from the metadata
``huggingface`` of a Parquet file's schema. :func:`hub_metadata` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfrecreg.api import (
    ExportedDataset,
    Feature,
    Kind,
    Schema,
    ShardToExport,
    bytes_feature,
    decode,
    float_feature,
    int64_feature,
    verified_records,
)
from tfrecreg.builtin.export.connectors import usable_names

_KINDS = {"BYTES": Kind.BYTES, "FLOAT": Kind.FLOAT, "INT": Kind.INT64}
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class FeatureColumn:
    """The column of one feature. Picklable."""

    name: str
    kind: Kind
    is_text: bool
    """Whether values are strings instead of bytes."""
    is_scalar: bool
    """Whether each row has one value instead of a list."""
    is_image: bool = False
    """Whether values are images in Hugging Face's form: a struct of bytes and a path."""

    def holds(self, feature: Feature) -> bool:
        """Whether the column can hold this feature without loss."""
        if feature.kind is not self.kind or (self.is_scalar and feature.count != 1):
            return False
        return not self.is_text or is_text(feature)

    def arrow_type(self) -> Any:
        """The column's type."""
        value = self._value_type()
        return value if self.is_scalar else pa.list_(value)

    def to_arrow(self, features: Sequence[Feature | None]) -> Any:
        """The array of some rows; None is an absent feature. `holds` must accept each feature."""
        if self.is_scalar:
            return self._values(features)
        ends = np.cumsum([0 if each is None else each.count for each in features], dtype=np.int64)
        starts = np.concatenate((np.zeros(1, np.int64), ends))
        # A list with a null offset is null itself.
        absent = np.array([*(each is None for each in features), False])
        offsets = pa.array(starts.astype(np.int32), mask=absent, from_pandas=False)
        flat = self._values([each for each in features if each is not None])
        return pa.ListArray.from_arrays(offsets, flat)

    def from_arrow(self, array: Any) -> list[Feature | None]:
        """Convert an array to the features of its rows: the inverse of :meth:`to_arrow`."""
        present = array.is_valid().to_numpy(zero_copy_only=False)
        if self.is_scalar:
            flat, starts = array, np.arange(len(array) + 1)
        else:
            flat, starts = array.values, array.offsets.to_numpy()
        if self.is_image:
            flat = flat.field(0)
        values: Any
        make: Callable[[Any], Feature]
        if self.kind is Kind.FLOAT:
            floats = flat.fill_null(0.0) if flat.null_count else flat
            values = floats.to_numpy(zero_copy_only=False).astype("<f4", copy=False)
            make = _float_feature
        elif self.kind is Kind.BYTES:
            values, make = flat.cast(pa.binary()).to_pylist(), bytes_feature
        else:
            values, make = flat.to_pylist(), int64_feature
        return [
            make(values[start:end]) if there else None
            for (start, end), there in zip(pairwise(starts), present, strict=True)
        ]

    def _value_type(self) -> Any:
        if self.is_image:
            return pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        if self.kind is Kind.BYTES:
            return pa.string() if self.is_text else pa.binary()
        return pa.float32() if self.kind is Kind.FLOAT else pa.int64()

    def _values(self, features: Sequence[Feature | None]) -> Any:
        """The concatenated values of all features, with null for None."""
        if self.kind is Kind.FLOAT:
            bits = b"".join(
                bytes(_FLOAT_BYTES) if each is None else each.packed_floats for each in features
            )
            # Each None is one value here: features of lists come without None.
            absent = None
            if self.is_scalar:
                absent = np.array([each is None for each in features], np.bool_)
            floats = np.frombuffer(bits, "<f4").astype("=f4", copy=False)
            return pa.array(floats, mask=absent, from_pandas=False, type=pa.float32())
        values = [
            value for each in features for value in ((None,) if each is None else each.values)
        ]
        if self.is_image:
            paths = pa.nulls(len(values), pa.string())
            absent = pa.array([each is None for each in values], pa.bool_())
            data = pa.array(values, type=pa.binary())
            return pa.StructArray.from_arrays([data, paths], ["bytes", "path"], mask=absent)
        if self.kind is Kind.BYTES:
            return pa.array(values, type=pa.binary()).cast(self._value_type())
        return pa.array(values, type=pa.int64())


def schema_columns(
    schema: Schema,
    reserved: frozenset[str],
    *,
    with_images: bool = False,
    texts: frozenset[str] = frozenset(),
) -> tuple[FeatureColumn, ...]:
    """The columns for the features to which a schema gives a type, sorted by name."""
    rules = {each.name: each for each in schema.features}
    return tuple(
        FeatureColumn(
            name=name,
            kind=_KINDS[rule.kind],
            is_text=rule.is_text or name in texts,
            is_scalar=rule.is_required and rule.tensor_shape == (),
            is_image=with_images and rule.kind == "BYTES" and rule.is_image,
        )
        for name, rule in sorted(rules.items())
        if rule.kind in _KINDS and not rule.levels and name and name not in reserved
    )


def _float_feature(values: npt.NDArray[np.float32]) -> Feature:
    return float_feature(values.tobytes())


def is_text(feature: Feature) -> bool:
    """Whether all values of a BYTES feature are valid UTF-8."""
    try:
        for value in feature.values:
            value.decode()
    except UnicodeDecodeError:
        return False
    return True


_DTYPES = {Kind.BYTES: "binary", Kind.INT64: "int64", Kind.FLOAT: "float32"}


def hub_metadata(
    columns: Sequence[FeatureColumn],
    labels: Mapping[str, Sequence[str]],
    texts: Sequence[str],
    rest: str,
) -> tuple[str, list[str]]:
    """The metadata as JSON, and the features for which class names had to be replaced."""
    replaced = []
    features: dict[str, Any] = {name: _value("string") for name in texts}
    for column in columns:
        names, count = usable_names(labels.get(column.name, ()))
        if column.is_image:
            feature: dict[str, Any] = {"_type": "Image"}
        elif column.kind is Kind.INT64 and names:
            feature = {"names": list(names), "_type": "ClassLabel"}
            if count:
                replaced.append(column.name)
        else:
            feature = _value("string" if column.is_text else _DTYPES[column.kind])
        if not column.is_scalar:
            feature = {"feature": feature, "_type": "Sequence"}
        features[column.name] = feature
    features[rest] = _value("binary")
    return json.dumps({"info": {"features": features}}), replaced


def text_features(dataset: ExportedDataset, schema: Schema) -> frozenset[str]:
    """The BYTES features whose values are all texts, although the schema does not declare text.

    Reads all shards, in workers.
    """
    names = frozenset(
        each.name
        for each in schema.features
        if each.kind == "BYTES" and not (each.is_text or each.is_image or each.levels)
    )
    if not names:
        return names
    storage: Any = dataset.resolved.storage()
    tasks = (
        ShardToExport(
            reference=dataset.reference,
            storage=storage,
            entry=entry,
            compression=dataset.manifest.compression,
            folder=storage,  # nothing is written
            name=entry.path,
        )
        for entry in dataset.manifest.shards
    )
    found: set[str] = set()
    others: set[str] = set()
    for texts, bytes_ in dataset.engine.run(TextSearch(names), tasks):
        found |= texts
        others |= bytes_
    return frozenset(found - others)


@dataclass(frozen=True, slots=True)
class TextSearch:
    """The task of a shard. Picklable."""

    names: frozenset[str]

    def __call__(self, task: ShardToExport) -> tuple[set[str], set[str]]:
        """The names of features that hold only texts, and the names of other bytes features."""
        texts: set[str] = set()
        others: set[str] = set()
        for record in verified_records(task):
            try:
                features = decode(record.payload)
            except ValueError:  # not an Example: the export refuses it later
                continue
            for name, feature in features.items():
                if name in self.names and name not in others and feature.kind is Kind.BYTES:
                    if not is_text(feature):
                        others.add(name)
                    elif feature.count:
                        texts.add(name)
        return texts, others


def _value(dtype: str) -> dict[str, Any]:
    return {"dtype": dtype, "_type": "Value"}

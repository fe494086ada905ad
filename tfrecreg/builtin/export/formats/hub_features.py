"""What Hugging Face's Datasets knows of columns: images, class names, texts.

A Parquet file has it in the metadata of its schema, under ``huggingface``, as the library writes
it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfrecreg.api import (
    ExportedDataset,
    Kind,
    Schema,
    ShardToExport,
    decode,
    listed,
    verified_records,
)
from tfrecreg.builtin.export.formats.columns import FeatureColumn, is_text
from tfrecreg.builtin.export.formats.connectors import usable_names

_DTYPES = {Kind.BYTES: "binary", Kind.INT64: "int64", Kind.FLOAT: "float32"}


def hub_metadata(
    columns: Sequence[FeatureColumn],
    labels: Mapping[str, Sequence[str]],
    texts: Sequence[str],
    rest: str,
) -> tuple[str, list[str]]:
    """The JSON of the metadata, and the features with class names that had to be replaced."""
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


def notes_on_names(replaced: Sequence[str]) -> list[str]:
    """The note on class names that are not unique or empty."""
    if not replaced:
        return []
    return [
        f"class names of {listed(replaced)} that are empty or occur twice became their numbers for "
        "Hugging Face's Datasets; the metadata `tfrecreg` has them unchanged"
    ]


def text_features(dataset: ExportedDataset, schema: Schema) -> frozenset[str]:
    """The features of bytes that the schema does not call texts, and of which all values are.

    All shards are read for it, in workers.
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
        """The features of these names with values that are texts, and those with others."""
        texts: set[str] = set()
        others: set[str] = set()
        for record in verified_records(task):
            try:
                features = decode(record.payload)
            except ValueError:  # not an Example, which is refused where it is to be written
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

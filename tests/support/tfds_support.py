"""Folders as TensorFlow Datasets and RLDS write them, by the project's own code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from foreign_support import put

_CORE = "tensorflow_datasets.core.features"


def connector(kind: str, **content: Any) -> dict[str, Any]:
    """One feature of `features.json`: ``connector("image", shape=…)``."""
    return {"pythonClassName": f"{_CORE}.{kind}", kind: content}


def features_dict(**features: Any) -> dict[str, Any]:
    """A `FeaturesDict`."""
    return connector("featuresDict", features=features)


def TENSOR(dtype: str, *shape: int, encoding: str = "none") -> dict[str, Any]:
    """A `Tensor`."""
    sizes = {"dimensions": [str(each) for each in shape]} if shape else {}
    return connector("tensor", dtype=dtype, shape=sizes, encoding=encoding)


def CLASSES(number: int) -> dict[str, Any]:
    """A `ClassLabel`."""
    return connector("classLabel", numClasses=str(number))


def write_tfds(
    folder: Path,
    splits: Mapping[str, Sequence[Sequence[bytes]]],
    features: Mapping[str, Any] | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
    *,
    name: str = "pets",
    template: str = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
    **more: Any,
) -> Path:
    """A dataset of TFDS.

    Args:
        splits: payloads of each shard by split.
        features: of `features.json`; None for no such file.
        labels: names of classes by the name of their file.
        more: fields of `dataset_info.json`; None leaves one out.
    """
    entries = []
    for split, shards in splits.items():
        for number, payloads in enumerate(shards):
            of = f"{number:05d}-of-{len(shards):05d}"
            file = template.format(
                DATASET=name, SPLIT=split, FILEFORMAT="tfrecord", SHARD_X_OF_Y=of
            )
            put(folder / file, *payloads)
        entries.append(
            {
                "name": split,
                "filepathTemplate": template,
                "shardLengths": [str(len(payloads)) for payloads in shards],
                "numBytes": str(sum(len(each) for payloads in shards for each in payloads)),
            }
        )
    info = {"name": name, "version": "1.2.3", "fileFormat": "tfrecord", "splits": entries, **more}
    info = {key: value for key, value in info.items() if value is not None}
    (folder / "dataset_info.json").write_text(json.dumps(info, indent=2))
    if features is not None:
        (folder / "features.json").write_text(json.dumps(features))
    for file, names in (labels or {}).items():
        (folder / f"{file}.labels.txt").write_text("".join(f"{each}\n" for each in names))
    return folder

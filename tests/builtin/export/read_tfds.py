"""Prints what TensorFlow Datasets reads from exported folders: one JSON object a folder.

Run by an interpreter that has `tensorflow-datasets`, which need not have tfrecreg.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import Any

import numpy as np
import tensorflow_datasets as tfds


def plain(value: Any) -> Any:
    """A tensor as JSON: dtype, shape, and its values; strings in base64."""
    if isinstance(value, bytes):  # NumPy's own strings lose NULs at their end
        value = np.array(value, object)
    array = np.asarray(value)
    if array.dtype == object:
        flat = [base64.b64encode(bytes(each)).decode() for each in array.reshape(-1)]
        return {"dtype": "string", "shape": list(array.shape), "values": flat}
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": data}


def names(feature: Any) -> Any:
    inner = getattr(feature, "feature", feature)
    return inner.names if isinstance(inner, tfds.features.ClassLabel) else None


def describe(folder: str) -> dict[str, Any]:
    builder = tfds.builder_from_directory(folder)
    info = builder.info
    # One file after the other, in order.
    config = tfds.ReadConfig(interleave_cycle_length=1)
    splits = {}
    for split in info.splits:
        if info.splits[split].num_examples:
            dataset = builder.as_dataset(split=split, read_config=config)
            splits[split] = [
                {name: plain(value) for name, value in example.items()}
                for example in tfds.as_numpy(dataset)
            ]
    return {
        "name": info.name,
        "version": str(info.version),
        "description": info.description,
        "citation": info.citation,
        "license": info.redistribution_info.license,
        "release_notes": dict(info.release_notes or {}),
        "metadata": dict(info.metadata),
        "supervised_keys": info.supervised_keys,
        "dataset_size": int(info.dataset_size),
        "download_size": int(info.download_size),
        "shard_lengths": {name: list(each.shard_lengths) for name, each in info.splits.items()},
        "num_bytes": {name: int(each.num_bytes) for name, each in info.splits.items()},
        "features": {name: repr(feature) for name, feature in info.features.items()},
        "names": {name: names(feature) for name, feature in info.features.items()},
        "splits": splits,
    }


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(json.dumps(describe(argument)))

"""What the tests of pipelines share: builds of one, two and seven shards, and boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from registry_support import put_odd

from tfrecreg.core.records.index import load_index
from tfrecreg.core.registry.registry import open_registry
from tfrecreg.core.storage.local import LocalStorage


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")


def keys_of(root: Path, name: str, split: str) -> list[bytes]:
    """The keys of a split in the order of its shards, by its indexes."""
    manifest = open_registry(root).dataset(name).build_manifest()
    assert manifest is not None
    storage = LocalStorage(str(root / "data" / name))
    found: list[bytes] = []
    for shard in manifest.shards:
        if shard.split == split:
            index = load_index(storage, shard.index)
            found += [index.key(record).encode() for record in range(len(index))]
    return found


@pytest.fixture
def keys(numbered: Path) -> Callable[..., list[bytes]]:
    """The keys of a build of so many shards, in their order."""
    return lambda shards=7, split="train": keys_of(numbered, f"digits{shards}", split)


@pytest.fixture
def odd(tf: Any, tmp_path: Path) -> Callable[..., Path]:
    """Makes a registry whose build `odd` has one shard."""

    def make(schema: str, examples: Sequence[dict[str, Any]]) -> Path:
        put_odd(tmp_path, schema, [example(tf, features) for features in examples])
        return tmp_path

    return make


def example(tf: Any, features: dict[str, Any]) -> bytes:
    """An Example of lists of bytes, integers or floats; an empty list is left out."""
    found = {}
    for name, values in features.items():
        if not values:
            continue
        if all(isinstance(each, bytes) for each in values):
            found[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
        elif all(isinstance(each, int) for each in values):
            found[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        else:
            found[name] = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    message = tf.train.Example(features=tf.train.Features(feature=found))
    return bytes(message.SerializeToString())


BOXES = """
    feature {
      name: "image/encoded" type: BYTES presence { min_fraction: 1 min_count: 1 }
      shape {} image_domain {}
    }
    feature {
      name: "image/class/label" type: INT presence { min_fraction: 1 min_count: 1 } shape {}
    }
    feature { name: "box/xmin" type: FLOAT }
    feature { name: "box/text" type: BYTES }
"""


@pytest.fixture
def boxes(tf: Any, odd: Callable[..., Path]) -> Path:
    """Ten images of sizes of their own, grey or colour, with 0, 1, 2, 3, 0, 1 … boxes."""
    rows = []
    for number in range(10):
        image = np.full((4 + number, 6, 1 if number % 2 else 3), number, np.uint8)
        rows.append(
            {
                "image/encoded": [tf.io.encode_png(image).numpy()],
                "image/class/label": [number],
                "box/xmin": [float(each) + 0.5 for each in range(number % 4)],
                "box/text": [b"cat"] * (number % 4),
            }
        )
    return odd(BOXES, rows)

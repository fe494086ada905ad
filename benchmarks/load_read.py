"""What the benchmark of `load` times: one epoch of one pipeline, imports not counted.

`plain` is the pipeline of TensorFlow's tutorials, `tuned` the same as somebody writes it who knows
the guide to the performance of tf.data. All of them decode, shuffle 2,048 records and batch.

`ordered`, `plain-ordered` and `tuned-ordered` are `load` and these two in the order of the records.

`kept` is `load` as it is called, which keeps few decoded images; `cached` is the tuned pipeline
with a cache of what is decoded, and `tfds` reads the export of the dataset, the folder DATASET in
the folder REGISTRY, by TFDS, which caches it, too.

usage: python -m benchmarks.load_read WAY REGISTRY DATASET BATCH [SIZE]
       prints records, seconds and CPU seconds of the fastest of three epochs
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TURNS = 3
"""Epochs after a first one, which traces the graphs; the fastest counts."""
_SHUFFLED = 2048
_IMAGE, _LABEL = "image/encoded", "image/class/label"


def _spec(tf: Any) -> dict[str, Any]:
    return {
        _IMAGE: tf.io.FixedLenFeature([], tf.string),
        _LABEL: tf.io.FixedLenFeature([], tf.int64),
    }


def _decode(tf: Any, size: int) -> Callable[[Any], Any]:
    def decode(image: Any) -> Any:
        image = tf.io.decode_image(image, channels=3 if size else 1, expand_animations=False)
        return tf.image.resize(tf.cast(image, tf.float32), (size, size)) if size else image

    return decode


def _plain(tf: Any, files: list[str], batch: int, size: int, *, shuffled: bool = True) -> Any:
    """One file after the other, one record at a time."""
    spec, decode, auto = _spec(tf), _decode(tf, size), tf.data.AUTOTUNE
    records = tf.data.TFRecordDataset(files)
    examples = records.map(lambda r: tf.io.parse_single_example(r, spec), num_parallel_calls=auto)
    pairs = examples.map(lambda e: (decode(e[_IMAGE]), e[_LABEL]))
    pairs = pairs.shuffle(_SHUFFLED) if shuffled else pairs
    return pairs.prefetch(auto).batch(batch)


def _interleaved(tf: Any, files: list[str]) -> Any:
    """Records of several files at once."""
    return (
        tf.data.Dataset.from_tensor_slices(files)
        .shuffle(len(files))
        .interleave(
            lambda file: tf.data.TFRecordDataset(file, buffer_size=1 << 20),
            cycle_length=min(16, len(files)),
            num_parallel_calls=tf.data.AUTOTUNE,
        )
    )


def _tuned(tf: Any, files: list[str], batch: int, size: int, *, cached: bool = False) -> Any:
    """Interleaved files, any order, parsed by the batch, decoded in parallel."""
    spec, decode, auto = _spec(tf), _decode(tf, size), tf.data.AUTOTUNE
    options = tf.data.Options()
    options.deterministic = False
    pairs = (
        _interleaved(tf, files)
        .batch(batch)
        .map(lambda r: tf.io.parse_example(r, spec), num_parallel_calls=auto)
        .unbatch()
        .map(lambda e: (decode(e[_IMAGE]), e[_LABEL]), num_parallel_calls=auto)
    )
    pairs = pairs.cache() if cached else pairs
    return pairs.shuffle(_SHUFFLED).batch(batch).prefetch(auto).with_options(options)


def _tfds(tf: Any, folder: str, batch: int, size: int) -> Any:
    """As its guide to performance has it: read and cached by TFDS, shuffled, batched."""
    import tensorflow_datasets as tfds

    features = list(tfds.builder_from_directory(folder).info.features)
    image, label = (
        next(each for each in features if name in each) for name in ("encoded", "label")
    )
    builder, auto = tfds.builder_from_directory(folder), tf.data.AUTOTUNE
    pairs = builder.as_dataset(split="train", shuffle_files=False)

    def pair(example: Any) -> Any:
        found = example[image]
        if size:
            found = tf.image.resize(tf.cast(found, tf.float32), (size, size))
        return found, example[label]

    pairs = pairs.map(pair, num_parallel_calls=auto)
    return pairs.shuffle(_SHUFFLED).batch(batch).prefetch(auto)


def _tuned_ordered(tf: Any, files: list[str], batch: int, size: int) -> Any:
    """One file after the other, parsed by the batch, decoded in parallel."""
    spec, decode, auto = _spec(tf), _decode(tf, size), tf.data.AUTOTUNE
    pairs = (
        tf.data.TFRecordDataset(files, buffer_size=1 << 20)
        .batch(batch)
        .map(lambda r: tf.io.parse_example(r, spec), num_parallel_calls=auto)
        .unbatch()
        .map(lambda e: (decode(e[_IMAGE]), e[_LABEL]), num_parallel_calls=auto)
    )
    return pairs.batch(batch).prefetch(auto)


def _load(registry: str, dataset: str, batch: int, size: int, **more: Any) -> Any:
    import tfrecreg

    if size:
        more |= {"image_size": (size, size)}
    return tfrecreg.load(
        dataset,
        "train",
        registry=registry,
        batch_size=batch,
        channels=3 if size else 1,
        decode=True,
        as_supervised=True,
        **{"shuffle": _SHUFFLED, **more},
    )


def _encoded(tf: Any, files: list[str], batch: int) -> Any:
    """Everything but decoding, in the order that costs least: a bound for any pipeline."""
    spec, auto = _spec(tf), tf.data.AUTOTUNE
    records = tf.data.TFRecordDataset(files, buffer_size=1 << 20).shuffle(_SHUFFLED).batch(batch)
    examples = records.map(lambda r: tf.io.parse_example(r, spec), num_parallel_calls=auto)
    return examples.map(lambda e: (e[_IMAGE], e[_LABEL])).prefetch(auto)


def main() -> None:
    """Run one pipeline."""
    import tensorflow as tf

    way, registry, dataset, batch, *rest = sys.argv[1:]
    size = int(rest[0]) if rest else 0
    files = [str(each) for each in sorted(Path(registry, "data", dataset).glob("*.tfrecord-*"))]
    pairs = {
        "load": lambda: _load(registry, dataset, int(batch), size, cache=False),
        "ordered": lambda: _load(registry, dataset, int(batch), size, cache=False, shuffle=False),
        "plain-ordered": lambda: _plain(tf, files, int(batch), size, shuffled=False),
        "tuned-ordered": lambda: _tuned_ordered(tf, files, int(batch), size),
        "kept": lambda: _load(registry, dataset, int(batch), size),
        "cached": lambda: _tuned(tf, files, int(batch), size, cached=True),
        "tfds": lambda: _tfds(tf, f"{registry}/{dataset}", int(batch), size),
        "plain": lambda: _plain(tf, files, int(batch), size),
        "tuned": lambda: _tuned(tf, files, int(batch), size),
        "encoded": lambda: _encoded(tf, files, int(batch)),
    }[way]()
    best, cpu, records = float("inf"), 0.0, 0
    for turn in range(TURNS + 1):
        before, start = os.times(), time.perf_counter()
        records = sum(int(labels.shape[0]) for _, labels in pairs)
        took, after = time.perf_counter() - start, os.times()
        if turn and took < best:
            best, cpu = took, after.user + after.system - before.user - before.system
    print(f"{way} records={records} seconds={best:.3f} cpu={cpu:.3f}")


if __name__ == "__main__":
    main()

"""What the benchmark of training times: one way to read a file, imports not counted.

usage: python -m benchmarks.source_read KIND FILE      prints records and seconds
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TURNS = 3
"""So often it is done; the fastest counts."""
_MOST = 20_000
"""Records that are read at random, and"""
_ONE_BY_ONE = 2_000
"""by ArrayRecord one by one."""


def _ours(path: Path, *, raw: bool) -> Any:
    import tfrecreg

    return tfrecreg.data_source(
        path, raw=raw, schema=None if raw else path.with_name("schema.pbtxt")
    )


def _array_record(path: Path) -> Any:
    """The same payloads as an ArrayRecord, written the first time."""
    from array_record.python.array_record_data_source import ArrayRecordDataSource
    from array_record.python.array_record_module import ArrayRecordWriter

    other = path.with_suffix(".array_record")
    if not other.exists():
        writer = ArrayRecordWriter(str(other), "group_size:1,uncompressed")
        for payload in _ours(path, raw=True):
            writer.write(payload)
        writer.close()
    return ArrayRecordDataSource(str(other))


def _one(source: Any, most: int) -> int:
    chosen = random.Random(1).choices(range(len(source)), k=min(most, len(source)))
    for number in chosen:
        source[number]
    return len(chosen)


def _many(source: Any) -> int:
    chosen = random.Random(1).choices(range(len(source)), k=min(_MOST, len(source)))
    for start in range(0, len(chosen), 256):
        source.__getitems__(chosen[start : start + 256])
    return len(chosen)


def _grain(source: Any) -> int:
    import grain.python as grain

    dataset = grain.MapDataset.source(source).shuffle(seed=1)[:_MOST]
    return sum(1 for _ in dataset)


def _tfrecord(path: Path) -> int:
    from tfrecord.reader import tfrecord_loader

    kinds = {"image": "byte", "label": "int", "height": "int", "width": "int"}
    return sum(1 for _ in tfrecord_loader(str(path), None, kinds))


def _tfdata(path: Path) -> int:
    import tensorflow as tf

    kinds = {"image": tf.string, "label": tf.int64, "height": tf.int64, "width": tf.int64}
    spec = {name: tf.io.FixedLenFeature([], kind) for name, kind in kinds.items()}
    examples = (
        tf.data.TFRecordDataset(str(path))
        .batch(256)
        .map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=tf.data.AUTOTUNE)
        .unbatch()
        .prefetch(1)
    )
    return sum(1 for _ in examples.as_numpy_iterator())


def _reading(kind: str, path: Path) -> Callable[[], int]:
    """What to time; sources are opened before."""
    if kind == "decoded":
        decoded = _ours(path, raw=False)
        return lambda: sum(1 for _ in decoded)
    if kind == "tfrecord-decoded":
        return lambda: _tfrecord(path)
    if kind == "tfdata-decoded":
        return lambda: _tfdata(path)
    theirs = kind.startswith("array_record-")
    source = _array_record(path) if theirs else _ours(path, raw=True)
    way = kind.rpartition("-")[2]
    if way == "one":
        return lambda: _one(source, _ONE_BY_ONE if theirs else _MOST)
    return lambda: (_many if way == "many" else _grain)(source)


def main() -> None:
    kind, path = sys.argv[1:]
    read = _reading(kind, Path(path))
    best = 0.0
    for turn in range(TURNS):
        start = time.perf_counter()
        records = read()
        took = (time.perf_counter() - start) / max(1, records) * 10_000
        best = took if turn == 0 else min(best, took)
    # For 10,000 records, because not all read as many.
    print(f"{kind} records={records} seconds={best:.5f}")


if __name__ == "__main__":
    main()

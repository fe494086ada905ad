"""Numbered payloads of records that a condition selects. Nothing else of their shards is read.

TensorFlow's own reader would read a shard from its beginning to each of them.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfrecreg.errors import TfrecregError
from tfrecreg.operations.load_records import SplitRecords
from tfrecreg.operations.tf_dataset.plain import plain
from tfrecreg.records.access import Records

if TYPE_CHECKING:
    import tensorflow as tf

_OPEN = 16
"""Shards that are open at once."""


def read_chosen(
    tensorflow: Any,
    records: SplitRecords,
    numbers: npt.NDArray[np.int64],
    size: int,
    *,
    shuffle: bool,
    seed: int | None,
    deterministic: bool,
) -> tf.data.Dataset:
    """Batches of numbers and payloads, with marks for damage, as `read_payloads` gives them.

    Args:
        numbers: of the records, in their order.
        size: of a batch.
        shuffle: whether each epoch has another order of the batches.
        seed: of that order.
        deterministic: whether the order is the same each time.
    """
    paths = [os.fsdecode(each) for each in records.paths]
    opened = lru_cache(_OPEN)(lambda shard: Records(paths[shard]))
    starts = np.array(records.starts, np.int64)

    def read(first: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
        wanted = numbers[int(first) : int(first) + size]
        shards = np.searchsorted(starts, wanted, side="right") - 1
        found: list[object] = [None] * len(wanted)
        for shard in np.unique(shards).tolist():
            rows = np.flatnonzero(shards == shard)
            try:
                payloads = opened(shard).read_each((wanted[rows] - starts[shard]).tolist())
            except (TfrecregError, IndexError):
                continue  # the mark leads to the reason
            for row, payload in zip(rows.tolist(), payloads, strict=True):
                found[row] = payload
        sound = next((at for at, each in enumerate(found) if not isinstance(each, bytes)), size)
        mark = [(-1 - 2 * int(wanted[sound]), b"")] if sound < len(wanted) else []
        kept = [*zip(wanted[:sound].tolist(), found[:sound], strict=True), *mark]
        return (
            np.array([number for number, _ in kept], np.int64),
            np.array([payload for _, payload in kept], np.object_),
        )

    def batch(first: Any) -> tuple[Any, Any]:
        kinds = tensorflow.int64, tensorflow.string
        batch_numbers, payloads = tensorflow.numpy_function(read, [first], kinds)
        batch_numbers.set_shape([None])
        payloads.set_shape([None])
        return batch_numbers, payloads

    order = tensorflow.data.Dataset.range(0, len(numbers), size)
    if shuffle:
        count = max(1, -(-len(numbers) // size))
        order = order.shuffle(count, seed, reshuffle_each_iteration=True)
    return order.map(
        plain(tensorflow, batch),
        num_parallel_calls=tensorflow.data.AUTOTUNE,
        deterministic=deterministic,
    )

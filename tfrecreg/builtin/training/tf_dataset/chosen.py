"""Payloads of records that are read by their numbers. Nothing else of their shards is read.

TensorFlow's own reader would read a shard from its beginning to each of them, and knows no cache.
And a shuffle of numbers takes no memory, and has nothing to read before its first element.

A map over batches of records whose errors name shard, record and key.

Sound batches pay nothing for it: a batch that fails is dropped, which leaves a gap in the numbers
of the batches, and only then its records are looked at one by one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.training.tf_dataset.plain import plain
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.reading.shards import ShardRecords
from tfrecreg.core.registry.shardset.load_records import SplitRecords
from tfrecreg.core.values.errors import TfrecregError

if TYPE_CHECKING:
    import tensorflow as tf

_OPEN = 16
"""Shards that are open at once."""
_AHEAD = 16
"""Batches that a store is asked for before they are read."""
_READ_BYTES = 64 << 20
"""Payloads that are read at the same time, in up to `_OPEN` threads."""

PayloadReader: TypeAlias = "Callable[[npt.NDArray[np.int64]], Sequence[object]]"
"""The payloads of records, in the order of their numbers; anything else for one without."""


@dataclass(frozen=True)
class NumberedRecords:
    """Records by their numbers."""

    numbers: npt.NDArray[np.int64]
    """In their order."""
    far: ShardRecords | None = None
    """Reads them from a store through a cache; None where the shards are on this machine."""


def read_chosen(
    tensorflow: Any,
    records: SplitRecords,
    chosen: NumberedRecords,
    size: int,
    *,
    shuffle: bool,
    seed: int | None,
    deterministic: bool,
) -> tf.data.Dataset:
    """Batches of numbers and payloads, with marks for damage, as `read_payloads` gives them."""
    numbers, far = chosen.numbers, chosen.far
    payloads_of = _of_files(records) if far is None else _of_store(far)
    read = _reading(tensorflow, lambda first: numbers[int(first) : int(first) + size], payloads_of)

    def request(first: Any) -> npt.NDArray[np.int64]:
        assert far is not None
        with suppress(TfrecregError):  # whoever reads them gets it
            far.request(numbers[int(first) : int(first) + size].tolist(), soon=True)
        return np.asarray(first, np.int64)

    def requested(first: Any) -> Any:
        asked = tensorflow.numpy_function(request, [first], tensorflow.int64)
        return tensorflow.ensure_shape(asked, ())

    order = tensorflow.data.Dataset.range(0, len(numbers), size)
    if shuffle:
        count = max(1, -(-len(numbers) // size))
        order = order.shuffle(count, seed, reshuffle_each_iteration=True)
    if far is not None:
        order = order.map(plain(tensorflow, requested)).prefetch(_AHEAD)
    return order.map(
        plain(tensorflow, read),
        num_parallel_calls=tensorflow.data.AUTOTUNE,
        deterministic=deterministic,
    )


def read_numbered(
    tensorflow: Any,
    records: SplitRecords,
    numbers: tf.data.Dataset,
    size: int,
    *,
    deterministic: bool,
) -> tf.data.Dataset:
    """The same for batches of numbers of records of local shards, in their order."""
    read = _reading(tensorflow, lambda wanted: wanted, _of_files(records))
    at_once = _READ_BYTES // max(1, size * records.mean_bytes)
    return numbers.map(
        plain(tensorflow, read),
        num_parallel_calls=max(1, min(_OPEN, at_once)),
        deterministic=deterministic,
    )


def _reading(
    tensorflow: Any, numbers_of: Callable[[Any], npt.NDArray[np.int64]], payloads_of: PayloadReader
) -> Callable[[Any], tuple[Any, Any]]:
    """A function for a graph: numbers and payloads of a batch, with a mark for damage."""

    def read(element: Any) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
        wanted = numbers_of(element)
        found = payloads_of(wanted)
        unsound = (at for at, each in enumerate(found) if not isinstance(each, bytes))
        sound = next(unsound, len(wanted))
        mark = [(-1 - 2 * int(wanted[sound]), b"")] if sound < len(wanted) else []
        kept = [*zip(wanted[:sound].tolist(), found[:sound], strict=True), *mark]
        return (
            np.array([number for number, _ in kept], np.int64),
            np.array([payload for _, payload in kept], np.object_),
        )

    def batch(element: Any) -> tuple[Any, Any]:
        kinds = tensorflow.int64, tensorflow.string
        numbers, payloads = tensorflow.numpy_function(read, [element], kinds)
        numbers.set_shape([None])
        payloads.set_shape([None])
        return numbers, payloads

    return batch


def _of_files(records: SplitRecords) -> PayloadReader:
    """Reads local shards."""
    paths = [os.fsdecode(each) for each in records.paths]
    opened = lru_cache(_OPEN)(lambda shard: Records(paths[shard]))
    starts = np.array(records.starts, np.int64)

    def read(wanted: npt.NDArray[np.int64]) -> Sequence[object]:
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
        return found

    return read


def _of_store(far: ShardRecords) -> PayloadReader:
    """Reads shards behind URLs."""

    def read(wanted: npt.NDArray[np.int64]) -> Sequence[object]:
        try:
            return far.payloads(wanted)
        except TfrecregError:
            return [None] * len(wanted)  # the mark leads to the reason

    return read


_REMEMBERED = 16
"""Number of batches whose numbers are kept. If more are lost in a row, one of the last is named."""

WhyLost = Callable[[list[int], bool], str]
"""The reason why records of a batch are missing, given their numbers and whether all are lost."""


def checked_map(
    tensorflow: Any, groups: tf.data.Dataset, function: Callable[..., Any], why: WhyLost
) -> tf.data.Dataset:
    """Apply a function to batches of numbers and payloads, up to the first mark of damage."""
    data, int64 = tensorflow.data, tensorflow.int64

    def chained(state: Any, element: Any) -> tuple[Any, Any]:
        at, before, sizes = state
        numbers, payloads = element
        # The batches that may be lost together, when the next one comes through.
        sizes = tensorflow.concat([sizes[-_REMEMBERED + 1 :], [tensorflow.size(numbers)]], 0)
        kept = tensorflow.concat([before, numbers], 0)[-tensorflow.reduce_sum(sizes) :]
        return (at + 1, kept, sizes), (at, before, numbers, payloads)

    def applied(at: Any, before: Any, numbers: Any, payloads: Any) -> tuple[Any, ...]:
        marks = tensorflow.cast(tensorflow.concat([numbers < 0, [True]], 0), tensorflow.int32)
        sound = tensorflow.argmax(marks, output_type=tensorflow.int32)
        return at, before, numbers, sound, function(numbers[:sound], payloads[:sound])

    def described(lost: Any, numbers: Any) -> str:
        return why([int(each) for each in numbers], bool(lost))

    def followed(state: Any, element: Any) -> tuple[Any, Any]:
        expected, marked = state
        at, before, numbers, sound, values = element
        is_marked = tensorflow.size(marked) > 0
        lost = tensorflow.logical_and(at != expected, tensorflow.logical_not(is_marked))
        chosen = tensorflow.cond(is_marked, lambda: marked, lambda: before)
        check = tensorflow.cond(
            tensorflow.logical_or(lost, is_marked),
            lambda: _stop(tensorflow, described, lost, chosen),
            tensorflow.no_op,
        )
        with tensorflow.control_dependencies([check]):
            following = tensorflow.identity(at + 1), numbers[sound:]
            return following, (tensorflow.cast(sound, int64), values)

    zero = tensorflow.constant(0, int64)
    none = tensorflow.constant([], int64)
    # What follows the last batch, so that its absence shows.
    end = data.Dataset.from_tensors((none, tensorflow.constant([], tensorflow.string)))
    return (
        groups.concatenate(end)
        .scan((zero, none, tensorflow.constant([], tensorflow.int32)), plain(tensorflow, chained))
        # In order, whatever the options of the dataset say: the numbers have to follow each other.
        .map(plain(tensorflow, applied), num_parallel_calls=data.AUTOTUNE, deterministic=True)
        .ignore_errors()
        .scan((zero, none), plain(tensorflow, followed))
    )


def _stop(tensorflow: Any, why: Callable[..., str], *arguments: Any) -> Any:
    problem = tensorflow.py_function(why, arguments, tensorflow.string)
    # A Python exception would show TensorFlow's lines in between.
    return tensorflow.debugging.Assert(tensorflow.constant(value=False), [problem])

"""Numbered payloads of shards. Damage becomes a mark among the numbers, not an error.

`ignore_errors` further down, where records are parsed, would swallow an error of the reader. So a
batch of which records are missing ends in a mark: a negative number that says where, and an empty
payload. :func:`describe_mark` turns it into a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tfrecreg.builtin.training.elements import RecordRun
from tfrecreg.builtin.training.tf_dataset.chosen import NumberedRecords, read_chosen
from tfrecreg.builtin.training.tf_dataset.plain import plain
from tfrecreg.core.registry.shardset.load_records import DamageSearch, SplitRecords

if TYPE_CHECKING:
    import tensorflow as tf

_MOST = 256
"""Number of records read together: one at a time costs about ten times as much."""
_BYTES = 4 << 20
"""A batch of large records has fewer, because several shards are read ahead."""
_MOST_FAR = 1 << 14
"""The same for records in a store, where a batch should be about a piece of the cache."""
_CYCLE = 16
"""So many shards are read at once."""


def read_payloads(
    tensorflow: Any,
    records: SplitRecords,
    pieces: Sequence[RecordRun] | NumberedRecords,
    compression: str,
    *,
    mixed: bool,
    shuffle: bool,
    seed: int | None,
    deterministic: bool,
) -> tf.data.Dataset:
    """Batches of numbers, int64 of shape (n,), and payloads, strings of shape (n,)."""
    data, int64 = tensorflow.data, tensorflow.int64
    kind = "GZIP" if compression == "gzip" else ""
    is_far = isinstance(pieces, NumberedRecords) and pieces.far is not None
    most = _MOST_FAR if is_far else _MOST
    size = _size(records, most)
    if isinstance(pieces, NumberedRecords):
        return read_chosen(
            tensorflow,
            records,
            pieces,
            size,
            shuffle=shuffle,
            seed=seed,
            deterministic=deterministic,
        )

    def of_piece(pattern: Any, skip: Any, first: Any, count: Any, is_last: Any) -> Any:
        # A file that was removed is an empty list, not an error: errors are passed over
        # below, and TensorFlow would try to open it for ever.
        paths = tensorflow.io.matching_files(pattern)
        payloads = data.TFRecordDataset(paths, compression_type=kind).ignore_errors().skip(skip)
        # Of a piece that ends with its shard one record more is asked for, to see that none is.
        more = tensorflow.cast(is_last, int64)
        batches = payloads.take(count + more).batch(size)
        nothing = data.Dataset.from_tensors(tensorflow.constant([], tensorflow.string)).repeat()
        stop = first + count
        starts = data.Dataset.range(first, stop + more, size)
        return data.Dataset.zip((starts, batches.concatenate(nothing))).map(
            plain(tensorflow, lambda start, payloads: marked(start, stop, payloads))
        )

    def marked(start: Any, stop: Any, payloads: Any) -> tuple[Any, Any]:
        found = tensorflow.size(payloads, int64)
        expected = tensorflow.minimum(stop - start, size)
        numbers = tensorflow.range(start, start + found, dtype=int64)
        mark = tensorflow.where(found < expected, -1 - 2 * (start + found), -2 - 2 * (stop - 1))

        def with_mark() -> tuple[Any, Any]:
            kept = tensorflow.minimum(found, expected)
            return (
                tensorflow.concat([numbers[:kept], [mark]], 0),
                tensorflow.concat([payloads[:kept], [b""]], 0),
            )

        is_whole = tensorflow.equal(found, expected)
        return tuple(tensorflow.cond(is_whole, lambda: (numbers, payloads), with_mark))

    return _in_turn(
        tensorflow,
        records,
        pieces,
        of_piece,
        mixed=mixed,
        shuffle=shuffle,
        seed=seed,
        deterministic=deterministic,
    )


def order_numbers(
    tensorflow: Any,
    records: SplitRecords,
    pieces: Sequence[RecordRun],
    *,
    mixed: bool,
    shuffle: bool,
    seed: int | None,
    deterministic: bool,
) -> tf.data.Dataset:
    """The numbers of the records that :func:`read_payloads` gives with the same arguments, in its
    order.
    """
    int64 = tensorflow.int64
    size = _size(records, _MOST)

    def of_piece(_: Any, __: Any, first: Any, count: Any, is_last: Any) -> Any:
        stop = first + count
        # Where one record more would be asked for, a batch of none takes its turn.
        more = tensorflow.cast(is_last, int64)
        starts = tensorflow.data.Dataset.range(first, stop + more, size)
        return starts.map(
            plain(
                tensorflow,
                lambda start: tensorflow.range(
                    start, tensorflow.minimum(start + size, stop), dtype=int64
                ),
            )
        )

    return _in_turn(
        tensorflow,
        records,
        pieces,
        of_piece,
        mixed=mixed,
        shuffle=shuffle,
        seed=seed,
        deterministic=deterministic,
    ).unbatch()


def _size(records: SplitRecords, most: int) -> int:
    return max(1, min(most, _BYTES // max(1, records.mean_bytes)))


def _in_turn(
    tensorflow: Any,
    records: SplitRecords,
    pieces: Sequence[RecordRun],
    of_piece: Callable[..., Any],
    *,
    mixed: bool,
    shuffle: bool,
    seed: int | None,
    deterministic: bool,
) -> Any:
    """What a function returns for each piece: one after the other, or several by turns."""
    data, int64 = tensorflow.data, tensorflow.int64

    def column(values: Iterable[Any], dtype: Any) -> Any:
        return tensorflow.constant(list(values), dtype)

    starts, sizes = records.starts, records.sizes
    order = data.Dataset.from_tensor_slices(
        (
            column((_literal(records.paths[each.shard]) for each in pieces), tensorflow.string),
            column((each.first for each in pieces), int64),
            column((starts[each.shard] + each.first for each in pieces), int64),
            column((each.records for each in pieces), int64),
            column(
                (each.first + each.records == sizes[each.shard] for each in pieces), tensorflow.bool
            ),
        )
    )
    if shuffle:
        order = order.shuffle(max(1, len(pieces)), seed, reshuffle_each_iteration=True)
    if not mixed or len(pieces) < 2:
        return order.flat_map(plain(tensorflow, of_piece))
    return order.interleave(
        plain(tensorflow, of_piece),
        cycle_length=min(_CYCLE, len(pieces)),
        num_parallel_calls=data.AUTOTUNE,
        deterministic=deterministic,
    )


def describe_marks(records: SplitRecords, numbers: Sequence[int], look: DamageSearch) -> str:
    """The fault that the marks among these numbers are about; empty without marks."""
    for number in numbers:
        if number < 0 and number % 2 == 0:
            return records.why_more((-2 - number) // 2)
        if number < 0:
            return records.why_lost([(-1 - number) // 2], look)
    return ""


def _literal(path: bytes) -> bytes:
    """A pattern that matches this path only."""
    return re.sub(rb"([*?\[\\])", rb"\\\1", path)

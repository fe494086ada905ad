"""Numbered payloads of shards. Damage does not raise an error here, but adds a mark to the numbers.

A later `ignore_errors` would swallow an error of the reader. So a batch with missing records ends
with a mark: a negative number, which encodes the place, and an empty payload. Records that are
selected, remote or large are read by their numbers, because TensorFlow's reader would also read all
preceding records.

An error of :func:`checked_map` names the shard, the record and the key. A batch that fails is
dropped, which leaves a gap in the numbers of the batches. Records are examined one by one only
after such a gap.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from tfrecreg.builtin.training.certificate import expect_enough, expect_host
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.builtin.training.splits import DamageSearch, SplitRecords
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.reading.shards import ShardRecords
from tfrecreg.core.registry.splits import even_parts
from tfrecreg.core.values.errors import TfrecregError

_MOST = 256
"""Number of records that are read together. Single reads take about ten times as long."""
_BYTES = 4 << 20
"""Size in bytes of a batch of large records. It is small because several shards are read ahead."""
_MOST_FAR = 1 << 14
"""Number of records in a batch from a store. Such a batch is about as large as one piece of the
cache."""
_CYCLE = 16
"""Number of shards that are read in rotation."""
_OPEN = 16
"""Number of shards that are open at once."""
_AHEAD = 16
"""Number of batches that are requested from a store before they are read."""
_READ_BYTES = 64 << 20
"""Bytes of payloads that are read at the same time, in up to `_OPEN` threads."""

PayloadReader: TypeAlias = "Callable[[npt.NDArray[np.int64]], Sequence[object]]"
"""Returns the payload for each number, or another object if the record is missing."""


class Turns(NamedTuple):
    """The order in which shards are read."""

    mixed: bool
    """Whether several shards are read in rotation, instead of one after the other."""
    shuffle: bool
    seed: int | None
    deterministic: bool


def plain(function: Callable[..., Any]) -> Any:
    """Exempt a function from AutoGraph, which warns about functions without source code."""
    return tf.autograph.experimental.do_not_convert(function)


class RecordRun(NamedTuple):
    """Consecutive records of one shard."""

    shard: int
    """The place of the shard in the list of shards."""
    first: int
    """Number of the first record in its shard."""
    records: int
    """The number of records, at least one."""


def find_pieces(numbers: Iterable[range], starts: Sequence[int]) -> list[RecordRun]:
    """Cut ranges of numbers at the borders of shards."""
    found: list[RecordRun] = []
    for wanted in numbers:
        for shard, low in enumerate(starts[:-1]):
            first, stop = max(wanted.start, low), min(wanted.stop, starts[shard + 1])
            if first < stop:
                found.append(RecordRun(shard, first - low, stop - first))
    return found


class NumberedRecords(NamedTuple):
    """Records by their numbers."""

    numbers: npt.NDArray[np.int64]
    """The numbers, in the order in which they are read."""
    far: ShardRecords | None = None
    """Reads them from a store through a cache; None if the shards are on this machine."""


Pieces: TypeAlias = Sequence[RecordRun] | NumberedRecords


def share_of_host(
    selection: Selection, starts: Sequence[int], host: int, hosts: int, name: str
) -> Selection:
    """The records of one host: whole shards if they can be divided evenly among hosts, else
    records.

    The shares of all hosts are disjoint and together contain all records.
    """
    expect_host(host, hosts)
    expect_enough(len(selection), hosts, name)
    pieces = [] if selection.chosen is not None else find_pieces(selection.ranges, starts)
    if pieces and len(pieces) % hosts == 0:
        firsts = [(starts[piece.shard] + piece.first, piece.records) for piece in pieces]
        return Selection([range(first, first + records) for first, records in firsts[host::hosts]])
    part = even_parts(range(len(selection)), hosts, drop_remainder=False)[host]
    return selection.part(slice(part.start, part.stop))


def read_payloads(
    records: SplitRecords, pieces: Pieces, compression: str, turns: Turns
) -> tf.data.Dataset:
    """Batches of numbers (int64) and payloads (strings), both of shape (n,)."""
    data, int64 = tf.data, tf.int64
    kind = "GZIP" if compression == "gzip" else ""
    is_far = isinstance(pieces, NumberedRecords) and pieces.far is not None
    most = _MOST_FAR if is_far else _MOST
    size = _size(records, most)
    if isinstance(pieces, NumberedRecords):
        return _read_chosen(records, pieces, size, turns)

    def of_piece(pattern: Any, skip: Any, first: Any, count: Any, is_last: Any) -> Any:
        # A file that was removed gives an empty list, not an error.
        paths = tf.io.matching_files(pattern)
        stop = first + count
        # At the end of a shard, one record more is requested, to verify that none follows.
        more = tf.cast(is_last, int64)
        # Errors are skipped. TensorFlow would try for ever to open a file that it cannot open, so
        # its attempts are limited.
        attempts = data.Dataset.range(skip + count + more)
        payloads = data.TFRecordDataset(paths, compression_type=kind)
        batches = data.Dataset.zip((attempts, payloads)).ignore_errors().skip(skip).batch(size)
        nothing = data.Dataset.from_tensors((tf.zeros([0], int64), tf.constant([], tf.string)))
        starts = data.Dataset.range(first, stop + more, size)
        return data.Dataset.zip((starts, batches.concatenate(nothing.repeat()))).map(
            plain(lambda start, batch: marked(start, stop, batch[1]))
        )

    def marked(start: Any, stop: Any, payloads: Any) -> tuple[Any, Any]:
        found = tf.size(payloads, int64)
        expected = tf.minimum(stop - start, size)
        numbers = tf.range(start, start + found, dtype=int64)
        mark = tf.where(found < expected, -1 - 2 * (start + found), -2 - 2 * (stop - 1))

        def with_mark() -> tuple[Any, Any]:
            kept = tf.minimum(found, expected)
            return (tf.concat([numbers[:kept], [mark]], 0), tf.concat([payloads[:kept], [b""]], 0))

        is_whole = tf.equal(found, expected)
        return tuple(tf.cond(is_whole, lambda: (numbers, payloads), with_mark))

    return _in_turn(records, pieces, of_piece, turns)


def order_numbers(
    records: SplitRecords, pieces: Sequence[RecordRun], turns: Turns
) -> tf.data.Dataset:
    """The numbers of the records that :func:`read_payloads` reads, in the same order."""
    int64 = tf.int64
    size = _size(records, _MOST)

    def of_piece(_: Any, __: Any, first: Any, count: Any, is_last: Any) -> Any:
        stop = first + count
        # Where one record more would be requested, an empty batch takes its turn.
        more = tf.cast(is_last, int64)
        starts = tf.data.Dataset.range(first, stop + more, size)
        return starts.map(
            plain(lambda start: tf.range(start, tf.minimum(start + size, stop), dtype=int64))
        )

    return _in_turn(records, pieces, of_piece, turns).unbatch()


def _size(records: SplitRecords, most: int) -> int:
    return max(1, min(most, _BYTES // max(1, records.mean_bytes)))


def _in_turn(
    records: SplitRecords, pieces: Sequence[RecordRun], of_piece: Callable[..., Any], turns: Turns
) -> Any:
    """Apply a function to each piece. Pieces are read one after the other, or in rotation."""
    data, int64 = tf.data, tf.int64

    def column(values: Iterable[Any], dtype: Any) -> Any:
        return tf.constant(list(values), dtype)

    starts, sizes = records.starts, records.sizes
    order = data.Dataset.from_tensor_slices(
        (
            # Patterns that match only these paths.
            column(
                (re.sub(rb"([*?\[\\])", rb"\\\1", records.paths[each.shard]) for each in pieces),
                tf.string,
            ),
            column((each.first for each in pieces), int64),
            column((starts[each.shard] + each.first for each in pieces), int64),
            column((each.records for each in pieces), int64),
            column((each.first + each.records == sizes[each.shard] for each in pieces), tf.bool),
        )
    )
    if turns.shuffle:
        order = order.shuffle(max(1, len(pieces)), turns.seed, reshuffle_each_iteration=True)
    if not turns.mixed or len(pieces) < 2:
        return order.flat_map(plain(of_piece))
    return order.interleave(
        plain(of_piece),
        cycle_length=min(_CYCLE, len(pieces)),
        num_parallel_calls=data.AUTOTUNE,
        deterministic=turns.deterministic,
    )


def describe_marks(records: SplitRecords, numbers: Sequence[int], look: DamageSearch) -> str:
    """The fault that the first mark in `numbers` stands for. Empty if no number is a mark."""
    for number in numbers:
        if number < 0 and number % 2 == 0:
            return records.why_more((-2 - number) // 2)
        if number < 0:
            return records.why_lost([(-1 - number) // 2], look)
    return ""


def _read_chosen(
    records: SplitRecords, chosen: NumberedRecords, size: int, turns: Turns
) -> tf.data.Dataset:
    """Batches of numbers and payloads, with marks for damage, in the form of `read_payloads`."""
    numbers, far = chosen.numbers, chosen.far
    payloads_of = _of_files(records) if far is None else _of_store(far)
    read = _reading(lambda first: numbers[int(first) : int(first) + size], payloads_of)

    def request(first: Any) -> npt.NDArray[np.int64]:
        assert far is not None
        with suppress(TfrecregError):  # the reader of these records gets the error
            far.request(numbers[int(first) : int(first) + size].tolist(), soon=True)
        return np.asarray(first, np.int64)

    def requested(first: Any) -> Any:
        asked = tf.numpy_function(request, [first], tf.int64)
        return tf.ensure_shape(asked, ())

    order = tf.data.Dataset.range(0, len(numbers), size)
    if turns.shuffle:
        count = max(1, -(-len(numbers) // size))
        order = order.shuffle(count, turns.seed, reshuffle_each_iteration=True)
    if far is not None:
        order = order.map(plain(requested)).prefetch(_AHEAD)
    return order.map(
        plain(read), num_parallel_calls=tf.data.AUTOTUNE, deterministic=turns.deterministic
    )


def read_numbered(
    records: SplitRecords, numbers: tf.data.Dataset, size: int, turns: Turns
) -> tf.data.Dataset:
    """Read payloads from local shards. Each element of `numbers` is a batch of record numbers."""
    read = _reading(lambda wanted: wanted, _of_files(records))
    at_once = _READ_BYTES // max(1, size * records.mean_bytes)
    return numbers.map(
        plain(read),
        num_parallel_calls=max(1, min(_OPEN, at_once)),
        deterministic=turns.deterministic,
    )


def _reading(
    numbers_of: Callable[[Any], npt.NDArray[np.int64]], payloads_of: PayloadReader
) -> Callable[[Any], tuple[Any, Any]]:
    """A function for a graph. It returns the numbers and payloads of a batch, up to the first mark
    of damage."""

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
        kinds = tf.int64, tf.string
        numbers, payloads = tf.numpy_function(read, [element], kinds)
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
"""Record numbers are kept for this many batches. If more batches are lost, the error lists only the
kept numbers."""

WhyLost = Callable[[list[int], bool], str]
"""Returns why records are missing. The arguments are the record numbers, and True if a whole batch
is lost."""


def checked_map(
    groups: tf.data.Dataset, function: Callable[..., Any], why: WhyLost
) -> tf.data.Dataset:
    """Apply a function to batches of numbers and payloads, up to the first mark of damage."""
    data, int64 = tf.data, tf.int64

    def chained(state: Any, element: Any) -> tuple[Any, Any]:
        at, before, sizes = state
        numbers, payloads = element
        # The batches that may turn out to be lost when the next batch arrives.
        sizes = tf.concat([sizes[-_REMEMBERED + 1 :], [tf.size(numbers)]], 0)
        kept = tf.concat([before, numbers], 0)[-tf.reduce_sum(sizes) :]
        return (at + 1, kept, sizes), (at, before, numbers, payloads)

    def applied(at: Any, before: Any, numbers: Any, payloads: Any) -> tuple[Any, ...]:
        marks = tf.cast(tf.concat([numbers < 0, [True]], 0), tf.int32)
        sound = tf.argmax(marks, output_type=tf.int32)
        return at, before, numbers, sound, function(numbers[:sound], payloads[:sound])

    def described(lost: Any, numbers: Any) -> str:
        return why([int(each) for each in numbers], bool(lost))

    def followed(state: Any, element: Any) -> tuple[Any, Any]:
        expected, marked = state
        at, before, numbers, sound, values = element
        is_marked = tf.size(marked) > 0
        lost = tf.logical_and(at != expected, tf.logical_not(is_marked))
        chosen = tf.cond(is_marked, lambda: marked, lambda: before)
        check = tf.cond(
            tf.logical_or(lost, is_marked), lambda: _stop(described, lost, chosen), tf.no_op
        )
        with tf.control_dependencies([check]):
            following = tf.identity(at + 1), numbers[sound:]
            return following, (tf.cast(sound, int64), values)

    zero = tf.constant(0, int64)
    none = tf.constant([], int64)
    # An empty batch after the last one, so that a missing last batch is noticed.
    end = data.Dataset.from_tensors((none, tf.constant([], tf.string)))
    return (
        groups.concatenate(end)
        .scan((zero, none, tf.constant([], tf.int32)), plain(chained))
        # In order, whatever the dataset's options say: the numbers have to be consecutive.
        .map(plain(applied), num_parallel_calls=data.AUTOTUNE, deterministic=True)
        .ignore_errors()
        .scan((zero, none), plain(followed))
    )


def _stop(why: Callable[..., str], *arguments: Any) -> Any:
    problem = tf.py_function(why, arguments, tf.string)
    # A Python exception would show lines of TensorFlow in between.
    return tf.debugging.Assert(tf.constant(value=False), [problem])

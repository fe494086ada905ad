"""Batches of records in a `tf.data` graph, of which none is lost without a word.

TensorFlow's error of a record names neither shard nor record, and a shard that ends early is no
error at all. So errors are taken out of the stream, each batch carries the number of its first
record, and where the numbers do not follow each other Python looks for the reason and says it. An
epoch that is sound never leaves the graph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tfrecreg.example import decode_or_none
from tfrecreg.operations.load_records import SplitRecords
from tfrecreg.text import safe

if TYPE_CHECKING:
    import tensorflow as tf

__all__ = ["read_records"]

_BATCH = 256
"""Examples are parsed by so many at once: one at a time costs about ten times as much."""


def read_records(
    tensorflow: Any,
    records: SplitRecords,
    compression: str,
    parse: Callable[[Any], Any],
) -> tf.data.Dataset:
    """What `parse` makes of every record, in order, one element a record.

    Args:
        tensorflow: the module.
        records: of the split.
        compression: of its shards, as a manifest says it.
        parse: of a batch of payloads, a tensor of strings.
    """
    data = tensorflow.data
    kind = "GZIP" if compression == "gzip" else ""

    def of_shard(pattern: Any, start: Any, stop: Any) -> tf.data.Dataset:
        # A file that is gone meanwhile is no error but no file: errors are passed over below, and
        # TensorFlow would try to open it for ever.
        paths = tensorflow.io.matching_files(pattern)
        payloads = data.TFRecordDataset(paths, compression_type=kind).ignore_errors()
        firsts = data.Dataset.range(start, tensorflow.int64.max, _BATCH)
        stops = data.Dataset.from_tensors(stop).repeat()
        return data.Dataset.zip((firsts, stops, payloads.batch(_BATCH)))

    def parsed(first: Any, stop: Any, payloads: Any) -> tuple[Any, Any, Any, Any]:
        return first, first + tensorflow.size(payloads, tensorflow.int64), stop, parse(payloads)

    def why_not(expected: Any, first: Any, stop: Any) -> str:
        if first == expected:
            return records.why_more(int(stop) - 1)
        return records.why_not(int(expected), problem)

    def problem(payload: bytes) -> str:
        try:
            parse(tensorflow.constant([payload]))
        except (tensorflow.errors.OpError, UnicodeError) as error:
            if decode_or_none(payload) is None:
                return "it is no `tf.train.Example`"
            return safe(re.sub(r"\{\{.*\}\} |Name: [^,]*, ", "", str(error)), limit=500)
        return ""

    def followed(expected: Any, element: tuple[Any, Any, Any, Any]) -> tuple[Any, Any]:
        first, end, stop, values = element
        check = tensorflow.cond(
            tensorflow.logical_and(tensorflow.equal(first, expected), end <= stop),
            tensorflow.no_op,
            lambda: _stop(tensorflow, why_not, expected, first, stop),
        )
        with tensorflow.control_dependencies([check]):
            return tensorflow.identity(end), values

    def numbers(values: Sequence[int]) -> Any:
        return tensorflow.constant(list(values), tensorflow.int64)

    shards = data.Dataset.from_tensor_slices(
        (
            tensorflow.constant([_literal(path) for path in records.paths], tensorflow.string),
            numbers(records.starts[:-1]),
            numbers(records.starts[1:]),
        )
    )
    # What comes behind the last record, so that its absence shows.
    end = data.Dataset.from_tensors(
        (*numbers([records.total] * 2), tensorflow.constant([], tensorflow.string))
    )
    numbered = (
        shards.flat_map(_plain(tensorflow, of_shard))
        .concatenate(end)
        # In order, whatever the options of the dataset say: the numbers have to follow each other.
        .map(_plain(tensorflow, parsed), num_parallel_calls=data.AUTOTUNE, deterministic=True)
        .ignore_errors()
        .scan(tensorflow.constant(0, tensorflow.int64), _plain(tensorflow, followed))
    )
    options = data.Options()
    # Of several workers each would read some of the files, and miss the records of the others.
    options.experimental_distribute.auto_shard_policy = data.experimental.AutoShardPolicy.DATA
    # The one call of Python has no state that a checkpoint of an iterator would have to hold.
    options.experimental_external_state_policy = data.experimental.ExternalStatePolicy.IGNORE
    total = data.experimental.assert_cardinality(records.total)
    return numbered.unbatch().apply(total).with_options(options)


def _stop(tensorflow: Any, why: Callable[[Any, Any, Any], str], *numbers: Any) -> Any:
    problem = tensorflow.py_function(why, numbers, tensorflow.string)
    # An exception of Python would come with the lines of TensorFlow that it went through.
    return tensorflow.debugging.Assert(tensorflow.constant(value=False), [problem])


def _plain(tensorflow: Any, function: Callable[..., Any]) -> Any:
    """Nothing here needs AutoGraph, which warns of functions whose source it does not find."""
    return tensorflow.autograph.experimental.do_not_convert(function)


def _literal(path: bytes) -> bytes:
    """A pattern that matches this path only."""
    return re.sub(rb"([*?\[\\])", rb"\\\1", path)

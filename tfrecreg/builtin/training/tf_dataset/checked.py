"""A map over batches of records whose errors name shard, record and key.

Sound batches pay nothing for it: a batch that fails is dropped, which leaves a gap in the numbers
of the batches, and only then its records are looked at one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tfrecreg.builtin.training.tf_dataset.plain import plain

if TYPE_CHECKING:
    import tensorflow as tf

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

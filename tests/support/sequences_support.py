"""SequenceExamples as TensorFlow writes them: videos with a context and lists of steps."""

from __future__ import annotations

import builtins
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfrecreg.core.schema.compiled import tf_source
from tfrecreg.core.schema.definition import Schema


def feature_spec(tf: Any, schema: Schema) -> dict[str, Any]:
    """What the printed source defines."""
    space: dict[str, Any] = {"tf": tf, "__builtins__": builtins}
    exec(tf_source(schema), space)
    found: dict[str, Any] = space["FEATURES"]
    return found


Values = Sequence[Any] | None
"""The values of a feature; None for one whose kind is not set."""

SCHEMA = """
feature { name: "id" type: BYTES presence { min_fraction: 1 } shape {} }
feature { name: "labels" type: INT presence { min_fraction: 1 } value_count { min: 1 } }
feature {
  name: "##SEQUENCE##"
  type: STRUCT
  struct_domain {
    feature {
      name: "action"
      type: INT
      presence { min_fraction: 1 }
      value_counts { value_count { min: 1 } value_count { min: 1 max: 1 } }
    }
    feature {
      name: "rgb"
      type: FLOAT
      presence { min_fraction: 1 }
      value_counts { value_count { min: 1 } value_count { min: 4 max: 4 } }
    }
    feature {
      name: "frame"
      type: BYTES
      value_counts { value_count { min: 0 } value_count { min: 1 max: 1 } }
    }
    feature {
      name: "tokens"
      type: INT
      value_counts { value_count { min: 0 } value_count { min: 0 } }
    }
  }
}
"""
"""Of the records that :func:`video` makes."""


def tf_specs(tf: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the schema says, written by hand for `tf.io.parse_sequence_example`."""
    context = {
        "id": tf.io.FixedLenFeature([], tf.string),
        "labels": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    }
    lists = {
        "action": tf.io.FixedLenSequenceFeature([], tf.int64),
        "rgb": tf.io.FixedLenSequenceFeature([4], tf.float32),
        "frame": tf.io.FixedLenSequenceFeature([], tf.string, allow_missing=True),
        "tokens": tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64),
    }
    return context, lists


def _fill(feature: Any, values: Values) -> None:
    if values is not None:
        first = values[0] if len(values) else 0
        target = feature.int64_list
        if isinstance(first, bytes | float | np.floating):
            target = feature.bytes_list if isinstance(first, bytes) else feature.float_list
        target.SetInParent()
        target.value.extend(values)


def tf_sequence(
    tf: Any, context: Mapping[str, Values], lists: Mapping[str, Sequence[Values]]
) -> bytes:
    made = tf.train.SequenceExample()
    for name, values in context.items():
        _fill(made.context.feature[name], values)
    made.feature_lists.SetInParent()
    for name, steps in lists.items():
        target = made.feature_lists.feature_list[name]
        for values in steps:
            _fill(target.feature.add(), values)
    return bytes(made.SerializeToString())


def video_steps(number: int) -> tuple[dict[str, Values], dict[str, list[Values]]]:
    """Context and lists of one record. Some have no `frame`, and steps of `tokens` vary."""
    rng = random.Random(number)
    steps = rng.randint(1, 6)
    context: dict[str, Values] = {
        "id": [f"video{number}".encode()],
        "labels": [rng.randrange(5) for _ in range(rng.randint(1, 3))],
    }
    lists: dict[str, list[Values]] = {
        "action": [[rng.randrange(3)] for _ in range(steps)],
        "rgb": [[rng.random() for _ in range(4)] for _ in range(steps)],
        "tokens": [[rng.randrange(9) for _ in range(rng.randint(0, 3))] for _ in range(steps)],
    }
    if number % 3:
        lists["frame"] = [[rng.randbytes(rng.randint(0, 9))] for _ in range(steps)]
    return context, lists


def video(tf: Any, number: int) -> bytes:
    return tf_sequence(tf, *video_steps(number))

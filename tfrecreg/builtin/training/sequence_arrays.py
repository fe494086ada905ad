"""From SequenceExamples to NumPy: context and lists by their names.

A feature of the context is what a feature of an Example is. A list is an array whose first side is
its steps, if the schema gives all steps one shape; else a list of arrays, one for each step.
Without a schema, all lists are lists of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrecreg.builtin.training.arrays import (
    KIND_WORDS,
    ArrayColumn,
    ExampleReader,
    columns_of,
    empty,
    misfit,
    shaped,
    values_of,
)
from tfrecreg.builtin.training.elements import BlockReader, Elements
from tfrecreg.core.example.kinds import SequenceExample, decode_sequence
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.example.sequences import (
    ListRule,
    common_names,
    compile_sequences,
    has_lists_field,
    read_sequence,
)
from tfrecreg.core.schema.definition import SEQUENCE, Schema
from tfrecreg.core.values.errors import RefusedError
from tfrecreg.core.values.text import safe

_DTYPES: dict[Kind, Any] = {Kind.BYTES: object, Kind.INT64: np.int64}


def columns_of_sequences(schema: Schema) -> tuple[ArrayColumn, ...]:
    """The columns of the context and of the lists, in order of their names."""
    lists = [_column(each, each.kind) for each in compile_sequences(schema).lists if each.kind]
    context = [each for each in columns_of(schema) if each.name != SEQUENCE]
    return tuple(sorted([*context, *lists], key=lambda column: column.name))


def image_lists(schema: Schema) -> list[str]:
    """Names of the lists that hold encoded images."""
    return [each.name for each in compile_sequences(schema).lists if each.feature.is_image]


def _column(rule: ListRule, kind: Kind) -> ArrayColumn:
    shape = (-1,) if rule.step_shape is None else rule.step_shape
    return ArrayColumn(
        rule.name, int(kind), (-1, *shape), False, is_list=True, is_required=rule.is_required
    )


def reader_of(elements: Elements) -> Callable[[bytes], dict[str, Any]]:
    """What makes the element of a payload. Picklable."""
    if elements.sequence:
        return SequenceReader(elements.columns or ())
    example = ExampleReader(elements.columns)
    return example if elements.columns is not None else EitherReader(example)


def block_reader_of(
    elements: Elements,
) -> Callable[[Sequence[bytes]], list[dict[str, Any] | None]]:
    """What makes the elements of payloads that are read together, None for those to read one by
    one.
    """
    return _none if elements.sequence else BlockReader(elements.columns)


def _none(payloads: Sequence[bytes]) -> list[dict[str, Any] | None]:
    return [None] * len(payloads)


class EitherReader:
    """Makes elements of Examples and of SequenceExamples, without a schema. Picklable."""

    def __init__(self, example: ExampleReader) -> None:
        self._example = example

    def __call__(self, payload: bytes) -> dict[str, Any]:
        """The element of a payload."""
        try:
            example = self._example(payload)
        except RefusedError:
            sequence = decode_sequence(payload)
            if sequence is None:
                raise
        else:
            if not has_lists_field(payload):
                return example
            raise RefusedError(
                "is not a `tf.train.Example`: it has lists, which do not parse as a "
                "SequenceExample's",
                hint="`raw=True` gives payloads as they are",
            )
        _expect_apart(sequence)
        found: dict[str, Any] = {
            name: values_of(feature)
            for name, feature in sequence.context.items()
            if feature.kind is not Kind.UNSET
        }
        found |= {name: _untyped(steps) for name, steps in sequence.lists.items()}
        return dict(sorted(found.items()))


class SequenceReader:
    """Makes elements of SequenceExamples by a schema. Picklable."""

    def __init__(self, columns: Sequence[ArrayColumn]) -> None:
        self._columns = columns

    def __call__(self, payload: bytes) -> dict[str, Any]:
        """The element of a payload."""
        sequence = read_sequence(payload)
        if sequence is None:
            raise RefusedError(
                "is not a `tf.train.SequenceExample`", hint="`raw=True` gives payloads as they are"
            )
        _expect_apart(sequence)
        return {
            column.name: _stepped(column, sequence.lists.get(column.name))
            if column.is_list
            else shaped(column, sequence.context)
            for column in self._columns
        }


def _expect_apart(sequence: SequenceExample) -> None:
    if common := common_names(sequence):
        raise RefusedError(
            f"has `{safe(common[0])}` in its context and among its lists, and an element has one "
            "value for each name",
            hint="`raw=True` gives payloads as they are, for `tf.io.parse_sequence_example`",
        )


def _stepped(column: ArrayColumn, steps: Sequence[Feature] | None) -> Any:
    if steps is None:
        if column.is_required:
            raise misfit(column, "it lacks the list")
        steps = ()
    kind = Kind(column.kind)
    for number, step in enumerate(steps):
        if step.kind is not kind and not (step.kind is Kind.UNSET and column.is_ragged):
            raise misfit(column, f"found {_word(step)} in step {number}")
    if column.is_ragged:
        return [_values(step, kind) for step in steps]
    if not steps:
        return empty(column)
    size = int(np.prod(column.shape[1:], dtype=np.int64))
    for number, step in enumerate(steps):
        if step.count != size:
            raise misfit(column, f"found {step.count} values in step {number}")
    return np.concatenate([values_of(step) for step in steps]).reshape(
        len(steps), *column.shape[1:]
    )


def _word(step: Feature) -> str:
    return KIND_WORDS.get(step.kind, "no values of any kind")


def _values(step: Feature, kind: Kind) -> Any:
    if step.kind is Kind.UNSET:
        return np.empty(0, _DTYPES.get(kind, np.float32))
    return values_of(step)


def _untyped(steps: Sequence[Feature]) -> list[Any]:
    """A list without a schema: a step without a kind is empty, of the kind of the others."""
    kind = next((each.kind for each in steps if each.kind is not Kind.UNSET), Kind.FLOAT)
    return [_values(step, kind) for step in steps]

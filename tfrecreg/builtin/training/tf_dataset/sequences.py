"""SequenceExamples in a graph: one `tf.io.parse_sequence_example` a batch, lists as ragged tensors.

A list whose steps have one shape is ragged in its steps alone; one whose steps differ in length is
ragged twice. The context is parsed as an Example, which it is by its bytes: of a batch without
records, `tf.io.parse_sequence_example` refuses a context of fixed shape (TensorFlow 2.16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tfrecreg.core.example.sequences import compile_sequences, read_sequence
from tfrecreg.core.schema.compiled import TensorSpec, tensor_specs
from tfrecreg.core.schema.definition import SEQUENCE, Schema
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_DTYPES: dict[str, Literal["string", "int64", "float32"]] = {
    "BYTES": "string",
    "INT": "int64",
    "FLOAT": "float32",
}


@dataclass(frozen=True, slots=True)
class ListSpec(TensorSpec):
    """Parsing rule of a list: of the ragged form."""

    is_fixed: bool = False
    """Whether each step has the shape."""
    is_required: bool = False
    """Whether a record without it is an error; only of those with a shape."""


def all_specs(schema: Schema) -> tuple[TensorSpec, ...]:
    """The specifications of features, and of lists where the schema describes SequenceExamples."""
    if not schema.describes_sequences():
        return tensor_specs(schema)
    others = tuple(each for each in schema.features if each.name != SEQUENCE)
    found: list[TensorSpec] = list(tensor_specs(replace(schema, features=others)))
    for rule in compile_sequences(schema).lists:
        dtype = _DTYPES.get(rule.feature.kind or "")
        if dtype is not None:
            shape = rule.step_shape
            is_fixed = shape is not None
            found.append(
                ListSpec(rule.name, "ragged", dtype, shape or (), is_fixed, rule.is_required)
            )
    return tuple(sorted(found, key=lambda each: each.name))


def expect_paddable(specs: Mapping[str, TensorSpec], padded: Mapping[str, int]) -> None:
    """Refuse a length for a list that has no single one."""
    for name in padded:
        spec = specs[name]
        if isinstance(spec, ListSpec) and not spec.is_fixed:
            raise UsageError(
                f"the steps of `{safe(name)}` differ in length, so one length cannot pad it",
                hint='`pad_to="longest"` pads steps and values; or leave it out of `features`',
            )


class ListParser:
    """Parses the lists of a batch of payloads."""

    def __init__(self, tensorflow: Any, lists: Sequence[ListSpec]) -> None:
        self._tf = tensorflow
        self._lists = lists
        self._spec = {each.name: self._feature(each) for each in lists}

    def __call__(self, payloads: Any) -> dict[str, Any]:
        """The lists by name."""
        _, lists, lengths = self._tf.io.parse_sequence_example(
            payloads, sequence_features=self._spec
        )
        for each in self._lists:
            if each.is_fixed:
                lists[each.name] = self._tf.RaggedTensor.from_tensor(
                    lists[each.name], lengths[each.name], row_splits_dtype=self._tf.int64
                )
        found: dict[str, Any] = lists
        return found

    def _feature(self, spec: ListSpec) -> Any:
        dtype = getattr(self._tf, spec.dtype)
        if not spec.is_fixed:
            return self._tf.io.RaggedFeature(dtype, row_splits_dtype=self._tf.int64)
        return self._tf.io.FixedLenSequenceFeature(
            list(spec.shape), dtype, allow_missing=not spec.is_required
        )


def why_no_sequence(payload: bytes) -> str:
    """Why a payload is no SequenceExample; empty if it is one."""
    return "" if read_sequence(payload) is not None else "it is not a `tf.train.SequenceExample`"

"""Bytes to a `tf.train.SequenceExample`: a context, and lists of features step by step.

The messages are those of TensorFlow's `example.proto` and `feature.proto`: `SequenceExample` has
`Features context = 1` and `FeatureLists feature_lists = 2`, a map from a name to a `FeatureList`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tfrecreg.example.model import Feature, NotAnExampleError
from tfrecreg.example.payload import ValueReader, fields, merge
from tfrecreg.example.varint import varint

__all__ = ["SequenceExample", "decode_sequence"]

_CONTEXT, _LISTS = (1, 2), (2, 2)
_ENTRY = _STEP = _KEY = (1, 2)
_VALUE = (2, 2)

# How deep groups may nest; what has any is refused anyway, for they are unknown fields.
_DEPTH = 95


class SequenceExample(NamedTuple):
    """A decoded `tf.train.SequenceExample`. The features hold on to the payload."""

    context: Mapping[str, Feature]
    """What holds for the whole sequence."""
    lists: Mapping[str, tuple[Feature, ...]]
    """By name, a feature a step."""


class _Strange(Exception):
    """There is a field that the message does not have."""


def decode_sequence(payload: bytes) -> SequenceExample | None:
    """`payload` as a SequenceExample that has feature lists; None for anything else.

    Without lists its bytes are those of an Example, which it then is taken for. Unknown fields
    speak against it, as nearly any message parses as nearly any other but for these.
    """
    context = bytearray()
    lists: dict[str, list[Feature]] | None = None
    try:
        for tag, start, end in fields(payload, 0, len(payload), _DEPTH):
            if tag == _LISTS:
                lists = {} if lists is None else lists
                _read_lists(payload, start, end, lists)
            elif tag == _CONTEXT:
                # Its bytes are those of an Example's only field, and pieces of it are merged.
                context += payload[start:end]
            else:
                return None
        if lists is None:
            return None
        features, unknown = merge(b"\n" + varint(len(context)) + context)
    except (NotAnExampleError, _Strange):
        return None
    return None if unknown else SequenceExample(features, {k: tuple(v) for k, v in lists.items()})


def _read_lists(payload: bytes, start: int, end: int, lists: dict[str, list[Feature]]) -> None:
    for tag, first, last in fields(payload, start, end, _DEPTH):
        if tag != _ENTRY:
            raise _Strange
        name = ""
        steps: list[Feature] = []
        for inner, begin, stop in fields(payload, first, last, _DEPTH):
            if inner == _KEY:
                name = _text(payload[begin:stop])
            elif inner == _VALUE:
                _read_steps(payload, begin, stop, steps)
            else:
                raise _Strange
        lists[name] = steps


def _read_steps(payload: bytes, start: int, end: int, steps: list[Feature]) -> None:
    for tag, first, last in fields(payload, start, end, _DEPTH):
        if tag != _STEP:
            raise _Strange
        reader = ValueReader(payload)
        reader.add(first, last)
        if reader.unknown:
            raise _Strange
        steps.append(reader.feature())


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise _Strange from None

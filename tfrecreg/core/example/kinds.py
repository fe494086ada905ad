"""The kind of a payload: an Example, a SequenceExample, an event, or something else.

TFRecords do not declare the type of their payloads. A protobuf message often also parses as another
type, but then all of its fields are unknown. So the kinds are distinguished by the fields that a
message must have and must not have:

- an **Example** parses as an Example. It has at least one feature, or it is empty;
- a **SequenceExample** parses as a SequenceExample, with feature lists and without unknown fields.
  A SequenceExample without lists has the same bytes as an Example, so it counts as an Example.
  TensorFlow Ranking's `ExampleListWithContext` has the same field numbers, so it counts as a
  SequenceExample if the bytes of its features are valid as names;
- an **event** is an entry in TensorBoard's logs. It has a time, content, and possibly a step;
- everything else is **other**, for example other messages, images, text or JSON.

TensorFlow's `example.proto` and `feature.proto` define the messages: `SequenceExample` has
`Features context = 1` and `FeatureLists feature_lists = 2`, a map from a name to a `FeatureList`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from tfrecreg.core.example.decode import FeatureReader, decode_fully, decode_or_none
from tfrecreg.core.example.model import (
    DELIMITED,
    FIXED64,
    VARINT,
    Example,
    Feature,
    fields,
    read_varint,
    varint,
)

_CONTEXT, _LISTS = (1, 2), (2, 2)
_ENTRY = _STEP = _KEY = (1, 2)
_VALUE = (2, 2)

# Maximum depth of groups; payloads with groups are refused in any case, because groups are unknown
# fields.
_SEQUENCE_DEPTH = 95


class SequenceExample(NamedTuple):
    """A decoded `tf.train.SequenceExample`. The features reference the payload."""

    context: Mapping[str, Feature]
    """Features of the whole sequence."""
    lists: Mapping[str, tuple[Feature, ...]]
    """The lists by name. A list has one feature per step."""


def decode_sequence(payload: bytes) -> SequenceExample | None:
    """Decode a SequenceExample with lists and without unknown fields; None for other payloads."""
    context = bytearray()
    lists: dict[str, list[Feature]] | None = None
    try:
        for tag, start, end in fields(payload, 0, len(payload), _SEQUENCE_DEPTH):
            if tag == _LISTS:
                lists = {} if lists is None else lists
                _read_lists(payload, start, end, lists)
            elif tag == _CONTEXT:
                # The context has the same bytes as an Example's only field; its pieces are merged.
                context += payload[start:end]
            else:
                return None
        if lists is None:
            return None
        features, unknown = decode_fully(b"\n" + varint(len(context)) + context)
    except ValueError:  # also a name that is not UTF-8
        return None
    return None if unknown else SequenceExample(features, {k: tuple(v) for k, v in lists.items()})


def _read_lists(payload: bytes, start: int, end: int, lists: dict[str, list[Feature]]) -> None:
    for tag, first, last in fields(payload, start, end, _SEQUENCE_DEPTH):
        if tag != _ENTRY:
            raise ValueError("an unknown field")
        name = ""
        steps: list[Feature] = []
        for inner, begin, stop in fields(payload, first, last, _SEQUENCE_DEPTH):
            if inner == _KEY:
                name = payload[begin:stop].decode()
            elif inner == _VALUE:
                _read_steps(payload, begin, stop, steps)
            else:
                raise ValueError("an unknown field")
        lists[name] = steps


def _read_steps(payload: bytes, start: int, end: int, steps: list[Feature]) -> None:
    for tag, first, last in fields(payload, start, end, _SEQUENCE_DEPTH):
        if tag != _STEP:
            raise ValueError("an unknown field")
        reader = FeatureReader(payload)
        reader.add(first, last)
        if reader.unknown:
            raise ValueError("an unknown field")
        steps.append(reader.feature())


class PayloadKind(str, Enum):
    """The kind of a payload. The values never change, because reports contain them."""

    EXAMPLE = "example"
    SEQUENCE_EXAMPLE = "sequence_example"
    EVENT = "event"
    OTHER = "other"

    def counted(self, number: int) -> str:
        """The number with the kind's name: ``1 Example``, ``3 events``, ``2 of other kinds``."""
        if self is PayloadKind.OTHER:
            return f"{number:,} of another kind" if number == 1 else f"{number:,} of other kinds"
        return f"{number:,} {self.plural if number != 1 else self.plural[:-1]}"

    @property
    def plural(self) -> str:
        return _PLURALS[self]


_PLURALS = {
    PayloadKind.EXAMPLE: "Examples",
    PayloadKind.SEQUENCE_EXAMPLE: "SequenceExamples",
    PayloadKind.EVENT: "events",
    PayloadKind.OTHER: "payloads of other kinds",
}


# `Event` of TensorFlow's event.proto: the wire type of each field.
_WALL_TIME, _EVENT_STEP, _FILE_VERSION = 1, 2, 3
_EVENT = {
    _WALL_TIME: FIXED64,
    _EVENT_STEP: VARINT,
    **dict.fromkeys(range(_FILE_VERSION, 11), DELIMITED),
}
_EVENT_DEPTH = 100


def payload_kind(payload: bytes) -> PayloadKind:
    """The kind of `payload`. Time and memory are at most proportional to its length."""
    return kind_of(payload, 0, len(payload), decode_or_none(payload))


def kind_of(memory: bytes, start: int, length: int, example: Example | None) -> PayloadKind:
    """Like :func:`payload_kind`, for a payload that is already decoded."""
    # Nearly all records have a single field 1, of bytes, that contains features.
    if example and memory[start] == 0x0A:
        size, position = read_varint(memory, start + 1, start + length)
        if position + size == start + length:
            return PayloadKind.EXAMPLE
    payload = memory[start : start + length]
    if example is not None and not payload.replace(b"\n\x00", b""):
        return PayloadKind.EXAMPLE
    if decode_sequence(payload) is not None:
        return PayloadKind.SEQUENCE_EXAMPLE
    if example:
        return PayloadKind.EXAMPLE
    return PayloadKind.EVENT if _is_event(payload) else PayloadKind.OTHER


def _is_event(payload: bytes) -> bool:
    seen: set[int] = set()
    try:
        for (number, wire), start, end in fields(payload, 0, len(payload), _EVENT_DEPTH):
            if _EVENT.get(number) != wire:
                return False
            if number == _FILE_VERSION:
                payload[start:end].decode()
            seen.add(number)
    except ValueError:
        return False
    return _WALL_TIME in seen and bool(seen - {_WALL_TIME, _EVENT_STEP})

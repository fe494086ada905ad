"""What the payload of a record is: an Example, a SequenceExample, an event, or something else.

TFRecords say nothing of what is in them. Protobuf is little help: a message of one type often
parses as another whose fields are all unknown, so what is told apart here is told by the fields
that a message has, and by those that it may not have:

- an **Example** parses as one, and has at least one feature, or is empty;
- a **SequenceExample** parses as one, has feature lists and no field besides its two. One without
  lists has the bytes of an Example. `ExampleListWithContext` of TensorFlow Ranking has fields of
  the same numbers: where its features happen to parse as names, it is taken for one;
- an **event** is a line of TensorBoard's logs: a time, perhaps a step, and one thing that happened;
- everything else is **other**: other messages, pictures, text, JSON.
"""

from __future__ import annotations

from enum import Enum

from tfrecreg.example.decode import decode_or_none
from tfrecreg.example.model import Example, NotAnExampleError
from tfrecreg.example.payload import fields
from tfrecreg.example.sequence import decode_sequence

__all__ = ["PayloadKind", "kind_of", "payload_kind"]


class PayloadKind(str, Enum):
    """What a payload is. The values are names in reports: they never change."""

    EXAMPLE = "example"
    SEQUENCE_EXAMPLE = "sequence_example"
    EVENT = "event"
    OTHER = "other"

    def counted(self, number: int) -> str:
        """So many of them, for people: ``1 Example``, ``3 events``, ``2 of other kinds``."""
        if self is PayloadKind.OTHER:
            return f"{number:,} of another kind" if number == 1 else f"{number:,} of other kinds"
        return f"{number:,} {self.plural if number != 1 else self.plural[:-1]}"

    @property
    def plural(self) -> str:
        """Many of them, for people."""
        return _PLURALS[self]


_PLURALS = {
    PayloadKind.EXAMPLE: "Examples",
    PayloadKind.SEQUENCE_EXAMPLE: "SequenceExamples",
    PayloadKind.EVENT: "events",
    PayloadKind.OTHER: "payloads of other kinds",
}

_VARINT, _FIXED64, _DELIMITED = 0, 1, 2

# `Event` of TensorFlow's event.proto: the wire type of each field.
_WALL_TIME, _STEP, _FILE_VERSION = 1, 2, 3
_EVENT = {
    _WALL_TIME: _FIXED64,
    _STEP: _VARINT,
    **dict.fromkeys(range(_FILE_VERSION, 11), _DELIMITED),
}
_DEPTH = 100


def payload_kind(payload: bytes) -> PayloadKind:
    """What `payload` is. In time and memory that its length bounds, whatever is in it."""
    return kind_of(payload, 0, len(payload), decode_or_none(payload))


def kind_of(memory: bytes, start: int, length: int, example: Example | None) -> PayloadKind:
    """As :func:`payload_kind`, for a payload that was decoded already.

    Args:
        memory: holds it.
        start: where it starts there.
        length: its bytes.
        example: what :func:`tfrecreg.example.decode_or_none` makes of it.
    """
    # Nearly all records there are: a single field 1, and features in it.
    if example and _is_one_field(memory, start, length):
        return PayloadKind.EXAMPLE
    payload = memory[start : start + length]
    if example is not None and not payload.replace(b"\n\x00", b""):
        return PayloadKind.EXAMPLE
    if decode_sequence(payload) is not None:
        return PayloadKind.SEQUENCE_EXAMPLE
    if example:
        return PayloadKind.EXAMPLE
    return PayloadKind.EVENT if _is_event(payload) else PayloadKind.OTHER


def _is_one_field(memory: bytes, start: int, length: int) -> bool:
    """Whether all of a payload is one field of the number 1 that holds bytes."""
    if not length or memory[start] != 0x0A:
        return False
    size = shift = 0
    for position in range(1, min(length, 11)):
        byte = memory[start + position]
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return position + 1 + size == length
    return False


def _is_event(payload: bytes) -> bool:
    seen: set[int] = set()
    try:
        for (number, wire), start, end in fields(payload, 0, len(payload), _DEPTH):
            if _EVENT.get(number) != wire:
                return False
            if number == _FILE_VERSION:
                payload[start:end].decode()
            seen.add(number)
    except (NotAnExampleError, UnicodeDecodeError):
        return False
    return _WALL_TIME in seen and bool(seen - {_WALL_TIME, _STEP})

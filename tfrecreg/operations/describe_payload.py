"""What `head` shows of payloads that are not Examples.

SequenceExamples by context and lists, text as text, and other protobuf messages (TensorBoard's
events among them) field by field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from tfrecreg.example import Feature, NotAnExampleError, bytes_feature
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.example.payload import fields
from tfrecreg.example.sequence import decode_sequence
from tfrecreg.text import safe

__all__ = ["ShownPart", "describe_payload"]

_STEPS = 4
"""Steps shown of a list."""
_PARTS = 8
"""Fields shown of a message."""
_DEPTH = 100
_TEXT_LIMIT = 1 << 16
"""Largest payload that is tried as text, in bytes."""

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_WIRES = {_VARINT: "varint", _FIXED64: "fixed64", _DELIMITED: "bytes", _FIXED32: "fixed32"}

_Values = Callable[[Feature], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """One part of a payload, described. Every string is escaped."""

    part: str
    """``context`` or ``list`` of a SequenceExample, ``text`` or ``field``."""
    name: str
    """Name of the feature or list, or number of the field; empty for a text."""
    kind: str
    """``bytes``, ``float``, ``int64`` or ``text``; of a field, its wire type."""
    count: int
    """Values of a feature, steps of a list, bytes of anything else."""
    shown: str
    """The content, shortened."""


def describe_payload(
    payload: bytes, kind: PayloadKind | None, values: _Values
) -> tuple[ShownPart, ...]:
    """Describe the parts of a payload; empty for an Example and for a payload that does not parse.

    Args:
        payload: the payload.
        kind: its kind.
        values: formats the values of a feature.
    """
    if kind is PayloadKind.SEQUENCE_EXAMPLE:
        return tuple(_sequence(payload, values))
    if kind in (PayloadKind.EVENT, PayloadKind.OTHER):
        return _text(payload, values) or _message(payload, values)
    return ()


def _sequence(payload: bytes, values: _Values) -> Iterator[ShownPart]:
    sequence = decode_sequence(payload)
    if sequence is None:
        return
    for name, feature in sorted(sequence.context.items()):
        kind = feature.kind.name.lower()
        yield ShownPart(
            part="context", name=safe(name), kind=kind, count=feature.count, shown=values(feature)
        )
    for name, steps in sorted(sequence.lists.items()):
        kinds = sorted({step.kind.name.lower() for step in steps})
        shown = " ".join(f"[{values(step)}]" for step in steps[:_STEPS])
        more = f" … {len(steps) - _STEPS} more steps" if len(steps) > _STEPS else ""
        yield ShownPart(
            part="list",
            name=safe(name),
            kind=" and ".join(kinds),
            count=len(steps),
            shown=shown + more,
        )


def _text(payload: bytes, values: _Values) -> tuple[ShownPart, ...]:
    """The payload as a text, if it is one that a person would write: no control characters."""
    if len(payload) > _TEXT_LIMIT:
        return ()
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError:
        return ()
    if not text or not all(each.isprintable() or each in "\t\n\r" for each in text):
        return ()
    shown = values(bytes_feature(payload))
    return (ShownPart(part="text", name="", kind="text", count=len(payload), shown=shown),)


def _message(payload: bytes, values: _Values) -> tuple[ShownPart, ...]:
    """The first fields, if the payload is a protobuf message from its first byte to its last."""
    try:
        for _ in fields(payload, 0, len(payload), _DEPTH):
            pass
    except NotAnExampleError:
        return ()
    first = islice(fields(payload, 0, len(payload), _DEPTH), _PARTS)
    return tuple(
        ShownPart(
            part="field",
            name=str(number),
            kind=_WIRES.get(wire, "group"),
            count=end - start,
            shown=_content(payload, wire, start, end, values),
        )
        for (number, wire), start, end in first
    )


def _content(payload: bytes, wire: int, start: int, end: int, values: _Values) -> str:
    if wire == _VARINT:
        return str(_varint(payload, start))
    if wire == _FIXED64:
        return f"{struct.unpack_from('<d', payload, start)[0]:.6g} as a double"
    if wire == _FIXED32:
        return f"{struct.unpack_from('<f', payload, start)[0]:.6g} as a float"
    return values(bytes_feature(payload[start:end])) if wire == _DELIMITED else ""


def _varint(payload: bytes, position: int) -> int:
    """As int64, which is what most fields hold."""
    number = shift = 0
    while True:
        byte = payload[position]
        number |= (byte & 127) << shift
        if byte < 128:
            break
        position += 1
        shift += 7
    number &= 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >> 63 else number

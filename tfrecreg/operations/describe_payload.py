"""What `head` shows of payloads that are no Examples: their parts, by what they are.

SequenceExamples by context and lists, events by what happened, text as text, and other protobuf
messages field by field, for whoever knows their type.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from tfrecreg.example import Feature, NotAnExampleError, bytes_feature
from tfrecreg.example.kinds import PayloadKind
from tfrecreg.example.payload import fields
from tfrecreg.example.sequence import decode_sequence
from tfrecreg.text import safe, si_bytes

__all__ = ["ShownPart", "describe_payload"]

_STEPS = 4
"""So many steps of a list are shown."""
_PARTS = 8
"""So many values of a summary and fields of a message are shown."""
_DEPTH = 100
_TEXT_LIMIT = 1 << 16
"""A payload of more bytes is not tried as text."""

_VARINT, _FIXED64, _DELIMITED, _FIXED32 = 0, 1, 2, 5
_WIRES = {_VARINT: "varint", _FIXED64: "fixed64", _DELIMITED: "bytes", _FIXED32: "fixed32"}

# `Event` in TensorFlow's event.proto, and `Summary.Value` in its summary.proto.
_WALL_TIME, _STEP, _FILE_VERSION, _SUMMARY = 1, 2, 3, 5
_EVENT = {
    4: "graph_def",
    6: "log_message",
    7: "session_log",
    8: "tagged_run_metadata",
    9: "meta_graph_def",
    10: "source_metadata",
}
_TAG, _SIMPLE = 1, 2
_VALUE = {3: "obsolete_old_style_histogram", 4: "image", 5: "histo", 6: "audio", 8: "tensor"}

_Values = Callable[[Feature], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPart:
    """One part of a payload, described. Every string is escaped."""

    part: str
    """``context`` or ``list`` of a SequenceExample, ``event``, ``summary``, ``text`` or
    ``field``."""
    name: str
    """Of the feature, the list or the value; the number of a field; empty for a text."""
    kind: str
    """``bytes``, ``float``, ``int64``; what an event or a value of a summary is; a wire type."""
    count: int
    """Values of a feature, steps of a list, bytes of anything else."""
    shown: str
    """The content, or what it is."""


def describe_payload(
    payload: bytes, kind: PayloadKind | None, values: _Values
) -> tuple[ShownPart, ...]:
    """The parts of a payload; none of an Example, and none of what cannot be read.

    Args:
        payload: the bytes.
        kind: what they are.
        values: puts the values of a feature into words.
    """
    if kind is PayloadKind.SEQUENCE_EXAMPLE:
        return tuple(_sequence(payload, values))
    if kind is PayloadKind.EVENT:
        return tuple(_event(payload))
    if kind is PayloadKind.OTHER:
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


def _event(payload: bytes) -> Iterator[ShownPart]:
    for (number, _), start, end in fields(payload, 0, len(payload), _DEPTH):
        size = end - start
        if number == _SUMMARY:
            yield from _summary(payload, start, end)
            continue
        if number == _WALL_TIME:
            name, shown = "wall_time", _time(struct.unpack_from("<d", payload, start)[0])
        elif number == _STEP:
            name, shown = "step", str(_varint(payload, start))
        elif number == _FILE_VERSION:
            name, shown = "file_version", safe(payload[start:end].decode("utf-8", "replace"))
        else:
            name, shown = _EVENT[number], si_bytes(size)
        yield ShownPart(part="event", name=name, kind="", count=size, shown=shown)


def _summary(payload: bytes, start: int, end: int) -> Iterator[ShownPart]:
    """The values of a summary; where it does not read as one, its size."""
    try:
        found = [
            _summary_value(payload, first, last)
            for (number, wire), first, last in fields(payload, start, end, _DEPTH)
            if (number, wire) == (1, _DELIMITED)
        ]
    except NotAnExampleError:
        size = end - start
        yield ShownPart(part="event", name="summary", kind="", count=size, shown=si_bytes(size))
        return
    yield from found[:_PARTS]
    if len(found) > _PARTS:
        shown = f"… {len(found) - _PARTS} more values"
        yield ShownPart(part="summary", name="", kind="", count=end - start, shown=shown)


def _summary_value(payload: bytes, start: int, end: int) -> ShownPart:
    tag, kind, shown = "", "", ""
    for (number, wire), first, last in fields(payload, start, end, _DEPTH):
        if (number, wire) == (_TAG, _DELIMITED):
            tag = safe(payload[first:last].decode("utf-8", "replace"))
        elif (number, wire) == (_SIMPLE, _FIXED32):
            kind = "simple_value"
            shown = f"{struct.unpack_from('<f', payload, first)[0]:.6g}"
        elif number in _VALUE and wire == _DELIMITED:
            kind, shown = _VALUE[number], si_bytes(last - first)
    return ShownPart(part="summary", name=tag, kind=kind, count=end - start, shown=shown)


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


def _time(seconds: float) -> str:
    """UTC, ISO 8601 to the second; a number that is no time as it is."""
    try:
        found = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.6g}"
    return found.strftime("%Y-%m-%dT%H:%M:%SZ")

"""Protobuf's wire format: varints, and the fields of a message.

A varint has seven bits per byte, lowest first; the top bit is set in all bytes but the last.
Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

VARINT, FIXED64, DELIMITED, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types."""

_ONE_BYTE = tuple(bytes((number,)) for number in range(128))

_CONTINUED = bytes(range(128, 256))
# A last byte of zero is redundant; nine bytes hold 63 bits, so a tenth can only be 1; an eleventh
# is not allowed.
_PADDED = re.compile(rb"[\x80-\xff](?:\x00|[\x80-\xff]{8}[\x02-\xff])")


def varint(number: int) -> bytes:
    """The shortest encoding of `number`, which is at least 0 and below 2^64."""
    if number < 128:
        return _ONE_BYTE[number]
    if number < 16384:
        return bytes((number & 127 | 128, number >> 7))
    return pack_varints((number,))


def pack_varints(numbers: Iterable[int]) -> bytes:
    """The shortest encodings of int64 or uint64 values, concatenated."""
    packed = bytearray()
    append = packed.append
    for number in numbers:
        number &= 0xFFFF_FFFF_FFFF_FFFF
        while number > 127:
            append(number & 127 | 128)
            number >>= 7
        append(number)
    return bytes(packed)


def varint_size(number: int) -> int:
    """Size in bytes of the result of :func:`varint`."""
    return (number.bit_length() + 6) // 7 or 1


def varints(packed: Iterable[int]) -> Iterator[int]:
    """The int64 values of concatenated whole varints; bits above the 64th are dropped."""
    number = shift = 0
    for byte in packed:
        if byte > 127:
            number |= (byte & 127) << shift
            shift += 7
            continue
        number = (number | byte << shift) & 0xFFFF_FFFF_FFFF_FFFF
        yield number - (1 << 64) if number >> 63 else number
        number = shift = 0


def count_minimal(packed: bytes) -> int:
    """Number of varints in `packed`; -1 unless all are whole and minimal."""
    if packed.isascii():
        return len(packed)
    if packed[-1] > 127 or _PADDED.search(packed):
        return -1
    return len(packed.translate(None, _CONTINUED))


class NotAnExampleError(ValueError):
    """The bytes are not a `tf.train.Example`."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(offset, reason)
        self.offset = offset
        self.reason = reason

    def __str__(self) -> str:
        return f"not a tf.train.Example: {self.reason} at byte {self.offset}"


def fields(
    payload: bytes, position: int, end: int, depth: int
) -> Iterator[tuple[tuple[int, int], int, int]]:
    """The fields of a message: (number, wire type), and the offsets where the content starts and
    ends.

    A group is one field, yielded at its end.
    """
    groups: list[int] = []
    while position < end:
        at = position
        tag, position = read_varint(payload, at, end)
        if position - at > 5 or tag > 0xFFFF_FFFF:
            raise NotAnExampleError(at, "a tag of more than 32 bits")
        number, wire = tag >> 3, tag & 7
        if not number:
            raise NotAnExampleError(at, "the field number 0")
        start = position
        if wire == VARINT:
            _, position = read_varint(payload, position, end)
        elif wire == DELIMITED:
            size, start = read_varint(payload, position, end)
            position = start + size
        elif wire == FIXED32:
            position += 4
        elif wire == FIXED64:
            position += 8
        elif wire == START_GROUP:
            groups.append(number)
            if len(groups) > depth:
                raise NotAnExampleError(at, "messages nested more than 100 deep")
        elif wire == END_GROUP:
            if not groups or groups.pop() != number:
                raise NotAnExampleError(at, f"the end of a group {number} that is not open")
        else:
            raise NotAnExampleError(at, f"the wire type {wire}, which does not exist")
        if position > end:
            raise NotAnExampleError(at, f"a field that ends {position - end} bytes too late")
        if not groups:
            yield (number, wire), start, position
    if groups:
        raise NotAnExampleError(end, f"the group {groups[-1]} is not closed")


def read_varint(payload: bytes, position: int, end: int) -> tuple[int, int]:
    """The unsigned 64-bit varint at `position`, further bits dropped, and where it ends."""
    number = shift = 0
    for place in range(position, min(end, position + 10)):
        byte = payload[place]
        if byte < 128:
            return (number | byte << shift) & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        number |= (byte & 127) << shift
        shift += 7
    reason = "a varint of more than 10 bytes" if end - position >= 10 else "a cut varint"
    raise NotAnExampleError(position, reason)

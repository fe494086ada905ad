"""Bytes to examples by all of protobuf's rules, for payloads that the quick way refuses.

What protobuf's own parser (upb, the one below TensorFlow in Python) makes of a payload is the
rule, down to its corners: `docs/formats.md` lists them. The messages nest five deep, so there is
no recursion; groups, which nest as they like, are counted on a list of at most 100.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.example.model import Feature, Kind, NotAnExampleError, packed_feature
from tfrecreg.example.quick import quick_feature
from tfrecreg.example.varint import count_minimal, pack_varints, varint, varints

__all__ = ["ValueReader", "fields", "merge"]

_VARINT, _FIXED64, _DELIMITED, _START_GROUP, _END_GROUP, _FIXED32 = range(6)

# How deep groups may nest in each message: protobuf's 100 levels less those of the messages.
_IN_EXAMPLE, _IN_FEATURES, _IN_ENTRY, _IN_FEATURE, _IN_LIST = range(100, 95, -1)

_MAX_PAYLOAD = 2**31 - 1


def merge(payload: bytes) -> tuple[dict[str, Feature], bool]:
    """The features in `payload`, and whether there are fields unknown to `tf.train.Example`.

    Raises:
        NotAnExampleError: `payload` is malformed.
    """
    if len(payload) > _MAX_PAYLOAD:
        raise NotAnExampleError(_MAX_PAYLOAD, "more than the 2 GiB that protobuf can read")
    features: dict[str, Feature] = {}
    unknown = False
    for tag, start, end in fields(payload, 0, len(payload), _IN_EXAMPLE):
        if tag != (1, _DELIMITED):
            unknown = True
            continue
        for inner, first, last in fields(payload, start, end, _IN_FEATURES):
            if inner != (1, _DELIMITED):
                unknown = True
                continue
            key, feature, strange = _entry(payload, first, last)
            unknown = unknown or strange
            if feature is not None:
                features[key] = feature
    return features, unknown


def _entry(payload: bytes, start: int, end: int) -> tuple[str, Feature | None, bool]:
    """Key, value and whether there were unknown fields; no value where the entry itself has some.

    Such an entry as a whole is an unknown field to upb.
    """
    key = ""
    value = ValueReader(payload)
    strange = False
    for tag, first, last in fields(payload, start, end, _IN_ENTRY):
        if tag == (1, _DELIMITED):
            try:
                key = payload[first:last].decode()
            except UnicodeDecodeError as error:
                raise NotAnExampleError(
                    first + error.start, "a feature key that is not UTF-8"
                ) from None
        elif tag == (2, _DELIMITED):
            value.add(first, last)
        else:
            strange = True
    return key, None if strange else value.feature(), strange or value.unknown


class ValueReader:
    """A `Feature`, which may come in several pieces that protobuf merges: a map entry's value.

    Args:
        payload: what the pieces lie in.
    """

    def __init__(self, payload: bytes) -> None:
        self.unknown = False
        """Whether there were fields that a `Feature` does not have."""
        self._payload = payload
        self._first: Feature | None = None  # the only piece so far, where it is canonical
        self._span = (0, 0)  # of that piece
        self._pieces = 0
        self._kind = 0
        self._count = 0
        self._body = bytearray()

    def add(self, start: int, end: int) -> None:
        """Merge the `Feature` message at `start` to `end`.

        Raises:
            NotAnExampleError: it is malformed.
        """
        self._pieces += 1
        if self._pieces == 1:
            # Large values are left where they are, if what comes before them is canonical too.
            head = b"\x12" + varint(end - start)
            field = start - len(head)
            if self._payload[field:start] == head:
                self._first = quick_feature(self._payload, field, start, end)
                self._span = start, end
            if self._first is not None:
                return
        if self._first is not None:
            self._first = None
            self._merge(*self._span)
        self._merge(start, end)

    def feature(self) -> Feature:
        """All pieces as one feature."""
        if self._first is not None:
            return self._first
        return packed_feature(Kind(self._kind), self._count, bytes(self._body))

    def _merge(self, start: int, end: int) -> None:
        for (number, wire), first, last in fields(self._payload, start, end, _IN_FEATURE):
            if wire != _DELIMITED or number > 3:
                self.unknown = True
                continue
            if number != self._kind:
                self._kind, self._count, self._body = number, 0, bytearray()
            self._values(first, last)

    def _values(self, start: int, end: int) -> None:
        """Append the values of the list message at `start` to `end`."""
        payload, kind = self._payload, self._kind
        for tag, first, last in fields(payload, start, end, _IN_LIST):
            if tag == (1, _DELIMITED):
                size = last - first
                if kind == Kind.BYTES:
                    self._count += 1
                    self._body += b"\n" + varint(size)
                    self._body += memoryview(payload)[first:last]
                elif kind == Kind.FLOAT:
                    if size % 4:
                        raise NotAnExampleError(
                            first, f"packed floats of {size} bytes, not a multiple of 4"
                        )
                    self._count += size // 4
                    self._body += payload[first:last]
                else:
                    self._integers(first, last)
            elif tag == (1, _VARINT) and kind == Kind.INT64:
                self._integers(first, last)
            elif tag == (1, _FIXED32) and kind == Kind.FLOAT:
                self._count += 1
                self._body += payload[first:last]
            else:
                self.unknown = True

    def _integers(self, start: int, end: int) -> None:
        packed = self._payload[start:end]
        count = count_minimal(packed)
        if count < 0:
            position = start
            while position < end:
                position = _varint(self._payload, position, end)[1]
            numbers = list(varints(packed))
            packed, count = pack_varints(numbers), len(numbers)
        self._count += count
        self._body += packed


def fields(
    payload: bytes, position: int, end: int, depth: int
) -> Iterator[tuple[tuple[int, int], int, int]]:
    """Each field of a message: (number, wire type), and where its content starts and ends.

    A group comes as one field, at its end.

    Args:
        payload: what the message lies in.
        position: where it starts.
        end: where it ends.
        depth: how deep groups may nest in it.

    Raises:
        NotAnExampleError: it is malformed.
    """
    groups: list[int] = []
    while position < end:
        at = position
        tag, position = _varint(payload, at, end)
        if position - at > 5 or tag > 0xFFFF_FFFF:
            raise NotAnExampleError(at, "a tag of more than 32 bits")
        number, wire = tag >> 3, tag & 7
        if not number:
            raise NotAnExampleError(at, "the field number 0")
        start = position
        if wire == _VARINT:
            _, position = _varint(payload, position, end)
        elif wire == _DELIMITED:
            size, start = _varint(payload, position, end)
            position = start + size
        elif wire == _FIXED32:
            position += 4
        elif wire == _FIXED64:
            position += 8
        elif wire == _START_GROUP:
            groups.append(number)
            if len(groups) > depth:
                raise NotAnExampleError(at, "messages nested more than 100 deep")
        elif wire == _END_GROUP:
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


def _varint(payload: bytes, position: int, end: int) -> tuple[int, int]:
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

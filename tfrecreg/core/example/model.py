"""The model of an example, its bytes in the canonical form, and protobuf's wire format.

A varint has seven bits per byte, lowest first; the top bit is set in all bytes but the last.
Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from typing import Any, final

from tfrecreg.core.values.text import safe

VARINT, FIXED64, DELIMITED, START_GROUP, END_GROUP, FIXED32 = range(6)
"""The wire types."""

_ONE_BYTE = tuple(bytes((number,)) for number in range(128))

_CONTINUED = bytes(range(128, 256))
# A last byte of zero is redundant. Nine bytes hold 63 bits, so a tenth byte can only be 1, and an
# eleventh byte is not allowed.
_PADDED = re.compile(rb"[\x80-\xff](?:\x00|[\x80-\xff]{8}[\x02-\xff])")


def varint(number: int) -> bytes:
    """The shortest encoding of `number`, which is at least 0 and below 2^64."""
    if number < 128:
        return _ONE_BYTE[number]
    if number < 16384:
        return bytes((number & 127 | 128, number >> 7))
    return pack_varints((number,))


def pack_varints(numbers: Iterable[int]) -> bytes:
    """Encode int64 or uint64 values as the shortest varints, and concatenate these varints."""
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
        return f"not a tf.train.Example: found {self.reason} at byte {self.offset}"


def fields(
    payload: bytes, position: int, end: int, depth: int
) -> Iterator[tuple[tuple[int, int], int, int]]:
    """The fields of a message as (number, wire type), with the offsets where their content starts
    and ends.

    A group counts as one field, which is yielded after the end of the group.
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
                raise NotAnExampleError(at, f"an unmatched end of group {number}")
        else:
            raise NotAnExampleError(at, f"the wire type {wire}, which does not exist")
        if position > end:
            raise NotAnExampleError(at, f"a field that ends {position - end} bytes too late")
        if not groups:
            yield (number, wire), start, position
    if groups:
        raise NotAnExampleError(end, f"a group {groups[-1]} that is not closed")


def read_varint(payload: bytes, position: int, end: int) -> tuple[int, int]:
    """The lower 64 bits of the varint at `position`, unsigned, and where it ends."""
    number = shift = 0
    for place in range(position, min(end, position + 10)):
        byte = payload[place]
        if byte < 128:
            return (number | byte << shift) & 0xFFFF_FFFF_FFFF_FFFF, place + 1
        number |= (byte & 127) << shift
        shift += 7
    reason = "a varint of more than 10 bytes" if end - position >= 10 else "a cut varint"
    raise NotAnExampleError(position, reason)


class Kind(IntEnum):
    """The kind of a feature's values: the field number of the `oneof` in `feature.proto`."""

    UNSET = 0
    """The feature exists without a kind. Not the same as an empty list."""
    BYTES = 1
    FLOAT = 2
    INT64 = 3


@final
class Feature:
    """The values of one feature. Immutable, hashable, picklable.

    Created by `bytes_feature` and similar functions, or by `decode`. A decoded feature references
    its payload and creates its values on first use. Two features are equal if their kinds and exact
    bits are equal: a NaN equals the same NaN, and 0.0 is not -0.0.
    """

    __slots__ = ("_count", "_end", "_field", "_kind", "_source", "_start", "_values")

    # `_source[_field:_end]` is the canonical value field of a map entry (tag, length, Feature
    # message), and its body begins at `_start`: packed numbers, or for BYTES the tagged,
    # length-prefixed values. `_source` is None for BYTES that are too large to copy, which only
    # `_values` holds.
    def __init__(
        self,
        kind: Kind,
        count: int,
        source: bytes | None,
        field: int,
        start: int,
        end: int,
        values: tuple[Any, ...] | None = None,
    ) -> None:
        self._kind = kind
        self._count = count
        self._source = source
        self._field = field
        self._start = start
        self._end = end
        self._values = values

    @property
    def kind(self) -> Kind:
        """The kind of the values."""
        return self._kind

    @property
    def count(self) -> int:
        """Number of values."""
        return self._count

    @property
    def values(self) -> tuple[Any, ...]:
        """The values: `bytes`, `float` or `int`, according to `kind`. Cached."""
        values = self._values
        if values is None:
            values = self._values = tuple(self._iterate())
        return values

    def first(self, most: int) -> tuple[Any, ...]:
        """The first values, at most `most` of them. No other values are created."""
        if self._values is None and self._kind is Kind.FLOAT:
            count = min(most, self._count)
            return struct.unpack_from(f"<{count}f", self._source or b"", self._start)
        return tuple(islice(self._iterate(), most))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Size of each value in bytes, without creating the values.

        Raises:
            TypeError: the kind is not BYTES.
        """
        self._require(Kind.BYTES, "sizes")
        if self._source is None:
            return tuple(map(len, self._values or ()))
        return tuple(end - start for start, end in self._spans(self._source))

    @property
    def packed_floats(self) -> memoryview:
        """The exact bits: 4 bytes per value, little-endian IEEE 754 (`numpy.frombuffer` accepts
        it).

        Raises:
            TypeError: the kind is not FLOAT.
        """
        self._require(Kind.FLOAT, "packed_floats")
        return memoryview(self._source or b"")[self._start : self._end]

    @property
    def wire_bytes(self) -> int:
        """Size in bytes of the feature as a canonical `Feature` message, without its key."""
        if self._source is not None:
            size = self._end - self._field - 2  # without a tag and a length of one byte
            return size if size < 128 else _message_size(self._kind, self._end - self._start)
        body = sum(1 + varint_size(len(each)) + len(each) for each in self._values or ())
        return _message_size(self._kind, body)

    def _iterate(self) -> Iterable[Any]:
        if self._values is not None:
            return self._values
        source = self._source or b""
        if self._kind is Kind.INT64:
            body = source[self._start : self._end]
            return body if body.isascii() else varints(body)
        if self._kind is Kind.FLOAT:
            return struct.unpack_from(f"<{self._count}f", source, self._start)
        return (source[start:end] for start, end in self._spans(source))

    def _spans(self, source: bytes) -> Iterator[tuple[int, int]]:
        position, last = self._start, self._end
        while position < last:
            size = source[position + 1]
            position += 2
            if size > 127:
                size &= 127
                shift = 7
                while (byte := source[position]) > 127:
                    size |= (byte & 127) << shift
                    shift += 7
                    position += 1
                size |= byte << shift
                position += 1
            yield position, position + size
            position += size

    def _body(self) -> bytes:
        if self._source is not None:
            return self._source[self._start : self._end]
        return b"".join(b"\n" + varint(len(each)) + each for each in self._values or ())

    def _require(self, kind: Kind, attribute: str) -> None:
        if self._kind is not kind:
            raise TypeError(
                f"`{attribute}` is for {kind.name} features only, but this one is {self._kind.name}"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Feature):
            return NotImplemented
        return self is other or (
            self._kind is other._kind
            and self._count == other._count
            and self._body() == other._body()
        )

    def __hash__(self) -> int:
        return hash((self._kind, self._body()))

    def __reduce__(self) -> tuple[object, ...]:
        # Other features in the same payload are not part of this one.
        return packed_feature, (self._kind, self._count, self._body())

    def __repr__(self) -> str:
        if self._kind is Kind.UNSET:
            return "<Feature UNSET>"
        shown = []
        for value in islice(self._iterate(), 3):
            is_long = isinstance(value, bytes) and len(value) > 16
            shown.append(f"{value[:16]!r}… of {len(value)} bytes" if is_long else repr(value))
        if self._count > 3:
            shown.append("…")
        plural = "" if self._count == 1 else "s"
        return f"<Feature {self._kind.name} {self._count} value{plural} [{', '.join(shown)}]>"


Example = Mapping[str, Feature]
"""A `tf.train.Example`: features by name. Their order has no meaning."""


@lru_cache(maxsize=4096)
def _message_size(kind: Kind, body: int) -> int:
    if kind is Kind.UNSET:
        return 0
    if kind is not Kind.BYTES and body:
        body += 1 + varint_size(body)
    return 1 + varint_size(body) + body


@lru_cache(maxsize=2048)
def value_head(kind: Kind, body: int) -> bytes:
    """The start of a map entry's value field, up to the values, which take `body` bytes."""
    head = b"\x12" + varint(_message_size(kind, body))
    if kind is Kind.UNSET:
        return head
    packed = b"\n" + varint(body) if kind is not Kind.BYTES and body else b""
    return head + bytes((kind << 3 | 2,)) + varint(len(packed) + body) + packed


def packed_feature(
    kind: Kind, count: int, body: bytes, values: tuple[Any, ...] | None = None
) -> Feature:
    """A feature with `count` values and the canonical body `body`.

    The caller guarantees that `body` is valid: packed little-endian floats, packed minimal varints,
    or for BYTES a sequence of ``0a``, length and value. If the caller passes `values`, they must
    equal the values that are encoded in `body`.
    """
    head = value_head(kind, len(body))
    return Feature(kind, count, head + body, 0, len(head), len(head) + len(body), values)


def feature_key(example: Example | None, feature: str) -> str | None:
    """The value of `feature` as text; None if it has no value, several values, or a float."""
    found = example.get(feature) if example is not None else None
    if found is None or found.count != 1 or found.kind not in (Kind.BYTES, Kind.INT64):
        return None
    value = found.values[0]
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


@dataclass(frozen=True, slots=True)
class DeclaredFeature:
    """One feature of a record, as another tool's description declares it."""

    kind: Kind | None
    """None if only other properties are declared."""
    shape: tuple[int, ...] | None = None
    """Shape of the values in every record, ``()`` for a single value; None if the number of values
    varies or is not declared.
    """
    classes: int = 0
    """Number of classes, numbered from 0; 0 if the feature is not a class."""
    is_image: bool = False
    """Whether its values are encoded images."""
    is_text: bool = False
    is_bool: bool = False
    pixels: tuple[int, int, int] | None = None
    """Height, width and channels, if the values are an image's pixels, row by row."""


_MAX_PAYLOAD = 2**31 - 1  # protobuf's own limit, in every language

_VIEWED = 4096  # bytes from which a view is cheaper than a copy

# A dataset has few keys and many examples. The cache is bounded: a hostile dataset may have a new
# key in every record.
_PREFIXES: dict[str, bytes] = {}
_MAX_PREFIXES = 4096
_MAX_KEPT_KEY = 256

_HEADS = tuple(b"\n" + varint(size) for size in range(1024))


def encode(example: Example) -> bytes:
    """`example` in canonical form: equal examples give equal bytes, for any order of their
    features.

    Raises:
        TypeError: a key is not a string, or a value is not a :class:`Feature`.
        ValueError: a key holds a lone surrogate, or the payload would exceed protobuf's 2 GiB.

    Example:
        >>> tr.encode(tr.to_example({"label": 7})).hex()
        '0a100a0e0a056c6162656c12051a030a0107'
    """
    parts: list[bytes | memoryview] = [b""]
    total = 0
    # Strings sort by code point, which is the order of their UTF-8 bytes.
    for key in sorted(example):
        feature = example[key]
        prefix = _PREFIXES.get(key) or _prefix(key)
        if not isinstance(feature, Feature):
            raise TypeError(f"`{safe(key)}` is a `{type(feature).__name__}`, expected a `Feature`")
        source = feature._source
        if source is None:
            tail, size = _loose(feature)
            size += len(prefix)
            head = b"\n" + varint(size)
            parts += (head, prefix, *tail)
        else:
            start, end = feature._field, feature._end
            size = end - start
            field = source[start:end] if size < _VIEWED else memoryview(source)[start:end]
            size += len(prefix)
            head = _HEADS[size] if size < 1024 else b"\n" + varint(size)
            parts += (head, prefix, field)
        total += size + len(head)
    if not total:
        return b""
    parts[0] = b"\n" + varint(total)
    if 1 + varint_size(total) + total > _MAX_PAYLOAD:
        raise ValueError(
            f"the example takes {total} bytes, more than the {_MAX_PAYLOAD} that protobuf can read"
        )
    return b"".join(parts)


def _prefix(key: str) -> bytes:
    """The key field of a map entry."""
    if not isinstance(key, str):
        raise TypeError(f"a feature key is a `{type(key).__name__}`, expected a string")
    raw = key.encode()
    prefix = b"\n" + varint(len(raw)) + raw
    if len(raw) <= _MAX_KEPT_KEY and len(_PREFIXES) < _MAX_PREFIXES:
        _PREFIXES[key] = prefix
    return prefix


def _loose(feature: Feature) -> tuple[list[bytes], int]:
    """The value field of a BYTES feature with large values: the pieces, and the total size."""
    pieces: list[bytes] = [b""]
    for value in feature.values:
        pieces += (b"\n" + varint(len(value)), value)
    body = sum(map(len, pieces))
    pieces[0] = value_head(feature.kind, body)
    return pieces, len(pieces[0]) + body

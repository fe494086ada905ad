"""Tensors that `tf.io.serialize_tensor` put into a feature: which dtype and shape they have.

A `tf.train.Example` has no tensors, so people serialise them to bytes. What is there then is a
`TensorProto` (``tensorflow/core/framework/tensor.proto``): its dtype, its shape, and either all
values packed in `tensor_content` or each in a field of its own. Only its head is looked at here,
and whether the values are as many as the shape says; none of them is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from tfrecreg.example.wire import (
    DELIMITED,
    FIXED32,
    FIXED64,
    VARINT,
    NotAnExampleError,
    fields,
    varints,
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """Type, shape and place of a serialized tensor."""

    dtype: str
    """TensorFlow's name of it: ``float32``, ``uint8``, ``string`` …"""
    shape: tuple[int, ...]
    """Its sides, each at least 0; empty for a scalar."""
    content: tuple[int, int]
    """Where `tensor_content` starts and ends in the bytes that were read: the values in C order,
    little-endian. Equal where each value has a field of its own, as strings always have."""

    @property
    def count(self) -> int:
        """How many values it has."""
        count = 1
        for side in self.shape:
            count *= side
        return count


class _Type(NamedTuple):
    name: str
    size: int
    """Bytes of one value in `tensor_content`; 0 for strings, which are not there."""
    field: int
    """The field that has single values,"""
    packed: int = 0
    """and bytes of one of them there; 0 for varints."""
    parts: int = 1
    """Single values that make one: two for complex numbers."""


# DataType of tensorflow/core/framework/types.proto, without those that hold no plain values.
_TYPES: Mapping[int, _Type] = MappingProxyType(
    {
        1: _Type("float32", 4, 5, 4),
        2: _Type("float64", 8, 6, 8),
        3: _Type("int32", 4, 7),
        4: _Type("uint8", 1, 7),
        5: _Type("int16", 2, 7),
        6: _Type("int8", 1, 7),
        7: _Type("string", 0, 8),
        8: _Type("complex64", 8, 9, 4, 2),
        9: _Type("int64", 8, 10),
        10: _Type("bool", 1, 11),
        11: _Type("qint8", 1, 7),
        12: _Type("quint8", 1, 7),
        13: _Type("qint32", 4, 7),
        14: _Type("bfloat16", 2, 13),
        15: _Type("qint16", 2, 7),
        16: _Type("quint16", 2, 7),
        17: _Type("uint16", 2, 7),
        18: _Type("complex128", 16, 12, 8, 2),
        19: _Type("float16", 2, 13),
        22: _Type("uint32", 4, 16),
        23: _Type("uint64", 8, 17),
    }
)

_DTYPE, _SHAPE, _VERSION, _CONTENT = 1, 2, 3, 4
_CONTINUED = bytes(range(128, 256))
"""Bytes of a varint behind which it goes on."""
_DEPTH = 0
"""Groups, which nest, are in no such message."""
_MAX_RANK = 254
"""TensorFlow's own limit."""


class _OtherError(Exception):
    """It is another message."""


def read_tensor(data: bytes) -> Tensor | None:
    """What the tensor is that `data` are, if they are one.

    Strict, for any bytes may begin like one: the dtype is known, all sides are, the values are
    exactly as many as the shape asks for, and every byte belongs to a field that TensorFlow
    writes. `tf.make_tensor_proto` may leave out values that repeat the last one: that is taken
    as well. Takes no memory to speak of, whatever the shape says.
    """
    if data[:1] != b"\x08":  # the dtype comes first, whoever writes it: serialisers sort fields
        return None
    try:
        return _read(data)
    except (_OtherError, NotAnExampleError):
        return None


def _read(data: bytes) -> Tensor | None:
    kind: _Type | None = None
    shape: tuple[int, ...] | None = None
    content: tuple[int, int] | None = None
    singles = 0
    for (number, wire), start, end in fields(data, 0, len(data), _DEPTH):
        if number == _DTYPE and wire == VARINT:
            kind = _TYPES.get(*varints(data[start:end]))
        elif number == _SHAPE and wire == DELIMITED:
            shape = _shape(data, start, end)
        elif number == _VERSION and wire == VARINT:
            continue
        elif number == _CONTENT and wire == DELIMITED and content is None:
            content = start, end
        elif kind is not None and number == kind.field:
            singles += _singles(data, kind, wire, start, end)
        else:
            return None
    if kind is None or shape is None:
        return None
    found = Tensor(kind.name, shape, content or (0, 0))
    if content is None:
        values, rest = divmod(singles, kind.parts)
        return found if not rest and _covers(values, found.count) else None
    size = content[1] - content[0]
    return found if kind.size and not singles and size == found.count * kind.size else None


def _covers(values: int, count: int) -> bool:
    """Whether so many single values are enough: the last one, or 0, stands for what is left."""
    return values <= count and (values > 0 or count == 0)


def _shape(data: bytes, start: int, end: int) -> tuple[int, ...]:
    sides: list[int] = []
    for tag, first, last in fields(data, start, end, _DEPTH):
        if tag != (2, DELIMITED) or len(sides) == _MAX_RANK:
            raise _OtherError  # field 3: the rank is not known, and serialized tensors know theirs
        side = 0
        for inner, at, behind in fields(data, first, last, _DEPTH):
            if inner == (1, VARINT):
                (side,) = varints(data[at:behind])
            elif inner != (2, DELIMITED):
                raise _OtherError
        if side < 0:
            raise _OtherError  # -1: not known
        sides.append(side)
    return tuple(sides)


def _singles(data: bytes, kind: _Type, wire: int, start: int, end: int) -> int:
    """How many values one field has: packed ones have many."""
    if kind.name == "string":
        if wire != DELIMITED:
            raise _OtherError
        return 1
    if wire != DELIMITED:
        expected = {0: VARINT, 4: FIXED32, 8: FIXED64}[kind.packed]
        if wire != expected:
            raise _OtherError
        return 1
    if kind.packed:
        count, rest = divmod(end - start, kind.packed)
        if rest:
            raise _OtherError
        return count
    # A varint ends with the byte whose top bit is not set.
    packed = data[start:end]
    if packed and packed[-1] > 127:
        raise _OtherError
    return len(packed.translate(None, _CONTINUED))

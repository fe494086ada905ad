"""Tensors in a feature, as `tf.io.serialize_tensor` writes them: their dtype and shape.

A `tf.train.Example` has no tensors, so people serialize them to bytes. The bytes are a
`TensorProto` (``tensorflow/core/framework/tensor.proto``): its dtype, its shape, and either all
values packed in `tensor_content` or each in a field of its own. This module reads only its head,
and checks that the number of values matches the shape; it does not create the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrecreg.core.example.model import (
    DELIMITED,
    FIXED32,
    FIXED64,
    VARINT,
    NotAnExampleError,
    fields,
    varint,
    varints,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Tensor:
    """Type, shape and place of a serialized tensor."""

    dtype: str
    """TensorFlow's name of the dtype: ``float32``, ``uint8``, ``string`` …"""
    shape: tuple[int, ...]
    """Its dimensions, each at least 0; empty for a scalar."""
    content: tuple[int, int]
    """Where `tensor_content` starts and ends in the given bytes: the values in C order,
    little-endian. Both are equal if each value has a field of its own, as strings always have.
    """

    @property
    def count(self) -> int:
        """Number of values."""
        count = 1
        for side in self.shape:
            count *= side
        return count


class _Type(NamedTuple):
    name: str
    size: int
    """Size in bytes of one value in `tensor_content`; 0 for strings, which it cannot hold."""
    field: int
    """Number of the field for single values."""
    packed: int = 0
    """Size in bytes of one value in that field; 0 for varints."""
    parts: int = 1
    """Number of single values per value: two for complex numbers."""


# DataType of tensorflow/core/framework/types.proto, without types that do not hold plain values.
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
"""Bytes of a varint that are followed by another one."""
_DEPTH = 0
"""Maximum depth of groups: such a message has none."""
_MAX_RANK = 254
"""TensorFlow's own limit on the number of dimensions."""


class _OtherError(Exception):
    """The bytes are another message."""


def read_tensor(data: bytes) -> Tensor | None:
    """The tensor that `data` hold; None if they are not one.

    Strict, because any bytes may begin like a tensor: the dtype and all dimensions are known, the
    number of values matches the shape exactly, and every byte belongs to a field that TensorFlow
    writes. `tf.make_tensor_proto` may omit values that repeat the last one: that is also accepted.
    The memory needed does not depend on the shape.
    """
    if data[:1] != b"\x08":  # the dtype comes first with every writer: serializers sort fields
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
    """Whether `values` single values are enough: the last one, or 0, is repeated for the others."""
    return values <= count and (values > 0 or count == 0)


def _shape(data: bytes, start: int, end: int) -> tuple[int, ...]:
    sides: list[int] = []
    for tag, first, last in fields(data, start, end, _DEPTH):
        if tag != (2, DELIMITED) or len(sides) == _MAX_RANK:
            raise _OtherError  # field 3: the rank is unknown, but serialized tensors have one
        side = 0
        for inner, at, behind in fields(data, first, last, _DEPTH):
            if inner == (1, VARINT):
                (side,) = varints(data[at:behind])
            elif inner != (2, DELIMITED):
                raise _OtherError
        if side < 0:
            raise _OtherError  # -1: unknown
        sides.append(side)
    return tuple(sides)


def _singles(data: bytes, kind: _Type, wire: int, start: int, end: int) -> int:
    """Number of values in one field: packed ones have many."""
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


def serialize_tensor(array: NDArray[Any]) -> bytes:
    """The bytes that `tf.io.serialize_tensor` gives for this array, without TensorFlow.

    Args:
        array: of any shape, and of a type that TensorFlow has; strings and bytes among them.

    Raises:
        TypeError: TensorFlow has no such type.

    Example:
        >>> import numpy as np
        >>> data = tr.serialize_tensor(np.zeros((2, 3), np.float32))
        >>> tr.parse_tensor(data).shape
        (2, 3)
    """
    import numpy as np

    name = "string" if array.dtype.kind in "SUO" else array.dtype.name
    number = _NUMBERS.get(name)
    if number is None:
        raise TypeError(f"TensorFlow has no tensors of `{array.dtype}`")
    shape = b"".join(_delimited(2, _DIM + varint(side) if side else b"") for side in array.shape)
    head = b"\x08" + varint(number) + _delimited(_SHAPE, shape)
    if name == "string":
        return head + b"".join(_delimited(8, _text(each)) for each in array.reshape(-1).tolist())
    content = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return head + (_delimited(_CONTENT, content) if content else b"")


def parse_tensor(data: bytes) -> NDArray[Any]:
    """The array that `tf.io.serialize_tensor` or :func:`serialize_tensor` made `data` of.

    Returns:
        an array of the tensor's shape and type; of strings, an array of `bytes` objects.

    Raises:
        ValueError: the bytes are not a serialized tensor.
        TypeError: NumPy has no such type: ``bfloat16`` and the quantized ones.

    Example:
        >>> import numpy as np
        >>> tr.parse_tensor(tr.serialize_tensor(np.array([[1, 2]])))
        array([[1, 2]])
    """
    import numpy as np

    tensor = read_tensor(data)
    if tensor is None:
        raise ValueError("these bytes are not a serialized tensor")
    if tensor.dtype not in _NUMBERS or tensor.dtype == "bfloat16":
        raise TypeError(f"NumPy has no arrays of `{tensor.dtype}`")
    start, end = tensor.content
    if end > start:
        little = np.dtype(tensor.dtype).newbyteorder("<")
        found = np.frombuffer(data, little, offset=start, count=tensor.count)
        return found.astype(np.dtype(tensor.dtype)).reshape(tensor.shape)
    kind = _TYPES[_NUMBERS[tensor.dtype]]
    values = list(_single_values(data, kind))
    dtype = np.dtype(object if tensor.dtype == "string" else tensor.dtype)
    flat = np.empty(tensor.count, dtype)
    if len(flat):
        flat[: len(values)] = values
        flat[len(values) :] = values[-1] if values else dtype.type()  # repeated values are left out
    return flat.reshape(tensor.shape)


def _single_values(data: bytes, kind: _Type) -> Iterator[Any]:
    """Values that have a field each, or lie packed in one."""
    import numpy as np

    pieces: list[bytes] = []
    for (number, wire), start, end in fields(data, 0, len(data), _DEPTH):
        if number != kind.field:
            continue
        if kind.name == "string":
            yield data[start:end]
        elif wire == VARINT or (wire == DELIMITED and not kind.packed):
            yield from _from_varints(kind.name, varints(data[start:end]))
        else:
            pieces.append(data[start:end])
    if pieces:
        dtype = np.dtype(kind.name).newbyteorder("<")
        yield from np.frombuffer(b"".join(pieces), dtype).tolist()


def _from_varints(name: str, numbers: Iterable[int]) -> Iterator[Any]:
    import numpy as np

    for number in numbers:
        if name == "float16":
            yield np.uint16(number).view(np.float16)
        elif name.startswith("u") or name == "bool":
            yield number % (1 << 64)
        else:
            yield number - (1 << 64) if number >> 63 == 1 else number


_NUMBERS = {kind.name: number for number, kind in _TYPES.items() if not kind.name.startswith("q")}
_DIM = b"\x08"
"""The tag of `size` in a dimension."""


def _delimited(field: int, body: bytes) -> bytes:
    return varint(field << 3 | DELIMITED) + varint(len(body)) + body


def _text(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8")
    if isinstance(value, bytes):
        return value
    raise TypeError(f"an array of objects holds a `{type(value).__name__}`")

"""Reads and writes tensors in a feature, as `tf.io.serialize_tensor` writes them.

A `tf.train.Example` has no tensors, so people serialize them to bytes. The bytes are a
`TensorProto` (``tensorflow/core/framework/tensor.proto``): its dtype, its shape and its values. The
values are packed in `tensor_content`, but each string has a field of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from tfrecreg.core.example.model import (
    DELIMITED,
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
    """The type and the shape of a serialized tensor, and where its content is."""

    dtype: str
    """TensorFlow's name of the dtype: ``float32``, ``uint8``, ``string`` …"""
    shape: tuple[int, ...]
    """Its dimensions, each at least 0; empty for a scalar."""
    content: tuple[int, int]
    """Where the values (C order, little-endian) start and end; zeros for strings or no values."""

    @property
    def count(self) -> int:
        """Number of values."""
        return prod(self.shape)


_NAMES = (
    *("", "float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64"),
    *("bool", "qint8", "quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16"),
    *("complex128", "float16", "", "", "uint32", "uint64"),
)
"""DataType of tensorflow/core/framework/types.proto, without types that hold no plain values."""
_BITS = re.compile("[0-9]+")

_DTYPE, _SHAPE, _VERSION, _CONTENT, _STRING = 1, 2, 3, 4, 8
_DEPTH = 0
"""Maximum depth of groups. It is 0, because a tensor has no groups."""
_MAX_RANK = 254
"""TensorFlow's own limit on the number of dimensions."""


def read_tensor(data: bytes) -> Tensor | None:
    """The tensor in `data`; None if `data` is not a tensor.

    Any bytes may begin like a tensor. So the dtype and all dimensions must be known, the number of
    values must match the shape, and `tf.io.serialize_tensor` must write all of the fields.
    """
    if data[:1] != b"\x08":  # every writer puts the dtype first: serializers sort fields
        return None
    try:
        return _read(data)
    except NotAnExampleError:
        return None


def _read(data: bytes) -> Tensor | None:
    number_of_type = 0
    shape: tuple[int, ...] | None = None
    content: tuple[int, int] | None = None
    strings = 0
    for (number, wire), start, end in fields(data, 0, len(data), _DEPTH):
        if number == _DTYPE and wire == VARINT:
            (number_of_type,) = varints(data[start:end])
        elif number == _SHAPE and wire == DELIMITED:
            shape = _shape(data, start, end)
        elif number == _VERSION and wire == VARINT:
            continue
        elif number == _CONTENT and wire == DELIMITED and content is None:
            content = start, end
        elif number == _STRING and wire == DELIMITED:
            strings += 1
        else:
            return None
    name = _NAMES[number_of_type] if 0 <= number_of_type < len(_NAMES) else ""
    if not name or shape is None:
        return None
    found = Tensor(name, shape, content or (0, 0))
    if name == "string":
        return found if content is None and strings == found.count else None
    bits = _BITS.search(name)
    size = int(bits[0]) // 8 if bits is not None else 1  # a bool takes a byte
    start, end = found.content
    return found if not strings and end - start == found.count * size else None


def _shape(data: bytes, start: int, end: int) -> tuple[int, ...] | None:
    sides: list[int] = []
    for tag, first, last in fields(data, start, end, _DEPTH):
        if tag != (2, DELIMITED) or len(sides) == _MAX_RANK:
            return None  # field 3: unknown rank, which serialized tensors do not have
        side = 0
        for inner, at, behind in fields(data, first, last, _DEPTH):
            if inner == (1, VARINT):
                (side,) = varints(data[at:behind])
            elif inner != (2, DELIMITED):
                return None
        if side < 0:
            return None  # -1: unknown size
        sides.append(side)
    return tuple(sides)


def serialize_tensor(array: NDArray[Any]) -> bytes:
    """The bytes that `tf.io.serialize_tensor` gives for this array, without TensorFlow.

    Args:
        array: of any shape, and of any type that TensorFlow has, including strings and bytes.

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
        values = array.reshape(-1).tolist()
        for each in values:
            if not isinstance(each, (bytes, str)):
                raise TypeError(
                    f"expected bytes or str in the array, found `{type(each).__name__}`"
                )
        texts = (each.encode() if isinstance(each, str) else each for each in values)
        return head + b"".join(_delimited(_STRING, each) for each in texts)
    content = np.ascontiguousarray(array, array.dtype.newbyteorder("<")).tobytes()
    return head + (_delimited(_CONTENT, content) if content else b"")


def parse_tensor(data: bytes) -> NDArray[Any]:
    """The array from which `tf.io.serialize_tensor` or :func:`serialize_tensor` made `data`.

    Returns:
        an array of the tensor's shape and type; for strings, an array of `bytes` objects.

    Raises:
        ValueError: the bytes are not a serialized tensor.
        TypeError: NumPy has no such type: ``bfloat16`` and the quantized types.

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
    flat = np.empty(tensor.count, object if tensor.dtype == "string" else tensor.dtype)
    flat[:] = [
        data[first:last]
        for (at, _), first, last in fields(data, 0, len(data), _DEPTH)
        if at == _STRING
    ]
    return flat.reshape(tensor.shape)


_NUMBERS = {name: number for number, name in enumerate(_NAMES) if name and name[0] != "q"}
_DIM = b"\x08"
"""The tag of `size` in a dimension."""


def _delimited(field: int, body: bytes) -> bytes:
    return varint(field << 3 | DELIMITED) + varint(len(body)) + body

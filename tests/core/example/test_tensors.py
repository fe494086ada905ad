"""Serialised tensors are told from other bytes, and described by their heads alone."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.model import varint
from tfrecreg.core.example.tensors import Tensor, read_tensor


def proto(dtype: int, sides: tuple[int, ...] | None, rest: bytes = b"") -> bytes:
    """A TensorProto as serialisers write it: fields in order."""
    head = b"\x08" + varint(dtype)
    if sides is not None:
        dims = [b"\x08" + varint(side) if side else b"" for side in sides]
        shape = b"".join(b"\x12" + varint(len(dim)) + dim for dim in dims)
        head += b"\x12" + varint(len(shape)) + shape
    return head + rest


def delimited(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


FLOATS = struct.pack("<6f", *range(6))


@pytest.mark.parametrize(
    ("data", "dtype", "shape", "count"),
    [
        (proto(1, (2, 3), delimited(4, FLOATS)), "float32", (2, 3), 6),
        (proto(3, (), delimited(4, b"\x05\0\0\0")), "int32", (), 1),
        (proto(9, (0, 4)), "int64", (0, 4), 0),
        (proto(4, (300,), delimited(4, bytes(300))), "uint8", (300,), 300),
        (proto(7, (), delimited(8, b"abc")), "string", (), 1),
        (proto(7, (2,), delimited(8, b"a") + delimited(8, b"")), "string", (2,), 2),
        (proto(14, (3,), delimited(4, bytes(6))), "bfloat16", (3,), 3),
        (proto(1, (6,), b"\x18\x00" + delimited(4, FLOATS)), "float32", (6,), 6),
    ],
)
def test_a_tensor_has_its_dtype_and_shape(
    data: bytes, dtype: str, shape: tuple[int, ...], count: int
) -> None:
    found = read_tensor(data)
    assert found is not None
    assert (found.dtype, found.shape, found.count) == (dtype, shape, count)


def test_the_values_are_where_it_says() -> None:
    data = proto(1, (2, 3), delimited(4, FLOATS))
    found = read_tensor(data)
    assert found is not None
    assert data[slice(*found.content)] == FLOATS


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x08",
        b"\x08\x01",
        b"a caption",
        b"\x89PNG\r\n\x1a\n",
        proto(1, None, delimited(4, FLOATS)),
        proto(1, (2, 3), delimited(4, FLOATS[:-1])),
        proto(1, (2, 2), delimited(4, FLOATS)),
        proto(1, (2, 3), delimited(4, FLOATS) + b"\0"),
        proto(1, (2, 3), delimited(4, FLOATS)[:-1]),
        proto(1, (2, 3), delimited(4, FLOATS) * 2),
        proto(1, (6,), delimited(4, FLOATS) + delimited(5, FLOATS)),
        proto(1, (2, 3)),
        proto(1, (1,), delimited(5, bytes(4))),
        proto(7, (1,), b"\x40\x01"),
        proto(7, (1000,), delimited(8, b"a")),
        proto(7, (3,), delimited(4, b"\1\1\1abc")),
        proto(1, (1,), delimited(4, bytes(4)) + delimited(8, b"a")),
        proto(20, (), delimited(14, b"")),
        proto(99, (), delimited(4, b"")),
        proto(1, (1 << 63,), delimited(4, b"")),
        proto(1, (1 << 40, 1 << 40), delimited(4, b"")),
        proto(1, (0,) * 255),
        b"\x08\x01\x12\x02\x18\x01",
        b"\x08\x01\x12\x04\x12\x02\x18\x01",
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x08\x01\x13",
    ],
)
def test_other_bytes_are_no_tensor(data: bytes) -> None:
    assert read_tensor(data) is None


@settings(max_examples=300)
@given(st.binary(max_size=60).map(lambda rest: b"\x08" + rest))
def test_any_bytes_are_looked_at_without_an_error(data: bytes) -> None:
    found = read_tensor(data)
    assert found is None or found.content[1] <= len(data)


def test_what_tensorflow_serialises_is_recognised() -> None:
    tf: Any = pytest.importorskip("tensorflow")
    dtypes = ["float32", "float64", "int32", "uint8", "int16", "int8", "complex64", "int64"]
    dtypes += ["bool", "bfloat16", "uint16", "complex128", "float16", "uint32", "uint64"]
    for name in dtypes:
        for shape in ((), (0, 3), (4,), (2, 1, 3)):
            data = tf.io.serialize_tensor(tf.zeros(shape, getattr(tf, name))).numpy()
            found = read_tensor(data)
            assert found is not None, (name, shape)
            assert (found.dtype, found.shape) == (name, shape)
            assert (
                found.content[1] - found.content[0] == found.count * tf.dtypes.as_dtype(name).size
            )
    for value in ("abc", ["a", "bc" * 100], [[""]]):
        found = read_tensor(tf.io.serialize_tensor(tf.constant(value)).numpy())
        assert found == Tensor("string", tuple(tf.constant(value).shape), (0, 0))

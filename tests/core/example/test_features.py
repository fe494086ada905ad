"""What the constructors take, what they make of it, and what they refuse."""

from __future__ import annotations

import math
import struct
from array import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.model import Kind
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature


@pytest.mark.parametrize(
    ("value", "values"),
    [
        (b"x", (b"x",)),
        ("é", (b"\xc3\xa9",)),
        ("", (b"",)),
        (bytearray(b"ab"), (b"ab",)),
        (memoryview(b"abcd")[1:3], (b"bc",)),
        (np.bytes_(b"x"), (b"x",)),
        ([], ()),
        ([b"x", "y", bytearray(b"z")], (b"x", b"y", b"z")),
        ((text for text in ("a", "b")), (b"a", b"b")),
        (np.array(["cat", "dog"]), (b"cat", b"dog")),
        (b"x" * 5000, (b"x" * 5000,)),
    ],
)
def test_bytes_are_taken_as_bytes_or_text(value: Any, values: tuple[bytes, ...]) -> None:
    feature = bytes_feature(value)
    assert feature.kind is Kind.BYTES
    assert feature.values == values
    assert {type(each) for each in feature.values} <= {bytes}
    assert feature.count == len(values)
    assert feature.sizes == tuple(map(len, values))


@pytest.mark.parametrize(
    ("value", "values"),
    [
        (0, (0,)),
        (127, (127,)),
        (128, (128,)),
        (-1, (-1,)),
        (True, (1,)),
        ([True, False], (1, 0)),
        (Kind.FLOAT, (2,)),
        (np.int32(-7), (-7,)),
        (np.uint64(2**63 - 1), (2**63 - 1,)),
        (np.bool_(True), (1,)),
        (np.array(5), (5,)),
        (np.array([1, 2, 300], np.int16), (1, 2, 300)),
        (np.array([True, False]), (1, 0)),
        (array("q", [-1, 2**40]), (-1, 2**40)),
        (range(3), (0, 1, 2)),
        (b"\x01\xff", (1, 255)),
        ((), ()),
        ([-(2**63), 2**63 - 1], (-(2**63), 2**63 - 1)),
    ],
)
def test_integers_are_taken_one_or_many(value: Any, values: tuple[int, ...]) -> None:
    feature = int64_feature(value)
    assert feature.kind is Kind.INT64
    assert feature.values == values
    assert {type(each) for each in feature.values} <= {int}
    assert feature.count == len(values)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (2**63, "9223372036854775808"),
        ([1, -(2**63) - 1], "-9223372036854775809"),
    ],
)
def test_integers_outside_int64_are_named(value: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=f"^{shown} is outside int64, from -92"):
        int64_feature(value)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1.0, "float"),
        ([1, 2.5], "float"),
        (iter([1, 2.5, 3]), "float"),
        ("7", "str"),
        (None, "NoneType"),
        (np.ones(2, np.float32), "float"),
        (np.zeros((2, 2), int), "list"),
    ],
)
def test_what_is_no_integer_is_refused(value: Any, found: str) -> None:
    with pytest.raises(TypeError, match=f"^expected integers: '{found}' object"):
        int64_feature(value)


NAN = bytes.fromhex("0100807f")


@pytest.mark.parametrize(
    ("value", "packed"),
    [
        (1.5, struct.pack("<f", 1.5)),
        (2, struct.pack("<f", 2)),
        (True, struct.pack("<f", 1)),
        (0.1, struct.pack("<f", 0.1)),
        ([], b""),
        ([1, 0.5], struct.pack("<2f", 1, 0.5)),
        (iter([1.0, 2.0]), struct.pack("<2f", 1, 2)),
        (np.float32(0.1), struct.pack("<f", 0.1)),
        (np.float64(0.1), struct.pack("<f", 0.1)),
        (np.array([1, 2], np.uint8), struct.pack("<2f", 1, 2)),
        (np.array([0.1, 2]), struct.pack("<2f", 0.1, 2)),
        (np.array([0.5], np.float16), struct.pack("<f", 0.5)),
        (array("d", [0.1]), struct.pack("<f", 0.1)),
        (NAN, NAN),
        (bytearray(NAN * 2), NAN * 2),
        (memoryview(NAN), NAN),
        (np.frombuffer(NAN, "<f4"), NAN),
        (np.array([1.5], ">f4"), struct.pack("<f", 1.5)),
        (np.arange(6, dtype=np.float32)[::2], struct.pack("<3f", 0, 2, 4)),
        (memoryview(array("f", [1.5])), struct.pack("<f", 1.5)),
    ],
)
def test_floats_are_taken_from_numbers_arrays_and_packed_bytes(value: Any, packed: bytes) -> None:
    feature = float_feature(value)
    assert feature.kind is Kind.FLOAT
    assert bytes(feature.packed_floats) == packed
    assert feature.count == len(packed) // 4 == len(feature.values)


@settings(max_examples=100)
@given(values=st.lists(st.floats(width=32), max_size=5))
def test_float32_values_come_back_exactly(values: list[float]) -> None:
    found = float_feature(values).values
    assert [math.copysign(1, value) for value in found if value == 0] == [
        math.copysign(1, value) for value in values if value == 0
    ]
    assert str(found) == str(tuple(values))


@pytest.mark.parametrize(
    "value",
    [1e39, [0.0, -4e38], np.array([1e300])],
)
def test_floats_that_overflow_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^float32 holds numbers up to 3\.4028235e38, found "):
        float_feature(value)


@pytest.mark.parametrize(
    "value",
    [
        "15",
        [1.0, None],
        iter([1.0, None, 2.0]),
        None,
        np.zeros((2, 2), np.float32),
        [[1.0]],
        pytest.param([1, 10**400], id="digits"),
    ],
)
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^expected numbers that float32 holds: "):
        float_feature(value)

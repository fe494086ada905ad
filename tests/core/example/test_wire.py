"""Varints: the shortest there are, and known when they are not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.wire import count_minimal, pack_varints, varint, varint_size, varints


@pytest.mark.parametrize(
    ("number", "packed"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (16383, "ff7f"),
        (16384, "808001"),
        (2**63, "80808080808080808001"),
        (2**64 - 1, "ffffffffffffffffff01"),
    ],
)
def test_varints_are_shortest(number: int, packed: str) -> None:
    assert varint(number).hex() == packed
    assert varint_size(number) == len(packed) // 2


@settings(max_examples=200)
@given(numbers=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6))
def test_packed_int64s_come_back(numbers: list[int]) -> None:
    packed = pack_varints(numbers)
    assert list(varints(packed)) == numbers
    assert count_minimal(packed) == len(numbers)
    assert packed == b"".join(varint(number % 2**64) for number in numbers)


@pytest.mark.parametrize(
    ("packed", "count"),
    [
        ("", 0),
        ("00", 1),
        ("8000", -1),
        ("808000", -1),
        ("01 8001 00", 3),
        ("80", -1),
        ("0180", -1),
        ("ffffffffffffffffff01", 1),
        ("ffffffffffffffffff02", -1),
        ("ffffffffffffffffff00", -1),
        ("ffffffffffffffffffff01", -1),
        ("8080808080808080 00", -1),
        ("80808080808080808001 80808080808080808001 05", 3),
    ],
)
def test_only_whole_and_shortest_varints_are_counted(packed: str, count: int) -> None:
    assert count_minimal(bytes.fromhex(packed)) == count

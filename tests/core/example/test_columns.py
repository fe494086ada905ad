"""Payloads read by the hundred, held against the reading of each."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.columns import Layout, Slot, layout_of, message_bytes, read_columns
from tfrecreg.core.example.decode import decode, decode_or_none
from tfrecreg.core.example.model import Example, Kind, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature

INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 300)


def example(label: int, data: bytes, floats: tuple[float, float, float], last: int) -> Example:
    features = {
        "a": int64_feature(label),
        "image/encoded": bytes_feature(data),
        "": float_feature(floats),
        "é": int64_feature(last),
    }
    return dict(sorted(features.items(), key=lambda item: item[0].encode()))


def memory_of(payloads: list[bytes]) -> tuple[bytes, list[int], list[int]]:
    """The payloads behind each other with something between them, where each starts, how long."""
    memory, starts = b"", []
    for payload in payloads:
        memory += b"\n\x0a\x12between"
        starts.append(len(memory))
        memory += payload
    return memory, starts, [len(payload) for payload in payloads]


def read(layout: Layout, payloads: list[bytes]) -> tuple[list[int], list[Any], bytes]:
    memory, starts, lengths = memory_of(payloads)
    rows, columns = read_columns(layout, memory, starts, lengths)
    return rows.tolist(), columns, memory


def values(slot: Slot, column: Any, row: int, memory: bytes) -> tuple[Any, ...]:
    start, stop = int(column.start[row]), int(column.stop[row])
    if slot.kind is Kind.BYTES:
        return (memory[start:stop],)
    if slot.kind is Kind.INT64:
        return (int(column.integers[row]),)
    return tuple(np.frombuffer(memory[start:stop], "<f4").tolist())


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"x": unset_feature()},
        {"x": int64_feature([])},
        {"x": int64_feature([1, 2])},
        {"x": bytes_feature([b"a", b"b"])},
        {f"f{number}": int64_feature(1) for number in range(201)},
        {"n" * 1025: int64_feature(1)},
    ],
)
def test_what_has_no_simple_layout_has_none(odd: Example) -> None:
    assert layout_of(odd) is None


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            INT64,
            st.binary(max_size=300),
            st.tuples(*[st.floats(width=32, allow_nan=False)] * 3),
            INT64,
        ),
        min_size=1,
        max_size=20,
    )
)
def test_the_values_of_all_records_are_those_of_each(records: list[tuple[Any, ...]]) -> None:
    examples = [example(*record) for record in records]
    layout = layout_of(decode(encode(examples[0])))
    assert layout is not None
    rows, columns, memory = read(layout, [encode(each) for each in examples])
    assert rows == list(range(len(examples)))
    for row, each in enumerate(examples):
        for slot, column in zip(layout, columns, strict=True):
            assert values(slot, column, row, memory) == each[slot.name].values


@pytest.mark.parametrize("number", [0, 127, 128, 255, 256, 16384, 2**63 - 1, -1, -(2**63)])
def test_integers_at_the_bounds_of_their_bytes(number: int) -> None:
    examples = [example(label, b"x", (0, 1, 2), number) for label in (1, number)]
    layout = layout_of(decode(encode(examples[0])))
    assert layout is not None
    rows, columns, _ = read(layout, [encode(each) for each in examples])
    assert rows == [0, 1]
    found = {slot.name: column.integers for slot, column in zip(layout, columns, strict=True)}
    assert found["a"].tolist() == [1, number]
    assert found["é"].tolist() == [number, number]


def test_what_is_not_of_the_layout_is_left_to_others() -> None:
    good = example(1, b"x" * 200, (0, 1, 2), 3)
    others: list[Example] = [
        {},
        {**good, "b": int64_feature(1)},
        {name: each for name, each in good.items() if name != "a"},
        {**good, "a": float_feature(1)},
        {**good, "a": int64_feature([])},
        {**good, "a": int64_feature([1, 2])},
        {**good, "a": unset_feature()},
        {**good, "image/encoded": bytes_feature([b"a", b"b"])},
        {**good, "image/encoded": bytes_feature([])},
        {**good, "": float_feature([1, 2])},
    ]
    layout = layout_of(decode(encode(good)))
    assert layout is not None
    payloads = [encode(good), *(encode(each) for each in others), encode(good)]
    assert read(layout, payloads)[0] == [0, len(payloads) - 1]


def test_no_damage_gets_through_that_the_slow_way_would_see() -> None:
    good = example(300, b"x" * 200, (0, 1, 2), -1)
    payload = encode(good)
    layout = layout_of(decode(payload))
    assert layout is not None
    chance = random.Random(1)
    damaged = [payload[:cut] for cut in range(len(payload))]
    damaged += [payload + b"\x00", payload + payload, b"", b"\n\x00"]
    for at in range(len(payload)):
        for _ in range(3):
            piece = bytearray(payload)
            piece[at] = chance.randrange(256)
            damaged.append(bytes(piece))
    rows, columns, memory = read(layout, damaged)
    assert rows  # changed values are in order
    assert len(rows) < len(damaged)
    for place, row in enumerate(rows):
        slow = decode_or_none(damaged[row])
        assert slow is not None
        assert layout_of(slow) == layout
        for slot, column in zip(layout, columns, strict=True):
            found = values(slot, column, place, memory)
            assert np.array_equal(found, slow[slot.name].values, equal_nan=slot.kind is Kind.FLOAT)


@settings(max_examples=200)
@given(st.lists(st.binary(max_size=40), max_size=8))
def test_garbage_is_never_of_the_layout_unless_it_is(payloads: list[bytes]) -> None:
    layout = (Slot("a", Kind.INT64, 1),)
    for row in read(layout, payloads)[0]:
        slow = decode_or_none(payloads[row])
        assert slow is not None
        assert layout_of(slow) == layout


def test_lengths_and_integers_of_many_bytes_are_read() -> None:
    layout = (Slot("a", Kind.BYTES, 1), Slot("b", Kind.INT64, 1))
    records = [
        {"a": bytes_feature(bytes(size)), "b": int64_feature(number)}
        for size in (0, 1, 127, 128, 16_383, 16_384, 3_000_000)
        for number in (0, 127, 128, 2**35, -1, 2**63 - 1, -(2**63))
    ]
    rows, columns, _ = read(layout, [encode(each) for each in records])
    assert len(rows) == len(records)
    assert columns[1].integers.tolist() == [each["b"].values[0] for each in records]
    sizes = columns[0].stop - columns[0].start
    assert sizes.tolist() == [len(each["a"].values[0]) for each in records]
    assert message_bytes(sizes).tolist() == [each["a"].wire_bytes for each in records]

"""Payloads that are read together give what each gives alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.builtin.training.arrays import BlockReader, columns_of, element_of_example
from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import RefusedError

from .test_arrays import FULL, Read

FLAT = columns_of(
    parse_schema(
        """
        feature { name: "label" type: INT presence { min_fraction: 1 } shape {} }
        feature { name: "ids" type: INT presence { min_fraction: 1 } shape { dim { size: 1 } } }
        feature { name: "score" type: FLOAT presence { min_fraction: 1 } shape {} }
        feature { name: "image" type: BYTES presence { min_fraction: 1 } shape {} }
        feature { name: "pair" type: BYTES presence { min_fraction: 1 } value_count { min: 1 max: 1 } }
        feature {
          name: "point" type: FLOAT presence { min_fraction: 1 }
          shape { dim { size: 2 } dim { size: 2 } }
        }
        feature { name: "boxes" type: FLOAT shape { dim {} dim { size: 4 } } }
        feature { name: "tags" type: BYTES }
        feature { name: "more" type: INT }
        feature { name: "absent" type: FLOAT shape { dim {} dim { size: 3 } } }
        """,  # noqa: E501 - a schema as people write it
        "x",
    )
)
INT = st.integers(-(2**63), 2**63 - 1).map(int64_feature)
FLOAT = st.floats(width=32)
BYTES = st.binary(max_size=200)
ROW: dict[str, st.SearchStrategy[Feature]] = {
    "label": INT,
    "ids": INT,
    "score": FLOAT.map(float_feature),
    "image": BYTES.map(bytes_feature),
    "pair": BYTES.map(bytes_feature),
    "point": st.lists(FLOAT, min_size=4, max_size=4).map(float_feature),
    "boxes": st.lists(FLOAT, min_size=4, max_size=4).map(float_feature),
    "tags": BYTES.map(bytes_feature),
    "more": INT,
}


def same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if not isinstance(one, np.ndarray):
        return bool(one == other) or bool(one != one and other != other)
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return (
        one.tolist() == other.tolist() if one.dtype == object else one.tobytes() == other.tobytes()
    )


def read(reader: Read, payload: bytes) -> dict[str, Any] | str:
    try:
        return reader(payload)
    except RefusedError as error:
        return error.message


@pytest.mark.slow
@given(
    examples=st.lists(st.fixed_dictionaries(ROW), min_size=8, max_size=20),
    others=st.lists(st.tuples(st.integers(0, 19), st.sampled_from(sorted(ROW))), max_size=3),
    strange=st.lists(
        st.tuples(st.integers(0, 19), st.sampled_from([b"", b"x", b"\n\x00"])), max_size=2
    ),
    with_schema=st.booleans(),
)
def test_together_and_alone_are_the_same(
    examples: list[dict[str, Feature]],
    others: list[tuple[int, str]],
    strange: list[tuple[int, bytes]],
    with_schema: bool,
) -> None:
    for at, name in others:
        examples[at % len(examples)].pop(name, None)
    payloads = [encode(example) for example in examples]
    for at, data in strange:
        payloads[at % len(payloads)] = data
    columns = FLAT if with_schema else None
    alone, together = partial(element_of_example, columns=columns), BlockReader(columns)
    for _ in range(2):  # the second time, it knows a layout
        for payload, element in zip(payloads, together(payloads), strict=True):
            expected = read(alone, payload)
            if element is not None:
                assert isinstance(expected, dict)
                assert list(element) == list(expected)
                assert all(same(element[name], expected[name]) for name in element), element


def row(number: int) -> bytes:
    return encode(
        {
            "label": int64_feature(number),
            "ids": int64_feature(number),
            "score": float_feature(number / 2),
            "image": bytes_feature(bytes(number)),
            "pair": bytes_feature(b"a"),
            "point": float_feature([number] * 4),
        }
    )


@pytest.mark.parametrize("columns", [FLAT, None])
def test_records_of_one_layout_are_read_together(columns: Any) -> None:
    together = BlockReader(columns)
    payloads = [row(number) for number in range(40)]
    assert None not in together(payloads)
    # One with another layout is left out, and the layout is kept for the others.
    payloads[7] = encode(FULL)
    assert [at for at, each in enumerate(together(payloads)) if each is None] == [7]
    payloads[0] = encode(FULL)
    assert [at for at, each in enumerate(together(payloads)) if each is None] == [0, 7]


def test_blocks_whose_layouts_take_turns_are_read_as_one_by_one() -> None:
    """No record of a block has the layout of the block before: it is looked for anew."""
    one = [row(number) for number in range(12)]
    other = [encode({"more": int64_feature(number)}) for number in range(12)]
    together, alone = BlockReader(None), partial(element_of_example, columns=None)
    read_together = []
    for block in (one, other, one, one, other, other, other):
        elements = together(block)
        read_together.append(len(block) - elements.count(None))
        for payload, element in zip(block, elements, strict=True):
            if element is not None:
                expected = alone(payload)
                assert list(element) == list(expected)
                assert all(same(element[name], expected[name]) for name in element)
    # The first block of another layout is left to the slower way, which reads it one by one.
    assert read_together == [12, 0, 12, 12, 0, 12, 12]


def test_elements_share_no_memory() -> None:
    elements = BlockReader(FLAT)([row(number) for number in range(9)])
    first = elements[0]
    assert first is not None
    for name in ("point", "ids"):
        assert first[name].flags.owndata or first[name].base.size == first[name].size
        first[name][...] = 99
    again = elements[1]
    assert again is not None
    assert again["point"].tolist() == [[1, 1], [1, 1]]

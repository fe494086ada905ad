from __future__ import annotations

import pickle

import pytest

from tfrecreg.core.example.values import bytes_feature, int64_feature
from tfrecreg.core.schema.check import MAX_DISTINCT, DistinctValues
from tfrecreg.core.schema.compiled import compile_schema
from tfrecreg.core.schema.definition import ValueCount
from tfrecreg.core.schema.proto import parse_schema


def seen(bounds: ValueCount, *values: int | bytes) -> DistinctValues:
    distinct = DistinctValues.within(bounds)
    for value in values:
        feature = bytes_feature(value) if isinstance(value, bytes) else int64_feature(value)
        distinct.add(feature)
    return distinct


def test_values_are_told_apart_by_their_bytes() -> None:
    long = b"x" * 40
    assert seen(ValueCount(1, 9), b"a", b"A", b"a", b"", long, long, long + b"y").count == 5
    assert seen(ValueCount(1, 9), 1, 2, 1, -1).count == 3


@pytest.mark.parametrize(
    ("bounds", "values", "verdict"),
    [
        (ValueCount(2, 3), [1], False),
        (ValueCount(2, 3), [1, 2], True),
        (ValueCount(2, 3), [1, 2, 3], True),
        (ValueCount(2, 3), [1, 2, 3, 4], False),
        (ValueCount(None, 1), [], True),
        (ValueCount(1, None), [], False),
        (ValueCount(1, None), range(1000), True),
        (ValueCount(None, 5), range(1000), False),
        (ValueCount(MAX_DISTINCT + 1, None), range(10), False),
    ],
)
def test_their_number_is_held_against_the_bounds(
    bounds: ValueCount, values: list[int], verdict: bool
) -> None:
    assert seen(bounds, *values).verdict(bounds) is verdict


def test_what_is_too_many_to_be_counted_is_not_judged() -> None:
    for bounds in (ValueCount(MAX_DISTINCT + 1, None), ValueCount(None, 2 * MAX_DISTINCT)):
        distinct = DistinctValues.within(bounds)
        distinct.add(int64_feature(range(MAX_DISTINCT + 10)))
        assert distinct.count == MAX_DISTINCT
        assert distinct.verdict(bounds) is None


def test_parts_merge_in_any_order() -> None:
    bounds = ValueCount(1, 50)
    first, second = seen(bounds, 1, 2, 3), pickle.loads(pickle.dumps(seen(bounds, 3, 4)))
    first.merge(second)
    assert first.count == 4


def test_only_types_that_have_values_to_tell_apart_are_counted() -> None:
    text = 'feature { name: "x" type: %s unique_constraints { min: 1 max: 3 } }'
    for kind, wanted in (("INT", ValueCount(1, 3)), ("BYTES", ValueCount(1, 3)), ("FLOAT", None)):
        schema = parse_schema(text % kind, "s.pbtxt")
        assert compile_schema(schema).features[0].distinct == wanted

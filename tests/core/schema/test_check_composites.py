"""Sparse and weighted features: their parts fit together, or it is said how they do not."""

from __future__ import annotations

import pytest

from tfrecreg.core.example.model import Example
from tfrecreg.core.example.values import float_feature, int64_feature, unset_feature
from tfrecreg.core.schema.check import Checker
from tfrecreg.core.schema.compiled import compile_schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import SchemaError

PARTS = """
feature { name: "i" type: INT }
feature { name: "j" type: INT }
feature { name: "v" type: FLOAT }
"""
SPARSE = """sparse_feature { name: "s" index_feature { name: "i" } index_feature { name: "j" }
value_feature { name: "v" } %s }"""
WEIGHTED = """weighted_feature { name: "w" feature { step: "v" } weight_feature { step: "i" } }"""

N, F = int64_feature, float_feature


def found(schema: str, example: Example) -> list[tuple[str, str, str, str | None]]:
    problems = Checker(compile_schema(parse_schema(schema)))(example)
    return [(p.code.code, p.feature, p.message, p.detail) for p in problems]


def sparse(extra: str = "") -> str:
    return PARTS + SPARSE % extra


@pytest.mark.parametrize(
    "example",
    [
        {},
        {"i": unset_feature(), "j": unset_feature()},
        {"i": N([]), "j": N([]), "v": F([])},
        {"i": N([0, 2]), "j": N([1, 10**12]), "v": F([1, 2])},
        {"i": N([1, 0]), "j": N([1, 0]), "v": F([1, 2])},
    ],
)
def test_parts_that_fit_together_are_fine(example: Example) -> None:
    assert found(sparse("dense_shape { dim { size: 3 } dim {} }"), example) == []


@pytest.mark.parametrize(
    ("extra", "example", "message", "detail"),
    [
        (
            "",
            {"i": N(1), "v": F(1)},
            "have all of its parts or none",
            "found 1 value in `i`, no `j`, 1 value in `v`",
        ),
        (
            "",
            {"i": N(1)},
            "have all of its parts or none",
            "found 1 value in `i`, no `j`, no `v`",
        ),
        (
            "",
            {"i": N(1), "j": N(2), "v": unset_feature()},
            "have all of its parts or none",
            "found 1 value in `i`, 1 value in `j`, no `v`",
        ),
        (
            "",
            {"i": N([1, 2]), "j": N(2), "v": F(1)},
            "have one index for each value",
            "found 2 values in `i`, 1 value in `j`, 1 value in `v`",
        ),
        (
            "",
            {"i": N([1, -2, -3]), "j": N([1, 2, 3]), "v": F([1, 2, 3])},
            "have indices from 0 upwards in `i`",
            "found -2, value 1 of 3; 2 such values",
        ),
        (
            "dense_shape { dim { size: 3 } dim { size: 5 } }",
            {"i": N([1]), "j": N([5]), "v": F([1])},
            "have indices from 0 to 4 in `j`",
            "found 5, value 0 of 1",
        ),
        (
            "is_sorted: true",
            {"i": N([0, 1, 1]), "j": N([5, 2, 2]), "v": F([1, 2, 3])},
            "have strictly ascending indices",
            "found (1, 2) after (1, 2), value 2",
        ),
        ("presence { min_fraction: 1 }", {}, "be in every example", "found none of its parts"),
    ],
)
def test_parts_that_do_not_are_told(
    extra: str, example: Example, message: str, detail: str
) -> None:
    assert found(sparse(extra), example) == [("SCH009", "s", f"`s` should {message}", detail)]


def test_an_index_of_another_type_has_a_finding_of_its_own() -> None:
    example = {"i": F([1.0]), "j": N(1), "v": F(1)}
    assert [each[:2] for each in found(sparse(), example)] == [("SCH003", "i")]


@pytest.mark.parametrize(
    "example", [{}, {"v": F([1, 2]), "i": N([5, 6])}, {"v": F([]), "i": N([])}]
)
def test_a_weight_a_value_is_fine(example: Example) -> None:
    assert found(PARTS + WEIGHTED, example) == []


@pytest.mark.parametrize(
    ("example", "asks", "detail"),
    [
        ({"v": F([1, 2])}, "all of its parts or none", "found 2 values in `v`, no `i`"),
        ({"i": N([1, 2])}, "all of its parts or none", "found no `v`, 2 values in `i`"),
        (
            {"i": N([1, 2]), "v": F(1)},
            "one weight in `i` for each value of `v`",
            "found 1 value in `v`, 2 values in `i`",
        ),
    ],
)
def test_weights_that_do_not_fit_are_told(example: Example, asks: str, detail: str) -> None:
    assert found(PARTS + WEIGHTED, example) == [("SCH009", "w", f"`w` should have {asks}", detail)]


def test_out_of_validation_or_of_the_environment_they_are_left() -> None:
    assert found(sparse("lifecycle_stage: ALPHA"), {"i": N(1)}) == []
    schema = 'default_environment: "T" default_environment: "S" ' + sparse()
    schema = schema.replace('name: "j" type: INT', 'name: "j" type: INT not_in_environment: "S"')
    assert compile_schema(parse_schema(schema), "S").sparse == ()
    assert len(compile_schema(parse_schema(schema), "T").sparse) == 1


def test_absent_ones_are_counted() -> None:
    checker = Checker(compile_schema(parse_schema(sparse("presence { min_fraction: 0.5 }"))))
    for example in ({}, {}, {"i": N(1), "j": N(1), "v": F(1)}):
        checker(example)
    assert checker.absent == {"s": 2, "i": 2, "j": 2, "v": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            PARTS + 'sparse_feature { name: "s" value_feature { name: "v" } }',
            "sparse feature `s` has no index feature",
        ),
        (
            PARTS + 'sparse_feature { name: "s" index_feature { name: "i" } }',
            "sparse feature `s` has no value feature",
        ),
        (
            PARTS + 'sparse_feature { name: "s" index_feature { name: "v" } '
            'value_feature { name: "i" } }',
            "sparse feature `s` has the index `v` of type FLOAT, expected INT",
        ),
        (sparse("dense_shape { dim { size: 3 } }"), "sparse feature `s` has 1 dimensions and 2"),
        (
            PARTS + 'weighted_feature { name: "w" feature { step: "v" } '
            'weight_feature { step: "weights" } }',
            "weighted feature `w` uses the feature `weights`, which is not declared",
        ),
    ],
)
def test_a_composite_that_makes_no_sense_is_an_error(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text, "s.pbtxt")
    assert caught.value.message.partition(": ")[2].startswith(message)

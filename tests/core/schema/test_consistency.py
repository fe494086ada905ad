"""Every contradiction has its own message and line."""

from __future__ import annotations

import pytest

from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import SchemaError

TWICE = 'feature { name: "x" type: INT }\nfeature { name: "x" type: FLOAT }'


def x(body: str) -> str:
    return f'feature {{\n  name: "x"\n  {body}\n}}'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n  feature { type: INT }", " a `feature` has no name"),
        (TWICE, "1: feature `x` has two different declarations"),
        (
            'feature { name: "x" type: INT } weighted_feature { name: "x" }',
            "1: feature `x` has two different declarations",
        ),
        (
            x("type: INT string_domain { value: 'a' }"),
            "2: feature `x` is INT, but a `string_domain` is for",
        ),
        (x("type: INT float_domain { min: 0 }"), "2: feature `x` is INT, but a `float_domain` is"),
        (x("type: FLOAT image_domain {}"), "2: feature `x` is FLOAT, but a `image_domain` is for"),
        (
            x("type: INT domain: 'd'") + "\nstring_domain { name: 'd' value: 'a' }",
            "2: feature `x` is INT, but a `string_domain` is for BYTES",
        ),
        (
            x("type: BYTES domain: 'word'") + "\nstring_domain { name: 'words' value: 'a' }",
            "2: feature `x` refers to the domain `word`, which is not defined",
        ),
        (x("type: INT int_domain {\n    min: 5 max: 3 }"), "2: feature `x` has `min` 5 above"),
        (x("type: FLOAT float_domain { min: 0.5 max: -0.5 }"), "2: feature `x` has `min` 0.5"),
        (x("type: FLOAT float_domain { max: nan }"), "2: feature `x` has NaN for its max"),
        ("int_domain { name: 'd' min: 2 max: 1 }", "1: domain `d` has `min` 2 above `max` 1"),
        ("string_domain { value: 'a' }", " a `string_domain` of the schema has no name"),
        ("string_domain { name: 'd' }\nint_domain { name: 'd' }", "1: domain `d` is defined twice"),
        (x("type: INT value_count { min: 3 max: 2 }"), "2: feature `x` has `min` 3 above `max` 2"),
        (
            x("type: INT value_counts { value_count {} value_count { min: 3 max: 2 } }"),
            "2: feature `x` has `min` 3 above `max` 2",
        ),
        (x("type: INT value_count { min: -1 }"), "2: feature `x` has a negative `min`"),
        (
            x("type: INT shape {\n    dim { size: 3 }\n    dim { size: -1 }\n  }"),
            "2: feature `x` has a dimension of size -1",
        ),
        (x("type: INT presence { min_fraction: 1.5 }"), "2: feature `x` has the min_fraction"),
        (x("type: INT presence { min_count: -2 }"), "2: feature `x` has the min_count -2, which"),
        (x("type: INT in_environment: 'S' not_in_environment: 'S'"), "2: feature `x` is included"),
        (x("type: BYTES bool_domain {}"), "2: feature `x` is BYTES, but its `bool_domain` names"),
        (x("type: BYTES bool_domain { true_value: '1' false_value: '1' }"), "2: feature `x` has"),
        (x("type: INT time_domain { string_format: '%Y' }"), "2: feature `x` is INT, but its `tim"),
        (x("type: BYTES time_domain { integer_format: 1 }"), "2: feature `x` is BYTES, but its `t"),
        (
            x(
                "type: BYTES string_domain { value: 'a' } distribution_constraints "
                "{ min_domain_mass: 2 }"
            ),
            "2: feature `x` has the min_domain_mass 2, which is not from 0 to 1",
        ),
        (
            'feature { name: "v" type: INT }\n'
            'sparse_feature { name: "s" index_feature { name: "i" } value_feature { name: "v" } }',
            "2: sparse feature `s` uses the feature `i`, which is not declared",
        ),
        (
            x(
                "type: STRUCT struct_domain {\n feature { name: 'y' type: INT }\n"
                " feature { name: 'y' type: BYTES } }"
            ),
            "4: feature `y` has two different declarations",
        ),
        (
            x("type: STRUCT struct_domain {\n feature { name: 'y' type: INT image_domain {} } }"),
            "4: feature `y` is INT, but a `image_domain` is for BYTES",
        ),
    ],
)
def test_a_contradiction_is_one_line_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text, "s.pbtxt")
    assert caught.value.message.startswith(f"s.pbtxt:{message}")


def test_names_from_the_schema_are_escaped() -> None:
    with pytest.raises(SchemaError, match=r"`a\\n\\x1b` has two different|`a\\x0a\\x1b`"):
        parse_schema(TWICE.replace("x", "a\\n\\033"), "s.pbtxt")


def test_features_out_of_validation_are_held_to_their_names_only() -> None:
    odd = x("type: INT string_domain {} lifecycle_stage: PLANNED value_count { min: 3 max: 2 }")
    assert parse_schema(odd).features[0].is_ignored
    with pytest.raises(SchemaError, match="has no name"):
        parse_schema("feature { lifecycle_stage: PLANNED }")


@pytest.mark.parametrize(
    "text",
    [
        x(""),
        x("string_domain { value: 'a' }"),
        'feature { name: "x" type: INT }\nfeature { type: INT name: "x" }',
        x("type: INT value_counts { value_count {} value_count {} }"),
        x("type: INT int_domain {} distribution_constraints { min_domain_mass: 0.5 }"),
        x("type: BYTES string_domain {}"),
        x("type: FLOAT unique_constraints { max: 3 }"),
        x('type: BYTES time_domain { string_format: "%Q" }'),
        x("type: INT skew_comparator { infinity_norm { threshold: nan } }"),
    ],
)
def test_odd_declarations_are_legal(text: str) -> None:
    assert [feature.name for feature in parse_schema(text, "s.pbtxt").features] == ["x"]

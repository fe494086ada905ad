from __future__ import annotations

import pytest

from tfrecreg.core.schema.compiled import CompiledSchema, compile_schema, schema_json
from tfrecreg.core.schema.definition import IntDomain, SchemaFeature
from tfrecreg.core.schema.proto import parse_schema as parse
from tfrecreg.core.values.errors import SchemaError

ENVIRONMENTS = """
default_environment: "TRAINING"
default_environment: "SERVING"
feature { name: "everywhere" type: INT }
feature { name: "label" type: INT not_in_environment: "SERVING" }
feature { name: "extra" type: INT in_environment: "LAB" }
"""


def rule(body: str) -> SchemaFeature:
    """The declaration of one feature."""
    (only,) = compile_schema(parse(f'feature {{ name: "x" {body} }}')).features
    return only


@pytest.mark.parametrize(
    ("presence", "required", "fraction", "count"),
    [
        ("", False, 0.0, 0),
        ("presence {}", False, 0.0, 0),
        ("presence { min_fraction: 1 }", True, 1.0, 0),
        ("presence { min_fraction: 0.5 }", False, 0.5, 0),
        ("presence { min_count: 3 }", False, 0.0, 3),
        ("presence { min_fraction: 1 min_count: 1 }", True, 1.0, 1),
        ("shape {}", False, 0.0, 0),
    ],
)
def test_only_a_fraction_of_one_makes_a_feature_required(
    presence: str, required: bool, fraction: float, count: int
) -> None:
    made = rule(f"type: INT {presence}")
    assert (made.is_required, made.min_fraction, made.min_count) == (required, fraction, count)


@pytest.mark.parametrize(
    ("length", "low", "high", "multiple"),
    [
        ("", 0, None, 1),
        ("shape {}", 1, 1, 1),
        ("shape { dim { size: 28 } dim { size: 28 } }", 784, 784, 1),
        ("shape { dim { size: 0 } }", 0, 0, 1),
        ("shape { dim {} dim { size: 4 } }", 0, None, 4),
        ("shape { dim {} dim { size: 0 } }", 0, 0, 1),
        ("value_count { min: 1 }", 1, None, 1),
        ("value_count { max: 3 }", 0, 3, 1),
        ("value_count { min: 2 max: 3 }", 2, 3, 1),
        ("value_counts { value_count { min: 2 max: 3 } }", 2, 3, 1),
        ("value_counts { value_count { min: 2 } value_count { min: 2 } }", 0, None, 1),
    ],
)
def test_shapes_and_value_counts_become_bounds(
    length: str, low: int, high: int | None, multiple: int
) -> None:
    made = rule(f"type: INT {length}")
    assert (made.min_values, made.max_values, made.multiple_of) == (low, high, multiple)


def test_without_a_type_only_a_domain_of_strings_or_images_implies_one() -> None:
    assert rule("").kind is None
    assert rule("string_domain { value: 'a' }").kind == "BYTES"
    assert rule("image_domain {}").kind == "BYTES"
    untyped = rule("int_domain { min: 0 }")
    assert (untyped.kind, untyped.checked_domain) == (None, None)


def test_domain_mass_is_for_strings_only() -> None:
    mass = "distribution_constraints { min_domain_mass: 0.5 }"
    assert rule(f"type: BYTES string_domain {{ value: 'a' }} {mass}").domain_mass == 0.5
    number = rule(f"type: INT int_domain {{ min: 0 }} {mass}")
    assert number.domain_mass == 1.0
    assert number.checked_domain == IntDomain(0)


def test_an_empty_string_for_false_is_part_of_the_document() -> None:
    body = 'name: "x" bool_domain { true_value: "yes" false_value: "" }'
    domain = schema_json(parse(f"feature {{ {body} }}"))["features"]["x"]["domain"]
    assert domain == {"kind": "bool", "true_value": "yes", "false_value": ""}


STAGES = ("PLANNED", "ALPHA", "DEPRECATED", "DISABLED", "DEBUG_ONLY", "VALIDATION_DERIVED")


@pytest.mark.parametrize(
    "stage", ["deprecated: true", *(f"lifecycle_stage: {each}" for each in STAGES)]
)
def test_stages_exclude_features(stage: str) -> None:
    compiled = compile_schema(parse(f'feature {{ name: "x" {stage} }}'))
    assert compiled == CompiledSchema(features=(), ignored=frozenset({"x"}))


@pytest.mark.parametrize(
    ("environment", "inside", "elsewhere"),
    [
        (None, ["everywhere", "extra", "label"], set()),
        ("TRAINING", ["everywhere", "extra", "label"], set()),
        ("SERVING", ["everywhere", "extra"], {"label"}),
        ("LAB", ["extra"], {"everywhere", "label"}),
    ],
)
def test_an_environment_takes_in_its_own_features(
    environment: str | None, inside: list[str], elsewhere: set[str]
) -> None:
    compiled = compile_schema(parse(ENVIRONMENTS), environment)
    assert [made.name for made in compiled.features] == inside
    assert compiled.elsewhere == elsewhere


def test_an_environment_that_the_schema_does_not_name_is_an_error() -> None:
    with pytest.raises(SchemaError) as caught:
        compile_schema(parse(ENVIRONMENTS, "s.pbtxt"), "SERVIN")
    assert caught.value.message == (
        "the schema `s.pbtxt` has no environment `SERVIN`, only `LAB`, `SERVING` and `TRAINING`"
    )

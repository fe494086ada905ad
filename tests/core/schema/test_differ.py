from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfrecreg.core.schema.compat import compare_schemas
from tfrecreg.core.schema.compiled import schema_json, tf_source
from tfrecreg.core.schema.proto import parse_schema, render_schema

BODY = """
feature {
  name: "x" type: INT presence { min_fraction: 1 } shape { dim { size: 2 } }
  int_domain { min: 0 max: 9 }
}
"""


def changes(before: str, after: str) -> list[tuple[str, str, str, object, object]]:
    found = compare_schemas(parse_schema(before), parse_schema(after))
    return [(each.part, each.name, each.field, each.expected, each.found) for each in found]


@pytest.mark.parametrize(
    ("old", "new", "field", "expected", "found"),
    [
        ("max: 9", "max: 10", "int_domain.max", "9", "10"),
        ("max: 9", "", "int_domain.max", "9", None),
        ("min_fraction: 1", "min_fraction: 0.5", "presence.min_fraction", "1", "0.5"),
        ("size: 2", "size: 3", "shape", "2", "3"),
        ("dim { size: 2 }", "dim {} dim { size: 2 }", "shape", "2", "? × 2"),
        ("dim { size: 2 }", "", "shape", "2", "scalar"),
        ("shape {", 'in_environment: "T" shape {', "in_environment", None, ("T",)),
        ("shape {", "lifecycle_stage: ALPHA shape {", "lifecycle_stage", None, "ALPHA"),
        (
            "shape {",
            "drift_comparator { infinity_norm { threshold: 0.1 } } shape {",
            "drift_comparator.infinity_norm.threshold",
            None,
            "0.1",
        ),
        ("shape {", 'annotation { tag: "t" } shape {', "annotation.tag", None, ("t",)),
    ],
)
def test_a_field_that_differs_is_told_alone(
    old: str, new: str, field: str, expected: object, found: object
) -> None:
    after = BODY.replace(old, new)
    assert changes(BODY, after) == [("feature", "x", field, expected, found)]
    assert changes(after, BODY) == [("feature", "x", field, found, expected)]


def test_another_domain_is_one_gone_and_one_new() -> None:
    text = BODY.replace("type: INT", "type: BYTES")
    first = text.replace("int_domain { min: 0 max: 9 }", "image_domain {}")
    second = text.replace("int_domain { min: 0 max: 9 }", 'string_domain { value: "a" }')
    assert changes(first, second) == [
        ("feature", "x", "image_domain", "there", None),
        ("feature", "x", "string_domain.value", None, ("a",)),
    ]


def test_features_and_domains_of_one_schema_only_are_told_as_a_whole() -> None:
    more = BODY + 'feature { name: "a" type: BYTES url_domain {} } int_domain { name: "d" max: 3 }'
    assert changes(BODY, more) == [
        ("feature", "a", "", None, ("type: BYTES", "url_domain: there")),
        ("int_domain", "d", "", None, ("max: 3",)),
    ]
    assert [each[3] is None for each in changes(more, BODY)] == [False, False]


def test_fields_of_the_schema_come_first() -> None:
    more = 'default_environment: "T" dataset_constraints { min_examples_count: 3 } ' + BODY
    assert changes(BODY, more + 'feature { name: "a" }') == [
        ("schema", "", "dataset_constraints.min_examples_count", None, "3"),
        ("schema", "", "default_environment", None, ("T",)),
        ("feature", "a", "", None, ()),
    ]


@pytest.mark.medium
@pytest.mark.realdata
def test_real_schemas_differ_from_each_other_and_not_from_themselves(realdata: Path) -> None:
    paths = sorted((realdata / "schema").rglob("*.pbtxt"))
    assert len(paths) == 15
    schemas = [parse_schema(path.read_bytes(), str(path)) for path in paths]
    for schema in schemas:
        shown = json.loads(json.dumps(schema_json(schema), allow_nan=False))
        assert list(shown["features"]) == [each.name for each in schema.features]
        compile(tf_source(schema), schema.where, "exec")
        assert compare_schemas(schema, schema) == ()
        again = parse_schema(render_schema(schema), "again")
        assert compare_schemas(schema, again) == ()
        assert compare_schemas(again, schema) == ()
        assert (again.features, again.sparse, again.weighted) == (
            schema.features,
            schema.sparse,
            schema.weighted,
        )
    pairs = [(a, b) for number, a in enumerate(schemas) for b in schemas[number + 1 :]]
    same = [(a, b) for a, b in pairs if not compare_schemas(a, b)]
    assert len(same) < 10  # some projects keep one file in several places
    for a, b in same:
        assert {feature.name: feature for feature in a.features} == {
            feature.name: feature for feature in b.features
        }


def test_a_message_of_an_unknown_type_is_compared() -> None:
    body = 'feature { name: "x" type: INT annotation { extra_metadata { type_url: "a/b.C" %s } } }'
    before, after = parse_schema(body % "value: 'x'"), parse_schema(body % "value: 'y'")
    assert compare_schemas(before, before) == ()
    assert len(compare_schemas(before, after)) == 1

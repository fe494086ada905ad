"""The rules of compatibility, held against TensorFlow's parser and our own checker.

Both verdicts are asked for over many records: absent, without a kind, of every type, length and
some values. Of these, the ones that the writer's schema allows are parsed by the reader.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import inf, nan
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sequences_support import feature_spec

from tfrecreg.core.example.model import Example, Kind, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.schema.check import Checker
from tfrecreg.core.schema.compat import Mode, clashes, parse_mode
from tfrecreg.core.schema.compiled import compile_schema, tensor_specs
from tfrecreg.core.schema.definition import Schema
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.codes import SCH020
from tfrecreg.core.values.errors import SchemaError, UsageError
from tfrecreg.core.values.findings import Severity

ALWAYS = "presence { min_fraction: 1 }"
NONE = None  # the schema does not have the feature

# name, the records' schema, the reader's schema, the rules that are broken
CASES: list[tuple[str, str | None, str | None, set[str]]] = [
    ("nothing changed", f"type: INT {ALWAYS} shape {{}}", f"type: INT {ALWAYS} shape {{}}", set()),
    ("nothing changed, optional", "type: INT", "type: INT", set()),
    ("a new feature that nobody reads", f"type: INT {ALWAYS}", NONE, set()),
    ("gone, and it was always there", NONE, f"type: INT {ALWAYS} shape {{}}", {"absent"}),
    ("gone, and it was optional", NONE, "type: INT", {"gone"}),
    ("gone, and it was a list in every example", NONE, f"type: INT {ALWAYS}", {"gone"}),
    ("became optional", "type: INT shape {}", f"type: INT {ALWAYS} shape {{}}", {"absent"}),
    ("became optional, a list", "type: INT", f"type: INT {ALWAYS}", {"optional"}),
    ("became required", f"type: INT {ALWAYS} shape {{}}", "type: INT shape {}", set()),
    (
        "in most examples",
        "type: INT presence { min_fraction: 0.9 } shape {}",
        f"type: INT {ALWAYS} shape {{}}",
        {"absent"},
    ),
    (
        "in some examples at least",
        "type: INT presence { min_count: 1 } shape {}",
        f"type: INT {ALWAYS} shape {{}}",
        {"absent"},
    ),
    ("INT became FLOAT", f"type: FLOAT {ALWAYS} shape {{}}", f"type: INT {ALWAYS} shape {{}}",
     {"other-type"}),
    ("INT became BYTES", "type: BYTES", "type: INT", {"other-type"}),
    ("BYTES became FLOAT", "type: FLOAT", "type: BYTES", {"other-type"}),
    ("STRUCT, which is never there", "type: STRUCT", "type: INT", {"gone"}),
    ("STRUCT in the reader, which cannot read it", "type: INT", "type: STRUCT", set()),
    ("the type was taken out", "presence { min_fraction: 1 } shape {}",
     f"type: INT {ALWAYS} shape {{}}", {"any-type"}),
    ("the type was taken out, a list", "", "type: BYTES", {"any-type"}),
    ("a type was put in", f"type: INT {ALWAYS} shape {{}}", f"{ALWAYS} shape {{}}", set()),
    ("deprecated", f"type: INT {ALWAYS} shape {{}} lifecycle_stage: DEPRECATED",
     f"type: INT {ALWAYS} shape {{}}", {"absent"}),
    ("deprecated, a list", "type: INT lifecycle_stage: DEPRECATED", "type: INT", {"any-type"}),
    ("no longer deprecated", "type: INT", "type: INT lifecycle_stage: DEPRECATED", set()),
    ("beta is as good as any", f"type: INT {ALWAYS} shape {{}} lifecycle_stage: BETA",
     f"type: INT {ALWAYS} shape {{}}", set()),
    ("a scalar became a list", f"type: INT {ALWAYS}", f"type: INT {ALWAYS} shape {{}}",
     {"other-length"}),
    ("a list became a scalar", f"type: INT {ALWAYS} shape {{}}", f"type: INT {ALWAYS}", set()),
    ("a scalar as a count of one", f"type: INT {ALWAYS} value_count {{ min: 1 max: 1 }}",
     f"type: INT {ALWAYS} shape {{}}", set()),
    ("a longer vector", f"type: INT {ALWAYS} shape {{ dim {{ size: 4 }} }}",
     f"type: INT {ALWAYS} shape {{ dim {{ size: 3 }} }}", {"other-length"}),
    ("as many values in another shape",
     f"type: INT {ALWAYS} shape {{ dim {{ size: 3 }} dim {{ size: 2 }} }}",
     f"type: INT {ALWAYS} shape {{ dim {{ size: 2 }} dim {{ size: 3 }} }}", {"other-shape"}),
    ("a varying dimension", f"type: INT {ALWAYS} shape {{ dim {{}} dim {{ size: 2 }} }}",
     f"type: INT {ALWAYS} shape {{ dim {{ size: 3 }} dim {{ size: 2 }} }}", {"other-length"}),
    ("a fixed length for a varying one",
     f"type: INT {ALWAYS} shape {{ dim {{ size: 2 }} dim {{ size: 2 }} }}",
     f"type: INT {ALWAYS} shape {{ dim {{}} dim {{ size: 2 }} }}", set()),
    ("rows of another width", f"type: INT {ALWAYS} shape {{ dim {{}} dim {{ size: 3 }} }}",
     f"type: INT {ALWAYS} shape {{ dim {{}} dim {{ size: 2 }} }}", {"other-counts"}),
    ("an empty vector", f"type: INT {ALWAYS} shape {{ dim {{ size: 0 }} }}",
     f"type: INT {ALWAYS} shape {{ dim {{ size: 0 }} }}", set()),
    ("more values", "type: INT value_count { max: 4 }", "type: INT value_count { max: 2 }",
     {"other-counts"}),
    ("fewer values", "type: INT value_count { max: 2 }", "type: INT value_count { max: 4 }", set()),
    ("possibly none", "type: INT", "type: INT value_count { min: 1 }", {"other-counts"}),
    ("another class", "type: INT int_domain { min: 0 max: 10 }",
     "type: INT int_domain { min: 0 max: 9 }", {"other-values"}),
    ("a class less", "type: INT int_domain { min: 0 max: 5 }",
     "type: INT int_domain { min: 0 max: 9 }", set()),
    ("without bounds", "type: INT", "type: INT int_domain { min: 0 }", {"other-values"}),
    ("a bool is 0 or 1", "type: INT bool_domain {}", "type: INT int_domain { min: 0 max: 1 }",
     set()),
    ("0 or 1 is a bool", "type: INT int_domain { min: 0 max: 1 }", "type: INT bool_domain {}",
     set()),
    ("another word", "type: BYTES string_domain { value: 'a' value: 'b' }",
     "type: BYTES string_domain { value: 'a' }", {"other-values"}),
    ("a word less", "type: BYTES string_domain { value: 'a' }",
     "type: BYTES string_domain { value: 'a' value: 'b' }", set()),
    ("any word", "type: BYTES", "type: BYTES string_domain { value: 'a' }", {"other-values"}),
    ("NaN where there was none", "type: FLOAT", "type: FLOAT float_domain { disallow_nan: true }",
     {"other-values"}),
    ("infinity where there was none", "type: FLOAT float_domain { disallow_nan: true }",
     "type: FLOAT float_domain { disallow_nan: true disallow_inf: true }", {"other-values"}),
    ("infinity in neither",
     "type: FLOAT float_domain { min: 0 disallow_nan: true disallow_inf: true }",
     "type: FLOAT float_domain { disallow_nan: true disallow_inf: true }", set()),
    ("bounded, so never infinite", "type: FLOAT float_domain { min: 0 max: 1 disallow_nan: true }",
     "type: FLOAT float_domain { min: 0 max: 1 disallow_nan: true disallow_inf: true }", set()),
    ("a wider range", "type: FLOAT float_domain { min: 0 max: 2 disallow_nan: true }",
     "type: FLOAT float_domain { min: 0 max: 1 disallow_nan: true }", {"other-values"}),
    ("larger images", "type: BYTES image_domain { max_image_byte_size: 9 }",
     "type: BYTES image_domain { max_image_byte_size: 1 }", {"other-values"}),
    ("no image any more", "type: BYTES", "type: BYTES image_domain {}", {"other-values"}),
    ("numbers as text", "type: BYTES int_domain { min: 0 max: 5 }",
     "type: BYTES float_domain { min: 0 max: 9 }", set()),
    ("two at once", "type: INT int_domain { max: 9 }",
     f"type: INT {ALWAYS} int_domain {{ max: 5 }}",
     {"optional", "other-values"}),
]  # fmt: skip

VALUES: dict[Kind, list[Any]] = {
    Kind.INT64: [0, 1, -1, 2, 5, 9, 10, 2**40],
    Kind.FLOAT: [0.0, 1.0, 0.5, -1.0, 1.5, 2.0, 100.0, nan, inf, -inf],
    Kind.BYTES: [b"a", b"b", b"", b"5", b"7.5", b"0", b"many bytes of it"],
}
MAKERS = {Kind.INT64: int64_feature, Kind.FLOAT: float_feature, Kind.BYTES: bytes_feature}


@cache
def candidates() -> list[Example]:
    """Records with the feature ``x`` in every form, and one without it."""
    made: list[Example] = [{}, {"x": unset_feature()}]
    for kind, values in VALUES.items():
        made += [{"x": MAKERS[kind]([value] * count)} for value in values for count in range(7)]
    return made


def declared(body: str | None) -> Schema:
    others = 'feature { name: "other" type: INT }'
    return parse_schema(others if body is None else f'{others} feature {{ name: "x" {body} }}')


def allowed(schema: Schema) -> Iterator[Example]:
    """The records without an error."""
    check = Checker(compile_schema(schema))
    for example in candidates():
        if not any(problem.code.severity is Severity.ERROR for problem in check(example)):
            yield example


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


def parses(tf: Any, reader: Schema, records: list[Example]) -> bool:
    """Whether TensorFlow parses all the records by the reader's specification."""
    try:
        tf.io.parse_example([encode(each) for each in records], feature_spec(tf, reader))
    except tf.errors.InvalidArgumentError:
        return False
    return True


@pytest.mark.parametrize(
    ("records", "reader", "rules"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_case_breaks_the_rules_that_it_should(
    records: str | None, reader: str | None, rules: set[str]
) -> None:
    found = clashes(declared(reader), declared(records))
    assert {clash.rule for clash in found} == rules
    assert all(clash.feature == "x" for clash in found)
    for clash in found:
        assert clash.message.startswith("`x` should ")
        assert "; in the records it " in clash.message
        assert "\n" not in clash.message
        assert not clash.message.endswith(".")


def test_tensorflow_parses_what_is_accepted_and_fails_on_what_is_refused(tf: Any) -> None:
    differ = []
    for name, records, reader, _ in CASES:
        written = list(allowed(declared(records)))
        assert written, name
        fails = any(c.code is SCH020 for c in clashes(declared(reader), declared(records)))
        if parses(tf, declared(reader), written) is fails:
            differ.append(name)
    assert differ == []


def clean(reader: Schema, written: list[Example]) -> bool:
    """Whether the reader's own schema allows what the records hold of its features."""
    features = {spec.name for spec in tensor_specs(reader)}  # the others it does not look at
    check = Checker(compile_schema(reader))
    return not any(
        problem.code.severity is Severity.ERROR and problem.feature in features
        for example in written
        for problem in check(example)
    )


@pytest.mark.parametrize(
    ("name", "records", "reader", "rules"), CASES, ids=[case[0] for case in CASES]
)
def test_a_reader_that_is_not_warned_of_gets_what_its_schema_allows(
    name: str, records: str | None, reader: str | None, rules: set[str]
) -> None:
    # Of a shape only the number of values can be told, and of an image nothing; what is optional
    # and gone keeps to its schema all the same.
    if rules & {"other-shape", "gone"} or name == "no image any more":
        return
    assert clean(declared(reader), list(allowed(declared(records)))) is not bool(rules)


presence = st.sampled_from(["", ALWAYS, "presence { min_fraction: 0.5 }"])
lengths = st.sampled_from(
    ["", "shape {}", "value_count { min: 1 max: 1 }", "value_count { min: 2 }",
     "value_count { max: 3 }", "shape { dim { size: 2 } dim { size: 2 } }",
     "shape { dim {} dim { size: 2 } }", "shape { dim { size: 0 } }"]
)  # fmt: skip
kinds = st.sampled_from(
    ["type: INT", "type: INT int_domain { min: 0 max: 5 }", "type: INT bool_domain {}",
     "type: INT int_domain { min: 1 }", "type: FLOAT", "type: FLOAT float_domain { min: 0 max: 1 }",
     "type: FLOAT float_domain { disallow_nan: true }", "type: FLOAT bool_domain {}",
     "type: FLOAT float_domain { min: 0 disallow_nan: true disallow_inf: true }", "type: BYTES",
     "type: BYTES string_domain { value: 'a' value: '5' }", "type: BYTES int_domain { max: 6 }",
     "type: BYTES float_domain { min: 0 max: 9 disallow_nan: true }",
     "type: BYTES bool_domain { true_value: 'a' false_value: 'b' }", ""]
)  # fmt: skip
stages = st.sampled_from(["", "", "", "lifecycle_stage: ALPHA", "lifecycle_stage: BETA"])
bodies = st.builds(" ".join, st.tuples(kinds, presence, lengths, stages)) | st.none()


@pytest.mark.medium
@settings(max_examples=150)
@given(records=bodies, reader=bodies)
def test_tensorflow_agrees_on_any_two_schemas(
    tf: Any, records: str | None, reader: str | None
) -> None:
    written = list(allowed(declared(records)))
    found = clashes(declared(reader), declared(records))
    fails = any(clash.code is SCH020 for clash in found)
    if written:  # a few schemas contradict themselves, and nothing keeps them
        assert parses(tf, declared(reader), written) is not fails
    if not found:
        assert clean(declared(reader), written)


def test_environments_are_compared_on_their_own() -> None:
    head = 'default_environment: "T" default_environment: "S" '
    label = f'feature {{ name: "x" type: INT {ALWAYS} shape {{}} not_in_environment: "S" }}'
    reader, records = parse_schema(head + label), parse_schema(head)
    assert [clash.rule for clash in clashes(reader, records, "T")] == ["absent"]
    assert clashes(reader, records, "S") == ()
    with pytest.raises(SchemaError, match="has no environment `U`"):
        clashes(reader, records, "U")


def test_modes_have_two_forms_each() -> None:
    for mode in get_args(Mode):
        assert parse_mode(mode) == (mode, False)
        assert parse_mode(f"{mode}-transitive") == (mode, True)
    with pytest.raises(UsageError, match="found `sideways`"):
        parse_mode("sideways")

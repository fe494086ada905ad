from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Example, Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.schema.check import Checker
from tfrecreg.core.schema.compiled import CompiledSchema, compile_schema
from tfrecreg.core.schema.definition import (
    BoolDomain,
    FloatDomain,
    IntDomain,
    SchemaFeature,
    StringDomain,
    ValueCount,
)
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.findings import Severity

REQUIRED = "presence { min_fraction: 1 }"


def problems(body: str, feature: Feature | None) -> list[tuple[str, str, str | None]]:
    """Code, message and detail of what is wrong with one feature under one declaration."""
    checker = Checker(compile_schema(parse_schema(f'feature {{ name: "x" {body} }}')))
    example = {} if feature is None else {"x": feature}
    read_back = decode(encode(example))
    found = [(p.code.code, p.message, p.detail) for p in checker(read_back)]
    assert all(problem.feature == "x" for problem in checker(read_back))
    return found


B, F, N = bytes_feature, float_feature, int64_feature


@pytest.mark.parametrize(
    ("body", "feature"),
    [
        ("type: INT", None),
        ("type: INT", unset_feature()),
        (f"type: INT {REQUIRED}", N([])),
        (f"type: INT {REQUIRED} shape {{}}", N(3)),
        ("type: INT shape { dim { size: 2 } dim { size: 3 } }", N(range(6))),
        ("type: INT shape { dim {} dim { size: 3 } }", N(range(6))),
        ("type: INT shape { dim { size: 0 } }", N([])),
        ("type: INT value_count { min: 2 max: 3 }", N([1, 2])),
        ("type: INT value_count { min: 2 }", None),
        ("", B(b"anything")),
        ("", F(nan)),
        ("type: INT int_domain { min: 0 max: 9 }", N([0, 9])),
        ("type: INT int_domain { min: 0 max: 9 }", N([])),
        ("type: INT int_domain {}", N(-(2**63))),
        ("type: BYTES int_domain { min: 0 max: 9 }", B([b" 5", b"+5", b"9\n"])),
        ("type: FLOAT float_domain { min: 0.1 max: 0.3 }", F([0.1, 0.3])),
        ("type: FLOAT float_domain { min: 0 disallow_nan: false disallow_inf: false }", F(nan)),
        ("type: FLOAT float_domain { disallow_nan: false disallow_inf: false }", F([nan, -inf])),
        ("type: FLOAT float_domain { disallow_inf: true }", F(nan)),
        ("type: FLOAT float_domain { disallow_nan: true }", F(inf)),
        ("type: BYTES float_domain { min: 0.1 max: 0.3 }", B([b"0.1", b"3e-1"])),
        ("type: BYTES string_domain { value: 'a' value: 'b' }", B([b"a", b"b", b"a"])),
        ("type: INT bool_domain {}", N([0, 1])),
        ("type: FLOAT bool_domain {}", F([0.0, 1.0])),
        ("type: BYTES bool_domain { true_value: 'y' }", B(b"y")),
        ("type: BYTES image_domain { max_image_byte_size: 3 }", B([b"123", b""])),
        ("type: BYTES url_domain {}", B(b"no url")),
        ("type: INT lifecycle_stage: ALPHA presence { min_fraction: 1 }", None),
        ("type: INT lifecycle_stage: DEPRECATED", B(b"a")),
    ],
)
def test_what_the_schema_allows_has_no_problem(body: str, feature: Feature | None) -> None:
    assert problems(body, feature) == []


@pytest.mark.parametrize(
    ("body", "feature", "code", "message", "detail"),
    [
        (f"type: INT {REQUIRED}", None, "SCH002", "be in every example", None),
        (
            f"type: INT {REQUIRED}",
            unset_feature(),
            "SCH002",
            "be in every example",
            "there, but its kind is not set",
        ),
        ("type: INT", B(b"7"), "SCH003", "be INT", "found BYTES"),
        ("type: INT", F([]), "SCH003", "be INT", "found FLOAT"),
        ("type: FLOAT", N(7), "SCH003", "be FLOAT", "found INT"),
        ("type: STRUCT", N(7), "SCH003", "be STRUCT", "found INT"),
        ("image_domain {}", N(7), "SCH003", "be BYTES", "found INT"),
        ("type: INT shape {}", N([]), "SCH004", "have exactly 1 value", "found 0 values"),
        (
            "type: INT shape { dim { size: 2 } dim { size: 3 } }",
            N(range(5)),
            "SCH004",
            "have the shape 2 × 3, so 6 values",
            "found 5 values",
        ),
        (
            "type: INT shape { dim { size: 1 } }",
            N([1, 2]),
            "SCH004",
            "have the shape 1, so 1 value",
            "found 2 values",
        ),
        (
            "type: INT shape { dim {} dim { size: 3 } }",
            N(range(4)),
            "SCH004",
            "have the shape ? × 3, so a multiple of 3 values",
            "found 4 values",
        ),
        (
            "type: INT value_count { min: 2 }",
            N(1),
            "SCH004",
            "have at least 2 values",
            "found 1 value",
        ),
        (
            "type: INT value_count { max: 1 }",
            N([1, 2]),
            "SCH004",
            "have at most 1 value",
            "found 2 values",
        ),
        (
            "type: INT value_count { min: 1 max: 2 }",
            N([]),
            "SCH004",
            "have 1 to 2 values",
            "found 0 values",
        ),
        (
            "type: INT value_count { min: 2 max: 2 }",
            N(1),
            "SCH004",
            "have exactly 2 values",
            "found 1 value",
        ),
        ("value_count { min: 2 }", B(b"a"), "SCH004", "have at least 2 values", "found 1 value"),
        (
            "type: INT int_domain { min: 0 max: 9 }",
            N(12),
            "SCH006",
            "be a whole number from 0 to 9",
            "found 12",
        ),
        (
            "type: INT int_domain { min: 0 }",
            N([1, -1, -2]),
            "SCH006",
            "be a whole number of at least 0",
            "found -1, value 1 of 3; 2 such values",
        ),
        (
            "type: INT int_domain { max: 9 }",
            N(10),
            "SCH006",
            "be a whole number of at most 9",
            "found 10",
        ),
        (
            "type: BYTES int_domain { min: 0 max: 9 }",
            B(b"12"),
            "SCH006",
            "be a whole number from 0 to 9",
            "found `12`",
        ),
        ("type: BYTES int_domain {}", B(b"1_0"), "SCH006", "be a whole number", "found `1_0`"),
        (
            "type: BYTES int_domain {}",
            B(b"9223372036854775808"),
            "SCH006",
            "be a whole number",
            "found `9223372036854775808`",
        ),
        (
            "type: FLOAT float_domain { min: 0 max: 1 }",
            F([0.5, 1.5]),
            "SCH006",
            "be a number from 0 to 1",
            "found 1.5, value 1 of 2",
        ),
        (
            "type: FLOAT float_domain { max: 1 disallow_nan: true }",
            F(inf),
            "SCH006",
            "be a number of at most 1",
            "found inf",
        ),
        (
            "type: FLOAT float_domain { min: 0.5 }",
            F([0.0] * 100),
            "SCH006",
            "be a number of at least 0.5",
            "found 0, value 0 of 100; 100 such values",
        ),
        ("type: BYTES float_domain {}", B(b"x1"), "SCH006", "be a number", "found `x1`"),
        (
            "type: BYTES string_domain { value: 'cat' value: 'dog' }",
            B(b"goat"),
            "SCH006",
            "be one of `cat` or `dog`",
            "found `goat`",
        ),
        (
            "type: BYTES string_domain { value: 'a' }",
            B(b"\xff\x1b[31m"),
            "SCH006",
            "be one of `a`",
            r"found `\xff\x1b[31m`",
        ),
        (
            "type: BYTES string_domain { " + " ".join(f"value: '{n}'" for n in range(6)) + " }",
            B(b"6"),
            "SCH006",
            "be one of the 6 strings of its domain",
            "found `6`",
        ),
        ("type: BYTES string_domain {}", B(b"6"), "SCH006", "have no value at all", "found `6`"),
        ("type: INT bool_domain {}", N(2), "SCH006", "be 0 or 1", "found 2"),
        ("type: FLOAT bool_domain {}", F(0.5), "SCH006", "be 0 or 1", "found 0.5"),
        ("type: FLOAT bool_domain {}", F(nan), "SCH006", "be 0 or 1", "found nan"),
        (
            "type: BYTES bool_domain { true_value: 'y' false_value: 'n' }",
            B(b"q"),
            "SCH006",
            "be `y` or `n`",
            "found `q`",
        ),
        (
            "type: BYTES image_domain { max_image_byte_size: 3 }",
            B([b"12345", b"1234"]),
            "SCH006",
            "hold images of at most 3 bytes",
            "found an image of 5 bytes",
        ),
        ("type: FLOAT", F([0.5, nan]), "SCH007", "be finite", "found nan, value 1 of 2"),
        (
            "type: FLOAT",
            F([0.5] * 99 + [-inf]),
            "SCH007",
            "be finite",
            "found -inf, value 99 of 100",
        ),
        (
            "type: FLOAT float_domain { disallow_nan: true }",
            F(nan),
            "SCH007",
            "be finite",
            "found nan",
        ),
        (
            "type: FLOAT float_domain { max: 1 disallow_inf: true }",
            F(inf),
            "SCH007",
            "be finite",
            "found inf",
        ),
        ("type: BYTES float_domain {}", B(b"nan"), "SCH007", "be finite", "found nan"),
        ("type: BYTES float_domain {}", B(b"-1e999"), "SCH007", "be finite", "found -inf"),
    ],
)
def test_each_rule_finds_what_breaks_it(
    body: str, feature: Feature | None, code: str, message: str, detail: str | None
) -> None:
    assert problems(body, feature) == [(code, f"`x` should {message}", detail)]


def test_one_feature_can_have_several_problems() -> None:
    found = problems("type: FLOAT shape {} float_domain { max: 1 }", F([2.0, nan]))
    assert [code for code, _, _ in found] == ["SCH004", "SCH006", "SCH007"]


def test_a_wrong_type_is_not_held_to_anything_else() -> None:
    found = problems("type: FLOAT shape {} float_domain { max: 1 }", N([2, 3]))
    assert [code for code, _, _ in found] == ["SCH003"]


@pytest.mark.parametrize(
    ("domain", "severity"),
    [
        ("", Severity.WARNING),
        ("float_domain { min: 0 }", Severity.WARNING),
        ("float_domain { disallow_nan: true }", Severity.ERROR),
    ],
)
def test_not_a_number_is_an_error_only_where_the_schema_says_so(
    domain: str, severity: Severity
) -> None:
    schema = parse_schema(f'feature {{ name: "x" type: FLOAT {domain} }}')
    (problem,) = Checker(compile_schema(schema))({"x": F(nan)})
    assert problem.code.code == "SCH007"
    assert problem.code.severity is severity


def test_features_that_the_schema_does_not_have_are_unexpected() -> None:
    checker = Checker(compile_schema(parse_schema('feature { name: "x" type: INT }')))
    found = checker({"z\n": N([1, 2]), "x": N(1), "a": unset_feature()})
    assert [(p.code.code, p.feature, p.message, p.detail) for p in found] == [
        ("SCH005", "a", "`a` is not in the schema", "found no kind, 0 values"),
        ("SCH005", "z\n", r"`z\x0a` is not in the schema", "found INT, 2 values"),
    ]


def test_an_unexpected_feature_is_found_beside_a_missing_one() -> None:
    schema = parse_schema(f'feature {{ name: "label" type: INT {REQUIRED} }}')
    found = Checker(compile_schema(schema))({"lable": N(1)})
    assert [(p.code.code, p.feature) for p in found] == [("SCH002", "label"), ("SCH005", "lable")]


def test_a_checker_counts_absences_and_values_outside_their_domain() -> None:
    schema = parse_schema(
        """
        feature { name: "a" type: INT }
        feature {
          name: "w" type: BYTES string_domain { value: "x" } shape { dim { size: 2 } }
          distribution_constraints { min_domain_mass: 0.5 }
        }
        """
    )
    checker = Checker(compile_schema(schema))
    assert [len(checker({"w": B(w)})) for w in (["x", "x"], ["x", "y"], ["y", "y", "y"])] == [
        0,
        1,
        2,
    ]
    assert checker.absent == {"a": 3}
    mass = checker.masses["w"]
    assert (mass.total, mass.outside) == (7, 4)


# Random schemas, and examples that conform.

NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
INT64 = st.integers(-(2**63), 2**63 - 1)
FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def rules(draw: st.DrawFn, name: str) -> SchemaFeature:
    kind = draw(st.sampled_from(["INT", "FLOAT", "BYTES", None]))
    low = draw(st.integers(0, 3))
    domain: object = None
    if kind == "INT":
        ends = sorted(draw(st.tuples(INT64, INT64)))
        domain = draw(st.sampled_from([None, IntDomain(*ends), BoolDomain(), IntDomain(ends[0])]))
    elif kind == "FLOAT":
        floats = sorted(draw(st.tuples(FINITE, FINITE)))
        domain = draw(st.sampled_from([FloatDomain(), FloatDomain(*floats, True, True)]))
    elif kind == "BYTES":
        words = StringDomain(tuple(draw(st.lists(st.text(max_size=5), min_size=1, max_size=9))))
        domain = draw(st.sampled_from([None, words, BoolDomain("yes", "no"), IntDomain(0, 99)]))
    return SchemaFeature(
        name=name,
        type=kind,
        min_fraction=draw(st.sampled_from([0.0, 1.0])),
        value_count=ValueCount(low, draw(st.none() | st.integers(low, 5))),
        domain=domain,
    )


def values(rule: SchemaFeature) -> st.SearchStrategy[object]:
    domain = rule.domain
    if isinstance(domain, StringDomain):
        return st.sampled_from(sorted(domain.allowed))
    if isinstance(domain, BoolDomain):
        return st.sampled_from([b"yes", b"no"] if rule.kind == "BYTES" else [0, 1])
    if isinstance(domain, IntDomain) and rule.kind == "BYTES":
        return st.integers(domain.min, domain.max).map(lambda number: b"%d" % number)
    if isinstance(domain, IntDomain):
        high = 2**63 - 1 if domain.max is None else domain.max
        return st.integers(domain.min, high)
    if isinstance(domain, FloatDomain):
        # Hypothesis tells -0.0 from 0.0, which a domain does not.
        low, high = (None if each is None else each + 0.0 for each in (domain.min, domain.max))
        return st.floats(low, high, width=32, allow_nan=False, allow_infinity=False)
    return {"INT": INT64, "BYTES": st.binary(max_size=9)}.get(rule.kind or "", FINITE)


MAKERS = {"INT": N, "FLOAT": F, "BYTES": B, None: F}


@st.composite
def kept_schemas(draw: st.DrawFn) -> tuple[CompiledSchema, Example]:
    names = draw(st.lists(NAMES, max_size=6, unique=True))
    schema = CompiledSchema(features=tuple(draw(rules(name)) for name in sorted(names)))
    example: dict[str, Feature] = {}
    for rule in schema.features:
        if not rule.is_required and draw(st.booleans()):
            if draw(st.booleans()):
                example[rule.name] = unset_feature()
            continue
        high = rule.min_values + 2 if rule.max_values is None else rule.max_values
        listed = st.lists(values(rule), min_size=rule.min_values, max_size=high)
        example[rule.name] = MAKERS[rule.type](draw(listed))
    return schema, example


@pytest.mark.medium
@given(kept_schemas())
@settings(max_examples=200)
def test_examples_made_from_a_schema_have_no_problem(made: tuple[CompiledSchema, Example]) -> None:
    schema, example = made
    assert list(Checker(schema)(decode(encode(example)))) == []


@pytest.mark.medium
@given(kept_schemas(), st.data())
@settings(max_examples=100)
def test_taking_one_required_feature_away_is_found(
    made: tuple[CompiledSchema, Example], data: st.DataObject
) -> None:
    schema, example = made
    required = [rule.name for rule in schema.features if rule.is_required]
    if not required:
        return
    gone = data.draw(st.sampled_from(required))
    rest = {name: feature for name, feature in example.items() if name != gone}
    assert [(p.code.code, p.feature) for p in Checker(schema)(rest)] == [("SCH002", gone)]

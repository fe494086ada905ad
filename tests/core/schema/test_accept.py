"""A changed schema takes in the data that broke it, and nothing else in it changes."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.builtin.schemas.accept import Answer, Violations, edit_schema
from tfrecreg.builtin.schemas.records import SchemaPart
from tfrecreg.core.example.model import Example
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.schema.check import Checker
from tfrecreg.core.schema.compiled import compile_schema
from tfrecreg.core.schema.proto import parse_schema, schema_message
from tfrecreg.core.values.findings import Severity

ALWAYS = "presence { min_fraction: 1 min_count: 1 }"
B, F, N = bytes_feature, float_feature, int64_feature
BY_HAND = "no change is proposed: correct the data, or edit the schema"
OUTSIDE = "more than 100 strings are outside its domain, or some are too long or not UTF-8"


def declared(body: str) -> str:
    return f'# why\nfeature {{\n  name: "x"  # this\n  {body}\n}}\n'


def same(one: str, other: str) -> bool:
    """Whether two texts mean the same schema."""
    return bool(schema_message(parse_schema(one)) == schema_message(parse_schema(other)))


def accepted(
    text: str, examples: Iterable[Example]
) -> tuple[str, list[Answer], list[Answer], set[tuple[str, str]]]:
    """The new text, what was changed, what was refused, and the problems that are left."""
    schema = parse_schema(text)
    rules = compile_schema(schema).by_name
    checker, violations, broken = Checker(compile_schema(schema)), Violations(), set()
    examples = list(examples)
    for example in examples:
        for problem in checker(example):
            broken.add((problem.code.code, problem.feature))
            name = problem.feature
            violations.add(example.get(name), problem, rules.get(name))
    facts = SchemaPart(examples=len(examples), absent=checker.absent)
    for rule in rules.values():
        present = len(examples) - checker.absent.get(rule.name, 0)
        if present < rule.min_count or present < rule.min_fraction * len(examples):
            broken.add(("SCH002", rule.name))
    text, edits, refused = edit_schema(
        schema, broken, violations, [(compile_schema(schema), facts)]
    )
    after = Checker(compile_schema(parse_schema(text)))
    left = {
        (problem.code.code, problem.feature)
        for each in examples
        for problem in after(each)
        if problem.code.severity is Severity.ERROR
    }
    return text, edits, refused, left


@pytest.mark.parametrize(
    ("before", "examples", "after"),
    [
        ("type: INT int_domain { min: 0 max: 9 }", [{"x": N([3, 12, -1])}],
         "type: INT int_domain { min: -1 max: 12 }"),
        ("type: INT int_domain { min: 0 }", [{"x": N(-5)}], "type: INT int_domain { min: -5 }"),
        ("type: FLOAT float_domain { min: 0 max: 1 }", [{"x": F(1.1)}],
         "type: FLOAT float_domain { min: 0 max: 1.10000002 }"),
        ("type: FLOAT float_domain { disallow_nan: true }", [{"x": F(nan)}],
         "type: FLOAT float_domain { disallow_nan: false }"),
        ("type: FLOAT", [{"x": F([nan, inf])}],
         "type: FLOAT\n  float_domain { disallow_nan: false disallow_inf: false }"),
        ("type: BYTES string_domain { value: 'a' }", [{"x": B([b"c", b"b", b"a"])}],
         "type: BYTES string_domain { value: 'a' value: \"b\" value: \"c\" }"),
        ("type: BYTES image_domain { max_image_byte_size: 2 }", [{"x": B([b"12345", b"1"])}],
         "type: BYTES image_domain { max_image_byte_size: 5 }"),
        ("type: INT value_count { min: 1 max: 2 }", [{"x": N([])}, {"x": N([1, 2, 3])}],
         "type: INT value_count { min: 0 max: 3 }"),
        ("type: INT value_counts { value_count { max: 2 } }", [{"x": N([1, 2, 3])}],
         "type: INT value_counts { value_count { max: 3 } }"),
        ("type: INT shape {}", [{"x": N([1, 2])}], "type: INT value_count { min: 1 max: 2 }"),
        ("type: INT shape { dim {} dim { size: 2 } }", [{"x": N([1, 2, 3])}],
         "type: INT value_count { min: 0 }"),
        (f"type: INT {ALWAYS} shape {{ dim {{ size: 2 }} }}", [{}, {"x": N([1, 2])}],
         "type: INT presence { min_count: 1 } value_count { min: 2 max: 2 }"),
        (f"type: INT {ALWAYS} shape {{}}", [{}, {"x": N([1, 2])}],
         "type: INT presence { min_count: 1 } value_count { min: 1 max: 2 }"),
        (f"type: INT {ALWAYS}", [{}, {"x": unset_feature()}], "type: INT"),
        ("type: INT presence { min_fraction: 0.9 }", [{}, {}, {"x": N(1)}],
         "type: INT presence { min_fraction: 0.3333 }"),
        ("type: INT presence { min_fraction: 0.9 }", [{}, {"x": N(1)}, {"x": N(1)}],
         "type: INT presence { min_fraction: 0.6666 }"),
        ("type: INT presence { min_count: 5 }", [{}, {"x": N(1)}, {"x": N(1)}],
         "type: INT presence { min_count: 2 }"),
        ("type: INT presence { min_count: 5 }", [{}], "type: INT"),
        ("type: INT int_domain { max: 1 }", [{"x": F(5)}, {"x": F(2)}, {}], "type: FLOAT"),
        (f"type: INT {ALWAYS} shape {{}}", [{"x": F(1)}, {"x": F([])}],
         f"type: FLOAT {ALWAYS} value_count {{ min: 0 max: 1 }}"),
    ],
)  # fmt: skip
def test_the_smallest_change_takes_the_data_in(
    before: str, examples: list[Example], after: str
) -> None:
    text, edits, refused, left = accepted(declared(before), examples)
    assert same(text, declared(after))
    assert text.startswith('# why\nfeature {\n  name: "x"  # this\n')
    assert edits
    assert all(each.feature == "x" and each.text for each in edits)
    assert (refused, left) == ([], set())


def test_a_new_feature_is_drafted_behind_the_others() -> None:
    examples = [{"x": N(1), "class/label": N(n % 3), "some": F(0)} for n in range(6)]
    examples.append({"x": N(1), "class/label": N(1)})
    text, edits, refused, left = accepted(declared("type: INT"), examples)
    assert text.startswith(declared("type: INT"))
    label, some = parse_schema(text).features[1:]
    assert (label.name, label.is_required, some.is_required) == ("class/label", True, False)
    assert "# in 6 of 7 examples" in text
    assert [(each.feature, each.text) for each in edits] == [
        ("class/label", "a new feature"),
        ("some", "a new feature"),
    ]
    assert (refused, left) == ([], set())


def test_a_shared_domain_is_widened_where_it_is() -> None:
    text = (
        declared("type: BYTES domain: 'words'")
        + 'string_domain { name: "words" value: "a" }\n# the end\n'
    )
    after, _, refused, left = accepted(text, [{"x": B(b'b"')}])
    assert same(after, text.replace('value: "a"', 'value: "a" value: "b\\""'))
    assert after.endswith("}\n# the end\n")
    assert (refused, left) == ([], set())


def test_a_shared_domain_takes_in_the_values_of_all_its_features() -> None:
    text = (
        "feature { name: 'x' type: BYTES domain: 'words' }\n"
        "feature { name: 'y' type: BYTES domain: 'words' }\n"
        "feature { name: 'a' type: INT domain: 'range' }\n"
        "feature { name: 'b' type: INT domain: 'range' }\n"
        "string_domain { name: 'words' value: 'a' }\nint_domain { name: 'range' min: 0 max: 9 }\n"
    )
    example = {"x": B(b"b"), "y": B([b"b", b"c"]), "a": N(-5), "b": N([-3, 12])}
    after, _, refused, left = accepted(text, [example])
    wider = text.replace("value: 'a'", "value: ['a', 'b', 'c']")
    assert same(after, wider.replace("min: 0 max: 9", "min: -5 max: 12"))
    assert (refused, left) == ([], set())


def test_a_field_is_added_behind_one_that_is_removed() -> None:
    text = f"feature {{\n  name: 'x'\n  type: FLOAT\n  {ALWAYS}\n}}\n"
    schema = parse_schema(text)
    violations = Violations()
    (problem,) = Checker(compile_schema(schema))({"x": F(nan)})
    violations.add(F(nan), problem, schema.features[0])
    findings, rules = [("SCH002", "x"), ("SCH007", "x")], compile_schema(schema)
    after, _, _ = edit_schema(
        schema, findings, violations, [(rules, SchemaPart(examples=2, absent={"x": 1}))]
    )
    assert same(
        after,
        "feature { name: 'x' type: FLOAT presence { min_count: 1 } "
        "float_domain { disallow_nan: false } }",
    )
    after, _, _ = edit_schema(
        schema, findings, violations, [(rules, SchemaPart(examples=2, absent={"x": 2}))]
    )
    assert same(after, "feature { name: 'x' type: FLOAT float_domain { disallow_nan: false } }")


def test_a_split_whose_environment_lacks_the_feature_says_nothing_about_it() -> None:
    text = "default_environment: ['T', 'S']\n"
    text += declared("type: INT presence { min_count: 5 } not_in_environment: 'S'")
    schema, violations = parse_schema(text), Violations()
    rules = compile_schema(schema, "T")
    for problem in 3 * Checker(rules)({"x": F(1)}):
        violations.add(F(1), problem, schema.features[0])
    train = rules, SchemaPart(examples=4, absent={"x": 1})
    serving = compile_schema(schema, "S"), SchemaPart(examples=2)
    findings = [("SCH002", "x"), ("SCH003", "x")]
    after, _, refused = edit_schema(schema, findings, violations, [train, serving])
    assert same(after, text.replace("INT", "FLOAT").replace("5", "3"))
    assert refused == []


@pytest.mark.parametrize(
    ("body", "examples", "code", "reason"),
    [
        ("type: INT", [{"x": N(1)}, {"x": F(1)}], "SCH003",
         "a feature can have only one type, but the examples have several"),
        ("type: INT", [{"x": B(b"a")}, {"x": F(1)}], "SCH003",
         "a feature can have only one type, but the examples have several"),
        ("type: BYTES int_domain { max: 9 }", [{"x": B(b"12")}], "SCH006", BY_HAND),
        ("type: BYTES float_domain { disallow_nan: true }", [{"x": B(b"nan")}], "SCH007", BY_HAND),
        ("type: INT bool_domain {}", [{"x": N(7)}], "SCH006", BY_HAND),
        ("type: BYTES string_domain { value: 'a' }",
         [{"x": B([b"%d" % n for n in range(101)])}], "SCH006", OUTSIDE),
        ("type: BYTES string_domain { value: 'a' }", [{"x": B(b"x" * 300)}], "SCH006", OUTSIDE),
        ("type: BYTES string_domain { value: 'a' }", [{"x": B(b"\xff")}], "SCH006", OUTSIDE),
        ("type: BYTES time_domain { string_format: '%Y' }", [{"x": B(b"now")}], "SCH006", BY_HAND),
        ("type: STRUCT presence { min_fraction: 1 }", [{}], "SCH002", BY_HAND),
    ],
)  # fmt: skip
def test_what_no_schema_answers_is_refused_with_a_reason(
    body: str, examples: list[Example], code: str, reason: str
) -> None:
    text, edits, refused, left = accepted(declared(body), examples)
    assert text == declared(body)
    assert edits == []
    assert refused == [Answer(code, "x", reason)]
    assert {each for each, _ in left} == {code}


def test_what_has_no_change_is_refused() -> None:
    schema = parse_schema(declared("type: INT"))
    broken = [("SCH001", ""), ("SCH008", "x"), ("SCH009", "s"), ("SCH010", "")]
    text, edits, refused = edit_schema(schema, broken, Violations(), [])
    assert (text, edits) == (schema.text, [])
    assert refused == [Answer(code, name, BY_HAND) for code, name in broken]


def test_no_more_undeclared_features_are_drafted_than_a_check_names() -> None:
    names = [f"f{number:03}" for number in range(150)]
    text, edits, refused, left = accepted(declared("type: INT"), [dict.fromkeys(names, N(1))])
    assert [each.feature for each in edits] == names[:100]
    assert [each.name for each in parse_schema(text).features] == ["x", *names[:100]]
    assert refused == [Answer("SCH005", name, BY_HAND) for name in names[100:]]
    assert left == {("SCH005", name) for name in names[100:]}


def test_a_feature_declared_twice_is_changed_in_both_declarations() -> None:
    twice = 2 * declared("type: INT int_domain { max: 9 }")
    after, edits, refused, left = accepted(twice, [{"x": N(12)}])
    assert same(after, twice.replace("max: 9", "max: 12"))
    assert (len(edits), refused, left) == (1, [], set())


@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_comments_stay_with_their_features_and_domains(line_end: str) -> None:
    text = (
        "# What it is for.\n\n# Between { the two.\n"
        "string_domain { name: 'words'  # shared\n  value: 'a' }\n\n"
        "# The second.\n  # It's long.\nfeature: < presence { min_count: 1 }\n"
        "  name: 'y # {'; type: INT; >  # behind\n\n"
        'feature { name: "\\303\\274" type: BYTES domain: "words" }  # umlaut\n# the end\n'
    ).replace("\n", line_end)
    after, _, _, left = accepted(text, [{"ü": B(b"b"), "y # {": N(1)}])
    assert after.replace("\n", "|") == (
        "# What it is for.||# Between { the two.|"
        '|# The second.|  # It\'s long.|feature {|  name: "y # {"  # behind|  type: INT|'
        "  presence {|    min_count: 1|  }|}|"
        '|feature {|  name: "ü"  # umlaut|  type: BYTES|  domain: "words"|}|'
        'string_domain {|  name: "words"  # shared|  value: "a"|  value: "b"|}|# the end|'
    )
    assert left == set()


features = st.one_of(
    st.none(),
    st.just(unset_feature()),
    st.lists(st.integers(-30, 30), max_size=4).map(int64_feature),
    st.lists(st.floats(-3, 3, width=32) | st.just(nan), max_size=4).map(float_feature),
    st.lists(st.binary(max_size=3), max_size=4).map(bytes_feature),
)
SCHEMA = f"""
# Of several kinds.
feature {{ name: "a" type: INT {ALWAYS} shape {{}} int_domain {{ min: 0 max: 9 }} }}
feature {{
  name: "b"  # in a layout of its own
  type: FLOAT
  value_count {{
    max: 2  # two
  }}
  float_domain {{ min: 0 disallow_nan: true }}
}}
feature {{ name: "c" type: BYTES {ALWAYS} string_domain {{ value: ["x"] }} }}
"""


@pytest.mark.medium
@settings(max_examples=100)
@given(st.lists(st.fixed_dictionaries(dict.fromkeys("abcd", features)), min_size=1, max_size=6))
def test_what_is_not_refused_is_taken_in(records: list[dict[str, object]]) -> None:
    examples = [
        {name: each for name, each in record.items() if each is not None} for record in records
    ]
    text, _, refused, left = accepted(SCHEMA, examples)  # type: ignore[arg-type]
    assert left <= {(each.code, each.feature) for each in refused}
    for comment in ("# Of several kinds.", "# in a layout of its own"):
        assert comment in text

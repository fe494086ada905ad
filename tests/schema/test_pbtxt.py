"""The text of a schema: fields are found where they are written, and edits leave the rest."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from google.protobuf import text_format
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow_metadata.proto.v0.schema_pb2 import Schema

from tfrecreg.schema.pbtxt import append_lines, rewrite
from tfrecreg.schema.proto import parse_schema
from tfrecreg.schema.text_places import position, quoted, spans

X = ("feature", 0)

TEXT = dedent(
    """\
    # a comment { with: marks }
    feature {
      name: "a # { not a comment"
      value_count { min: 1 max: 2 }
    }
    feature: < name: 'b' "and more"; type: INT >
    default_environment: ["T", "S"]
    feature [ { name: "c" }, { name: "d" int_domain { min: -5 } } ]
    annotation { extra_metadata { [type.googleapis.com/a.B] { x: 1 } } tag: "t" }
    """
)


def test_fields_are_found_where_they_are_written() -> None:
    assert position(TEXT, ("feature", 0)) == (2, 1)
    assert position(TEXT, ("feature", 0, "name", 0)) == (3, 3)
    assert position(TEXT, ("feature", 0, "value_count", 0)) == (4, 3)
    assert position(TEXT, ("feature", 0, "value_count", 0, "max", 0)) == (4, 24)


def test_angle_brackets_and_joined_strings_are_understood() -> None:
    assert position(TEXT, ("feature", 1)) == (6, 1)
    assert position(TEXT, ("feature", 1, "name", 0)) == (6, 12)
    assert position(TEXT, ("feature", 1, "type", 0)) == (6, 34)


def test_elements_of_lists_are_counted_on() -> None:
    assert position(TEXT, ("default_environment", 1)) == (7, 28)
    assert position(TEXT, ("feature", 2)) == (8, 11)
    assert position(TEXT, ("feature", 3)) == (8, 26)
    assert position(TEXT, ("feature", 3, "int_domain", 0, "min", 0)) == (8, 51)


def test_extensions_are_read_over() -> None:
    assert position(TEXT, ("annotation", 0, "tag", 0)) == (9, 68)


def test_windows_line_ends_and_tabs_count_as_protobuf_counts_them() -> None:
    text = 'feature {\r\n\tname: "x"\r\n}\r\n'
    assert position(text, ("feature", 0, "name", 0)) == (2, 2)


def test_a_field_that_is_not_written_is_placed_at_the_message_around_it() -> None:
    assert position(TEXT, ("feature", 0, "shape", 0, "dim", 3)) == (2, 1)
    assert position(TEXT, ("nothing", 0)) == (1, 1)


def message(text: str) -> Any:
    return text_format.Parse(text, Schema())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("feature { int_domain { min: 0 max: 9 } }  # why",
         "feature { int_domain { min: 0 max: 10 } }  # why"),
        ("feature { int_domain { min: 0 } }",
         "feature { int_domain { min: 0 max: 10 } }"),
        ("feature { image_domain {} }",
         "feature { image_domain { max_image_byte_size: 9 } }"),
        ("feature {\n    type: INT  # whole\n}\n",
         "feature {\n    type: INT  # whole\n    shape {}\n}\n"),
        ("feature { type: INT\n  int_domain {\n    min: 0 } }",
         "feature { type: INT\n  int_domain {\n    min: 0 max: 3 } }"),
        ('feature { string_domain { value: "a" value: "b" } }',
         'feature { string_domain { value: "a" value: "b" value: "c" value: "d" } }'),
        ('feature {\n  string_domain {\n    value: "a"  # one\n    value: "b"  # two\n  }\n}',
         'feature {\n  string_domain {\n    value: "a"  # one\n    value: "b"  # two\n'
         '    value: "c"\n  }\n}'),
        ('feature { string_domain { value: ["a", "b"] } }',
         'feature { string_domain { value: ["a", "b", "c"] } }'),
        ('feature { string_domain { name: "d" } }',
         'feature { string_domain { name: "d" value: "c" } }'),
        ("feature {\n  type: INT\n  presence { min_fraction: 1 }\n  shape {}\n}",
         "feature {\n  type: INT\n  shape {}\n}"),
        ("feature {\n  type: INT\n  presence { min_fraction: 1 }  # always\n}",
         "feature {\n  type: INT\n  # always\n}"),
        ("feature { presence { min_fraction: 1, min_count: 2 } }",
         "feature { presence { min_count: 2 } }"),
        ("feature {\n  shape { dim { size: 2 } }  # pair\n}",
         "feature {\n  value_count { min: 1 }  # pair\n}"),
        ("feature {\r\n  type: INT\r\n}\r\n",
         "feature {\r\n  type: INT\r\n  shape {}\r\n}\r\n"),
        ("feature {\n  presence { min_fraction: 1 min_count: 1 }\n  shape {}\n}\n",
         "feature {\n  shape {}\n}\n"),
        ("feature {\n  type: FLOAT\n  presence { min_fraction: 1 }\n}\n",
         "feature {\n  type: FLOAT\n  float_domain { disallow_nan: false }\n}\n"),
        ("feature {\n  bool_domain {}  # yes or no\n  type: INT\n}\n",
         "feature {\n  int_domain { min: 0 max: 7 }  # yes or no\n  type: INT\n}\n"),
        ("feature { int_domain {} }", "feature { int_domain { min: 1 max: 2 } }"),
        ('feature { type: INT } tensor_representation_group { key: "" value {} }',
         'feature { type: BYTES } tensor_representation_group { key: "" value {} }'),
        ("feature: < int_domain: < min: -5; > >",
         "feature: < int_domain: < min: -9; > >"),
    ],
)  # fmt: skip
def test_an_edit_changes_only_what_differs(before: str, after: str) -> None:
    assert rewrite(before, message(before), message(after)) == after


def test_without_a_difference_nothing_changes() -> None:
    text = '# why\r\nfeature { name: "x" float_domain { min: nan } }  # this\n\n'
    assert rewrite(text, message(text), message(text)) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("feature { type: INT }", "feature { type: INT }\nfeature {\n}\n"),
        ("", "feature {\n}\n"),
        ("feature {\n}\n\nfeature {\n}\n", "feature {\n}\n\nfeature {\n}\n\nfeature {\n}\n"),
        ("feature {\r\n}\r\n", "feature {\r\n}\r\nfeature {\r\n}\r\n"),
    ],
)  # fmt: skip
def test_a_new_feature_goes_to_the_end(before: str, after: str) -> None:
    assert append_lines(before, ["feature {", "}"]) == after


def test_a_string_in_pieces_is_one_value() -> None:
    text = "feature { name: \"a\"\n  'b' type: INT }"
    span = spans(text)[(*X, "name", 0)]
    assert text[span.value : span.end] == "\"a\"\n  'b'"
    after = 'feature { name: "c" type: INT }'
    assert rewrite(text, message(text), message(after)) == after


FIELDS = {
    "type": ["type: INT", "type: BYTES  # bytes", "type: FLOAT;"],
    "presence": ["presence { min_fraction: 1 }", "presence {\n    min_count: 2  # two\n  }",
                 "presence < min_fraction: 0.5, min_count: 1 >"],
    "shape_type": ["shape { dim {} }  # any", "shape { dim { size: 2 } }",
                   "value_count {\n    min: 1\n    max: 2\n  }", "value_count: { max: 7 }"],
    "domain": ["int_domain { min: -5 }", "float_domain { max: 0.1 disallow_nan: true }  # finite",
               "bool_domain {}", 'string_domain {\n    value: "a"  # one\n  }', 'domain: "d"'],
    "stage": ["lifecycle_stage: BETA", "lifecycle_stage: PRODUCTION  # at last"],
}  # fmt: skip


@st.composite
def declarations(draw: st.DrawFn) -> str:
    """One feature, with any fields in any layout."""
    fields = [draw(st.sampled_from(["", *each])) for each in FIELDS.values()]
    chosen = draw(st.permutations(['name: "x"  # this', *filter(None, fields)]))
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    text = "feature {\n" + "".join(f"  {each}\n" for each in chosen) + "}\n"
    return text.replace("\n", line_end)


@pytest.mark.medium
@settings(max_examples=300)
@given(declarations(), declarations())
def test_a_rewritten_text_has_the_new_meaning_and_the_old_comments(one: str, other: str) -> None:
    after = rewrite(one, message(one), message(other))
    assert message(after) == message(other)
    assert after.count("# this") == 1
    assert ("\r" in after) is ("\r" in one)


def test_quoted_strings_come_back() -> None:
    text = 'a"b\\c\nü\u202e'
    assert quoted(text) == '"a\\"b\\\\c\\012ü\\342\\200\\256"'
    assert message(f"feature {{ name: {quoted(text)} }}").feature[0].name == text


def test_a_message_ends_behind_its_brace() -> None:
    text = "\ufefffeature { shape { dim { size: 1 } dim { size: 2 } } } # end"
    found = spans(text)
    assert text[found[X].start : found[X].end] == text[1:-6]
    assert text[found[(*X, "shape", 0, "dim", 1)].value :].startswith("{ size: 2 }")


def test_a_sign_may_stand_apart_from_its_number() -> None:
    text = "feature: < int_domain: < min: - 5; > >"
    span = spans(text)[(*X, "int_domain", 0, "min", 0)]
    assert text[span.value : span.end] == "- 5"


@pytest.mark.realdata
def test_every_field_of_real_schemas_is_found_where_it_is(realdata: Path) -> None:
    for path in sorted((realdata / "schema").rglob("*.pbtxt")):
        text = path.read_text()
        schema = parse_schema(text, path.name)
        found = spans(text)
        count = sum(1 for each in found if len(each) == 2 and each[0] == "feature")
        assert count >= len(schema.features)
        for place, span in found.items():
            assert 0 <= span.start <= span.value < span.end <= len(text)
            if span.start != span.value:
                assert text[span.start :].startswith(str(place[-2]))

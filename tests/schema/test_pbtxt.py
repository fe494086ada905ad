"""Edits of a schema's text: what is not edited stays, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from tfrecreg.schema.text_edit import TextEdit

from tfrecreg.schema import parse_schema
from tfrecreg.schema.pbtxt import spans

X = ("feature", 0)


def edited(text: str, *calls: tuple[str, tuple[object, ...]]) -> str:
    edit = TextEdit(text)
    for name, arguments in calls:
        getattr(edit, name)(*arguments)
    return edit.result()


def test_without_edits_nothing_changes() -> None:
    text = '# why\r\nfeature { name: "x" }  # this\n\n'
    assert edited(text.replace("\r", "")) == text.replace("\r", "")


@pytest.mark.parametrize(
    ("before", "call", "after"),
    [
        (
            "feature { int_domain { min: 0 max: 9 } }  # why",
            ("set", ((*X, "int_domain", 0), "max", "10")),
            "feature { int_domain { min: 0 max: 10 } }  # why",
        ),
        (
            "feature { int_domain { min: 0 } }",
            ("set", ((*X, "int_domain", 0), "max", "10")),
            "feature { int_domain { min: 0 max: 10 } }",
        ),
        (
            "feature { image_domain {} }",
            ("set", ((*X, "image_domain", 0), "max_image_byte_size", "9")),
            "feature { image_domain { max_image_byte_size: 9 } }",
        ),
        (
            "feature {\n    type: INT  # whole\n}\n",
            ("insert", (X, "shape {}")),
            "feature {\n    type: INT  # whole\n    shape {}\n}\n",
        ),
        (
            "feature { type: INT\n  int_domain {\n    min: 0 } }",
            ("set", ((*X, "int_domain", 0), "max", "3")),
            "feature { type: INT\n  int_domain {\n    min: 0 max: 3 } }",
        ),
        (
            'feature { string_domain { value: "a" value: "b" } }',
            ("extend", ((*X, "string_domain", 0), "value", ['"c"', '"d"'])),
            'feature { string_domain { value: "a" value: "b" value: "c" value: "d" } }',
        ),
        (
            'feature {\n  string_domain {\n    value: "a"  # one\n    value: "b"  # two\n  }\n}',
            ("extend", ((*X, "string_domain", 0), "value", ['"c"'])),
            'feature {\n  string_domain {\n    value: "a"  # one\n    value: "b"  # two\n'
            '    value: "c"\n  }\n}',
        ),
        (
            'feature { string_domain { value: ["a", "b"] } }',
            ("extend", ((*X, "string_domain", 0), "value", ['"c"'])),
            'feature { string_domain { value: ["a", "b", "c"] } }',
        ),
        (
            'feature { string_domain { name: "d" } }',
            ("extend", ((*X, "string_domain", 0), "value", ['"c"'])),
            'feature { string_domain { name: "d" value: "c" } }',
        ),
        (
            "feature {\n  type: INT\n  presence { min_fraction: 1 }\n  shape {}\n}",
            ("remove", ((*X, "presence", 0),)),
            "feature {\n  type: INT\n  shape {}\n}",
        ),
        (
            "feature {\n  type: INT\n  presence { min_fraction: 1 }  # always\n}",
            ("remove", ((*X, "presence", 0),)),
            "feature {\n  type: INT\n  # always\n}",
        ),
        (
            "feature { presence { min_fraction: 1, min_count: 2 } }",
            ("remove", ((*X, "presence", 0, "min_fraction", 0),)),
            "feature { presence { min_count: 2 } }",
        ),
        (
            "feature {\n  shape { dim { size: 2 } }  # pair\n}",
            ("replace", ((*X, "shape", 0), "value_count { min: 1 }")),
            "feature {\n  value_count { min: 1 }  # pair\n}",
        ),
        (
            "feature { type: INT }",
            ("append", (["feature {", "}"],)),
            "feature { type: INT }\nfeature {\n}\n",
        ),
        ("", ("append", (["feature {", "}"],)), "feature {\n}\n"),
        (
            "feature {\n}\n\nfeature {\n}\n",
            ("append", (["feature {", "}"],)),
            "feature {\n}\n\nfeature {\n}\n\nfeature {\n}\n",
        ),
        (
            "feature {\r\n  type: INT\r\n}\r\n",
            ("insert", (X, "shape {}")),
            "feature {\r\n  type: INT\r\n  shape {}\r\n}\r\n",
        ),
        (
            "feature: < int_domain: < min: - 5; > >",
            ("set", ((*X, "int_domain", 0), "min", "-9")),
            "feature: < int_domain: < min: -9; > >",
        ),
    ],
)  # fmt: skip
def test_an_edit_changes_what_it_says(
    before: str, call: tuple[str, tuple[object, ...]], after: str
) -> None:
    assert edited(before, call) == after


def test_what_is_taken_out_takes_its_edits_with_it() -> None:
    text = "feature {\n  presence { min_fraction: 1 min_count: 1 }\n  shape {}\n}\n"
    place = (*X, "presence", 0)
    assert (
        edited(
            text,
            ("remove", ((*place, "min_fraction", 0),)),
            ("set", (place, "min_count", "3")),
            ("remove", (place,)),
        )
        == "feature {\n  shape {}\n}\n"
    )


def test_several_fields_go_in_in_their_order() -> None:
    text = "feature { int_domain {} }"
    place = (*X, "int_domain", 0)
    after = edited(text, ("insert", (place, "min: 1")), ("insert", (place, "max: 2")))
    assert after == "feature { int_domain { min: 1 max: 2 } }"


def test_a_string_in_pieces_is_one_value() -> None:
    text = "feature { name: \"a\"\n  'b' type: INT }"
    span = spans(text)[(*X, "name", 0)]
    assert text[span.value : span.end] == "\"a\"\n  'b'"
    assert edited(text, ("set", (X, "name", '"c"'))) == 'feature { name: "c" type: INT }'


def test_a_message_ends_behind_its_brace() -> None:
    text = "\ufefffeature { shape { dim { size: 1 } dim { size: 2 } } } # end"
    found = spans(text)
    assert text[found[X].start : found[X].end] == text[1:-6]
    assert text[found[(*X, "shape", 0, "dim", 1)].value :].startswith("{ size: 2 }")


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

from __future__ import annotations

import subprocess
import sys

import pytest

from tfrecreg.core.schema.definition import (
    SchemaFeature,
)
from tfrecreg.core.schema.proto import parse_schema, render_schema
from tfrecreg.core.values.errors import SchemaError


def feature(body: str) -> SchemaFeature:
    """The one feature of a schema."""
    (only,) = parse_schema(f'feature {{ name: "x" {body} }}').features
    return only


def error(text: str | bytes) -> SchemaError:
    with pytest.raises(SchemaError) as caught:
        parse_schema(text, "schemas/x.pbtxt")
    assert "\n" not in caught.value.message
    assert not caught.value.message.endswith(".")
    assert caught.value.exit_code == 2
    return caught.value


def test_importing_what_checks_records_imports_neither_tensorflow_nor_protobuf() -> None:
    code = (
        "import sys, tfrecreg.core.schema.compiled, tfrecreg.builtin.schemas.validator;"
        "print([n for n in ('tensorflow', 'google.protobuf') if n in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_images_and_labels_are_known_by_domain_tag_and_name() -> None:
    schema = parse_schema(
        """
        feature { name: "image/encoded" type: BYTES image_domain {} }
        feature { name: "image/class/label" type: INT }
        feature { name: "grade" type: INT annotation { tag: "label" comment: "by hand" } }
        feature { name: "labelled_by" type: BYTES }
        """
    )
    assert schema.images() == ("image/encoded",)
    assert schema.labels() == ("image/class/label", "grade")
    assert schema.features[2].comments == ("by hand",)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm() -> None:
    text = '\ufefffeature {\r\n  name: "x"\r\n  type: INT\r\n}\r\n'.encode()
    assert parse_schema(text).features == (SchemaFeature(name="x", type="INT"),)


def test_texts_that_mean_the_same_render_the_same() -> None:
    one = parse_schema('# why\nfeature { name: "é" type: INT presence { min_fraction: 1 } }')
    other = parse_schema('feature: <name: "\\303\\251"; type: 2, presence: {min_fraction: 1.0}>')
    assert render_schema(one) == render_schema(other)
    assert 'name: "é"' in render_schema(one)
    assert parse_schema(render_schema(one)).features == one.features


def test_what_is_not_read_survives_rendering() -> None:
    text = (
        'feature { name: "x" type: INT skew_comparator { infinity_norm { threshold: 0.1 } }'
        " unique_constraints { max: 3 } }"
    )
    rendered = render_schema(parse_schema(text))
    assert "threshold: 0.1" in rendered
    assert "unique_constraints" in rendered


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('feature {\n  nmae: "x"\n}', "2:3: ", 'Feature" has no field named "nmae"'),
        ("generate_legacy_feature_spec: true", "1:1: ", 'Schema" has no field named'),
        ('feature { name: "x" type: INTT }', "1:27: ", 'FeatureType" has no value named INTT'),
        ('feature { name: "x"\n\n', "", 'Expected "}"'),
        ('{"features": []}', "1:1: ", "Expected identifier or number, got {"),
        ('feature { name: "x" type: INT type: INT }', "1:37: ", 'Feature" should not have'),
        (
            "feature { annotation { extra_metadata { [type.googleapis.com/a.B] { x: 1 } } } }",
            " ",
            "Type a.B not found in descriptor pool",
        ),
        ("feature { struct_domain { " * 2000, " ", "messages are nested too deeply to be a schema"),
        (b'feature {\n  name: "caf\xe9"\n}', " ", "can't decode byte 0xe9"),
    ],
)
def test_text_that_does_not_parse_is_one_line_with_its_place(
    text: str | bytes, place: str, words: str
) -> None:
    # The words are protobuf's own, and differ a little between its releases.
    caught = error(text)
    assert caught.message.startswith(f"schemas/x.pbtxt:{place}")
    assert words in caught.message


@pytest.mark.parametrize(
    "text",
    [
        "".join(f'feature {{ name: "f{n}" type: INT }}\n' for n in range(50_001)),
        'feature { name: "f" type: BYTES string_domain {' + 'value: "x"\n' * 400_000 + "} }",
    ],
    ids=["features", "values"],
)
def test_a_schema_of_absurd_size_is_refused_before_it_is_parsed(text: str) -> None:
    with pytest.raises(SchemaError, match=r"a\.pbtxt: the schema has more than 4,194,304 char"):
        parse_schema(text, "a.pbtxt")

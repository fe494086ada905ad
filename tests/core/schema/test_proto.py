from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tfrecreg.core.schema.definition import (
    BoolDomain,
    FloatDomain,
    ImageDomain,
    IntDomain,
    OtherDomain,
    Presence,
    SchemaFeature,
    StringDomain,
    StructDomain,
    ValueCount,
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
    assert caught.value.hint
    assert caught.value.exit_code == 2
    return caught.value


def test_importing_what_checks_records_imports_neither_tensorflow_nor_protobuf() -> None:
    code = (
        "import sys, tfrecreg.core.schema.compiled, tfrecreg.builtin.schemas.validator;"
        "print([n for n in ('tensorflow', 'google.protobuf') if n in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_types_presence_and_lengths_are_read() -> None:
    assert feature("type: BYTES").type == "BYTES"
    assert feature("type: TYPE_UNKNOWN").type is None
    assert feature("presence { min_fraction: 0.5 min_count: 2 }").presence == Presence(0.5, 2)
    assert feature("presence {}").presence == Presence()
    assert feature("shape {}").shape == ()
    assert feature("shape { dim { size: 28 } dim { name: 'c' } }").shape == (28, None)
    assert feature("value_count { min: 1 }").value_count == ValueCount(1, None)
    assert feature("value_counts { value_count { max: 3 } }").value_count == ValueCount(None, 3)
    nested = feature("value_counts { value_count { max: 3 } value_count { max: 4 } }")
    assert nested.levels == (ValueCount(None, 3), ValueCount(None, 4))
    assert nested.value_count is None


@pytest.mark.parametrize(
    ("body", "domain"),
    [
        ("type: INT int_domain { min: 0 is_categorical: true }", IntDomain(0, None, True)),
        ("type: FLOAT float_domain { max: 1 disallow_nan: false }", FloatDomain(None, 1.0, False)),
        ("type: BYTES string_domain { value: 'a' }", StringDomain(("a",))),
        (
            "type: BYTES bool_domain { true_value: 'y' false_value: 'n' }",
            BoolDomain("y", "n"),
        ),
        ("type: BYTES image_domain { max_image_byte_size: 9 }", ImageDomain(None, 9)),
        ("type: BYTES url_domain {}", OtherDomain("url_domain")),
        (
            "type: STRUCT struct_domain { feature { name: 'y' type: INT } }",
            StructDomain((SchemaFeature(name="y", type="INT"),)),
        ),
    ],
)
def test_domains_are_read(body: str, domain: object) -> None:
    assert feature(body).domain == domain


def test_a_reference_is_resolved_to_the_domain_it_names() -> None:
    schema = parse_schema(
        """
        string_domain { name: "words" value: "a" value: "b" }
        int_domain { name: "digits" min: 0 max: 9 }
        feature { name: "w" type: BYTES domain: "words" }
        feature { name: "d" type: INT domain: "digits" }
        """
    )
    words, digits = schema.features
    assert words.domain == StringDomain(("a", "b"))
    assert words.domain_name == "words"
    assert digits.domain == IntDomain(0, 9)


def test_environments_are_gathered_from_the_schema_and_its_features() -> None:
    schema = parse_schema(
        """
        default_environment: "TRAINING"
        feature { name: "x" type: INT not_in_environment: "SERVING" in_environment: "LAB" }
        """
    )
    assert schema.environments() == ("LAB", "SERVING", "TRAINING")


def test_stages_take_features_out() -> None:
    assert feature("lifecycle_stage: PRODUCTION").stage == "PRODUCTION"
    assert not feature("lifecycle_stage: BETA").is_ignored
    assert feature("deprecated: true").stage == "DEPRECATED"
    for stage in ("PLANNED", "ALPHA", "DEPRECATED", "DISABLED", "DEBUG_ONLY"):
        assert feature(f"lifecycle_stage: {stage}").is_ignored


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


def test_a_schema_of_sequences_is_told_from_one_of_examples() -> None:
    assert parse_schema('feature { name: "##SEQUENCE##" type: STRUCT }').describes_sequences()
    assert not parse_schema('feature { name: "x" type: INT }').describes_sequences()


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
    ("text", "place", "words", "hint"),
    [
        (
            'feature {\n  nmae: "x"\n}',
            "2:3: ",
            "`Feature` has no field named `nmae`",
            "a misspelled name, or one that tensorflow-metadata ",
        ),
        (
            "generate_legacy_feature_spec: true",
            "1:1: ",
            "`Schema` has no field named `generate_legacy_feature_spec`",
            "tensorflow-metadata has dropped this field: remove it",
        ),
        (
            'feature { name: "x" type: INTT }',
            "1:27: ",
            "`FeatureType` has no value named INTT",
            "a schema is protobuf's text form of `tensorflow.metadata.v0.Schema` (`.pbtxt`)",
        ),
        (
            'feature { name: "x"\n\n',
            "",
            "Expected `}`",
            "a schema is protobuf's text form of `tensorflow.metadata.v0.Schema` (`.pbtxt`)",
        ),
        (
            '{"features": []}',
            "1:1: ",
            "Expected identifier or number, got {",
            "a schema is protobuf's text form of `tensorflow.metadata.v0.Schema` (`.pbtxt`)",
        ),
        (
            'feature { name: "x" type: INT type: INT }',
            "1:37: ",
            "`Feature` should not have multiple `type` fields",
            "a schema is protobuf's text form of `tensorflow.metadata.v0.Schema` (`.pbtxt`)",
        ),
        (
            "feature { annotation { extra_metadata { [type.googleapis.com/a.B] { x: 1 } } } }",
            " ",
            "Type a.B not found in descriptor pool",
            "a schema is protobuf's text form of `tensorflow.metadata.v0.Schema` (`.pbtxt`)",
        ),
        (
            "feature { struct_domain { " * 2000,
            " ",
            "messages are nested too deeply to be a schema",
            "a `struct_domain` in a `struct_domain` is the deepest valid nesting",
        ),
        (
            b'feature {\n  name: "caf\xe9"\n}',
            "2:13: ",
            "byte 0xe9 is not UTF-8",
            "a schema is protobuf's text form (`.pbtxt`), saved as UTF-8",
        ),
    ],
)
def test_text_that_does_not_parse_is_one_line_with_its_place(
    text: str | bytes, place: str, words: str, hint: str
) -> None:
    # The words are protobuf's own, and differ a little between its releases.
    caught = error(text)
    assert caught.message.startswith(f"schemas/x.pbtxt:{place}")
    assert words in caught.message
    assert caught.hint.startswith(hint)


@pytest.mark.realdata
def test_every_real_schema_parses_and_renders(realdata: Path) -> None:
    paths = sorted((realdata / "schema").rglob("*.pbtxt"))
    assert len(paths) == 15
    for path in paths:
        schema = parse_schema(path.read_bytes(), str(path))
        assert schema.features
        again = parse_schema(render_schema(schema), "again")
        assert again.features == schema.features

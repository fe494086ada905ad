from __future__ import annotations

import json
from typing import Any

import pytest
from sequences_support import feature_spec

from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.schema.compiled import TensorSpec, schema_json, tensor_specs, tf_source
from tfrecreg.core.schema.proto import parse_schema

REQUIRED = "presence { min_fraction: 1 min_count: 1 }"

TEXT = f"""
default_environment: "TRAINING"
default_environment: "SERVING"
feature {{ name: "image" type: BYTES {REQUIRED} shape {{}} image_domain {{}} }}
feature {{ name: "pixels" type: FLOAT {REQUIRED} shape {{ dim {{ size: 2 }} dim {{ size: 3 }} }} }}
feature {{ name: "pair" type: INT {REQUIRED} value_count {{ min: 2 max: 2 }} }}
feature {{ name: "label" type: INT {REQUIRED} shape {{}} not_in_environment: "SERVING" }}
feature {{ name: "boxes" type: FLOAT {REQUIRED} value_count {{ min: 0 }} }}
feature {{ name: "caption" type: BYTES shape {{}} }}
feature {{ name: "rows" type: INT {REQUIRED} shape {{ dim {{}} dim {{ size: 2 }} }} }}
feature {{ name: "untyped" }}
feature {{ name: "nested" type: STRUCT }}
feature {{ name: "soon" type: INT lifecycle_stage: PLANNED }}
"""

SPECS = (
    TensorSpec("boxes", "varlen", "float32"),
    TensorSpec("caption", "varlen", "string"),
    TensorSpec("image", "fixed", "string"),
    TensorSpec("label", "fixed", "int64"),
    TensorSpec("pair", "fixed", "int64", (2,)),
    TensorSpec("pixels", "fixed", "float32", (2, 3)),
    TensorSpec("rows", "varlen", "int64"),
)


def test_each_feature_has_the_form_that_its_shape_and_presence_ask_for() -> None:
    assert tensor_specs(parse_schema(TEXT)) == SPECS


def test_an_environment_leaves_its_own_features_out() -> None:
    names = [spec.name for spec in tensor_specs(parse_schema(TEXT), "SERVING")]
    assert "label" not in names


def test_variable_lengths_are_ragged_where_the_schema_wants_that() -> None:
    schema = parse_schema(f"represent_variable_length_as_ragged: true {TEXT}")
    forms = {spec.name: spec.form for spec in tensor_specs(schema)}
    assert forms["boxes"] == forms["caption"] == "ragged"
    assert forms["label"] == "fixed"


def test_the_source_is_python_to_paste() -> None:
    text = f"""
    feature {{ name: "a\\"b\\nü" type: INT {REQUIRED} shape {{ dim {{ size: 2 }} }} }}
    feature {{ name: "z" type: BYTES }}
    """
    assert tf_source(parse_schema(text)) == (
        "FEATURES = {\n"
        "    'a\"b\\n\\xfc': tf.io.FixedLenFeature([2], tf.int64),\n"
        "    'z': tf.io.VarLenFeature(tf.string),\n"
        "}\n"
    )
    assert tf_source(parse_schema("")) == "FEATURES = {}\n"


def test_json_says_what_the_schema_says() -> None:
    text = """
    default_environment: "T"
    string_domain { name: "words" value: "a" value: "b" }
    feature {
      name: "class/label" type: INT presence { min_fraction: 1 } shape { dim {} dim { size: 3 } }
      int_domain { min: 0 is_categorical: true } annotation { tag: "t" comment: "c" }
      not_in_environment: "S" lifecycle_stage: BETA
    }
    feature {
      name: "w" type: BYTES domain: "words" value_count { max: 2 }
      distribution_constraints { min_domain_mass: 0.5 }
    }
    feature { name: "f" type: FLOAT float_domain { min: -inf max: 1 disallow_nan: true } }
    feature { name: "p" type: BYTES image_domain {} }
    feature { name: "u" type: BYTES url_domain {} }
    feature { name: "t" type: INT time_domain { integer_format: UNIX_DAYS } }
    feature { name: "s" type: STRUCT struct_domain { feature { name: "i" type: INT } } }
    """
    document = schema_json(parse_schema(text))
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document == {
        "features": {
            "class/label": {
                "type": "INT",
                "required": True,
                "presence": {"min_fraction": 1.0},
                "shape": [None, 3],
                "domain": {"kind": "int", "min": 0, "is_categorical": True},
                "label": True,
                "stage": "BETA",
                "not_in_environment": ["S"],
                "tags": ["t"],
                "comments": ["c"],
            },
            "w": {
                "type": "BYTES",
                "required": False,
                "value_count": {"max": 2},
                "domain": {"kind": "string", "name": "words", "values": ["a", "b"]},
                "min_domain_mass": 0.5,
            },
            "f": {
                "type": "FLOAT",
                "required": False,
                "domain": {"kind": "float", "min": "-inf", "max": 1.0, "disallow_nan": True},
            },
            "p": {"type": "BYTES", "required": False, "domain": {"kind": "image"}, "picture": True},
            "u": {"type": "BYTES", "required": False, "domain": {"kind": "url"}},
            "t": {
                "type": "INT",
                "required": False,
                "domain": {"kind": "time", "integer_format": "UNIX_DAYS"},
            },
            "s": {
                "type": "STRUCT",
                "required": False,
                "domain": {
                    "kind": "struct",
                    "features": {"i": {"type": "INT", "required": False}},
                },
            },
        },
        "default_environments": ["T"],
    }


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


@pytest.fixture
def payload() -> bytes:
    return encode(
        {
            "image": bytes_feature(b"\x89PNG"),
            "pixels": float_feature([0, 1, 2, 3, 4, 5]),
            "pair": int64_feature([1, 2]),
            "label": int64_feature(7),
            "boxes": float_feature([]),
            "rows": int64_feature([1, 2, 3, 4]),
        }
    )


@pytest.mark.parametrize("ragged", [False, True])
def test_the_source_parses_real_examples(tf: Any, payload: bytes, ragged: bool) -> None:
    prefix = "represent_variable_length_as_ragged: true " if ragged else ""
    schema = parse_schema(prefix + TEXT)
    spec = feature_spec(tf, schema)
    parsed = tf.io.parse_example([payload, payload], spec)
    assert set(parsed) == {each.name for each in SPECS}
    assert parsed["label"].numpy().tolist() == [7, 7]
    assert parsed["pixels"].shape == (2, 2, 3)
    assert parsed["pair"].numpy().tolist() == [[1, 2], [1, 2]]
    assert parsed["image"].numpy().tolist() == [b"\x89PNG"] * 2
    rows = (
        parsed["rows"].to_list() if ragged else tf.sparse.to_dense(parsed["rows"]).numpy().tolist()
    )
    assert rows == [[1, 2, 3, 4]] * 2
    single = tf.io.parse_single_example(payload, spec)
    assert single["label"].numpy() == 7

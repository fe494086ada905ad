"""What Hugging Face's Datasets reads about the types of columns."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")

from tfrecreg.builtin.export.formats.columns import FeatureColumn, hub_metadata
from tfrecreg.core.example.model import Kind


def test_single_values_and_lists_have_types_of_their_own() -> None:
    columns = [
        FeatureColumn("picture", Kind.BYTES, is_text=False, is_scalar=True, is_image=True),
        FeatureColumn("pictures", Kind.BYTES, is_text=False, is_scalar=False, is_image=True),
        FeatureColumn("label", Kind.INT64, is_text=False, is_scalar=True),
        FeatureColumn("labels", Kind.INT64, is_text=False, is_scalar=False),
        FeatureColumn("x", Kind.FLOAT, is_text=False, is_scalar=True),
        FeatureColumn("text", Kind.BYTES, is_text=True, is_scalar=False),
    ]
    names = {"label": ["cat", "dog"], "labels": ["a", "a"], "x": ["not", "numbers"]}
    text, replaced = hub_metadata(columns, names, ["__key__"], "__rest__")
    assert json.loads(text)["info"]["features"] == {
        "__key__": {"dtype": "string", "_type": "Value"},
        "picture": {"_type": "Image"},
        "pictures": {"_type": "Sequence", "feature": {"_type": "Image"}},
        "label": {"_type": "ClassLabel", "names": ["cat", "dog"]},
        "labels": {
            "_type": "Sequence",
            "feature": {"_type": "ClassLabel", "names": ["a", "1"]},
        },
        "x": {"dtype": "float32", "_type": "Value"},
        "text": {"_type": "Sequence", "feature": {"dtype": "string", "_type": "Value"}},
        "__rest__": {"dtype": "binary", "_type": "Value"},
    }
    assert replaced == ["labels"]

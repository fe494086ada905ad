"""The schemas that come with the sources are strict, and say why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrecreg.core.schema.compat import compare_schemas
from tfrecreg.core.schema.compiled import compile_schema, tensor_specs
from tfrecreg.core.schema.definition import (
    FloatDomain,
    ImageDomain,
    IntDomain,
    Schema,
    StringDomain,
)
from tfrecreg.core.schema.proto import parse_schema, render_schema

FILES = sorted((Path(__file__).parents[3] / "schemas").glob("*.pbtxt"))

IMAGES = {
    "image/encoded",
    "image/object/mask",
    "image/panoptic/encoded",
    "image/segmentation/class/encoded",
    "image/segmentation/object/encoded",
}

every_file = pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])


def schema_of(path: Path) -> Schema:
    return parse_schema(path.read_bytes(), path.name)


@every_file
def test_it_round_trips_and_a_reader_follows_from_it(path: Path) -> None:
    schema = schema_of(path)
    again = parse_schema(render_schema(schema), "again")
    assert compare_schemas(schema, again) == ()
    assert len(tensor_specs(schema)) == len(schema.features)
    assert len(compile_schema(schema).features) == len(schema.features)


@every_file
def test_every_feature_is_always_there_and_has_a_type_a_length_and_bounds(path: Path) -> None:
    for feature in schema_of(path).features:
        domain = feature.domain
        assert feature.is_required
        assert feature.min_count == 1
        assert (feature.shape is None) != (feature.value_count is None)
        assert isinstance(domain, ImageDomain) is (feature.name in IMAGES)
        if feature.type == "INT":
            assert isinstance(domain, IntDomain)
            assert domain.min is not None
            assert domain.is_categorical or not feature.is_label
        elif feature.type == "FLOAT":
            assert isinstance(domain, FloatDomain)
            assert domain.disallow_nan
            assert domain.disallow_inf or None not in (domain.min, domain.max)
        else:
            assert feature.type == "BYTES"
            assert not feature.is_label
        if feature.name == "image/format":
            assert isinstance(domain, StringDomain)

"""The schemas that come with the sources are strict, and say why."""

from __future__ import annotations

import re
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


def test_there_is_one_for_every_way_that_a_source_writes() -> None:
    assert [path.stem for path in FILES] == [
        "coco",
        "coco_captions",
        "coco_panoptic",
        "coco_png",
        "coco_rle",
        "imagefolder",
        "mnist",
        "mnist_raw",
        "objects",
        "objects_keypoints",
        "objects_polygons",
        "voc",
        "voc_class",
        "voc_object",
        "voc_objects",
        "yolo",
    ]


@every_file
def test_it_parses_and_round_trips(path: Path) -> None:
    schema = schema_of(path)
    again = parse_schema(render_schema(schema), "again")
    assert compare_schemas(schema, again) == ()


@every_file
def test_every_feature_has_a_type_is_always_there_and_has_a_length(path: Path) -> None:
    for feature in schema_of(path).features:
        assert feature.type in ("BYTES", "INT", "FLOAT")
        assert feature.is_required
        assert feature.presence is not None
        assert feature.presence.min_count == 1
        assert (feature.shape is None) != (feature.value_count is None)


@every_file
def test_numbers_are_bounded_and_floats_are_numbers(path: Path) -> None:
    for feature in schema_of(path).features:
        if feature.type == "INT":
            assert isinstance(feature.domain, IntDomain)
            assert feature.domain.min is not None
        if feature.type == "FLOAT":
            assert isinstance(feature.domain, FloatDomain)
            assert feature.domain.disallow_nan
            bounded = feature.domain.min is not None and feature.domain.max is not None
            assert bounded or feature.domain.disallow_inf


@every_file
def test_images_labels_and_formats_have_their_domains(path: Path) -> None:
    for feature in schema_of(path).features:
        assert isinstance(feature.domain, ImageDomain) is (feature.name in IMAGES)
        if feature.is_label:
            assert isinstance(feature.domain, IntDomain)
            assert feature.domain.is_categorical
        if feature.name == "image/format":
            assert isinstance(feature.domain, StringDomain)


@every_file
def test_it_says_what_it_is_for(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.lstrip().startswith("# ")
    names = {feature.name for feature in schema_of(path).features}
    told = set(re.findall(r'^  name: "(.*?)"  # \S', text, re.MULTILINE))
    # Where the name says it all.
    assert names - told <= {
        "image/caption",
        "image/format",
        "image/object/bbox/xmax",
        "image/object/bbox/ymax",
        "image/object/is_crowd",
        "image/panoptic/segment/id",
        "image/panoptic/segment/class/label",
        "image/panoptic/segment/is_crowd",
        "image/panoptic/segment/bbox/xmin",
        "image/panoptic/segment/bbox/ymin",
        "image/panoptic/segment/bbox/xmax",
        "image/panoptic/segment/bbox/ymax",
    }


@every_file
def test_a_reader_follows_from_it(path: Path) -> None:
    schema = schema_of(path)
    assert len(tensor_specs(schema)) == len(schema.features)
    assert len(compile_schema(schema).features) == len(schema.features)

"""Schemas that a source writes: of a feature, of an image, of the features of `image_features`."""

from __future__ import annotations

from typing import Any

import pytest

from tfrecreg.api import (
    ImageHeader,
    Kind,
    feature_schema,
    image_features,
    image_schema,
    parse_schema,
)
from tfrecreg.core.values.errors import UsageError


@pytest.mark.parametrize(
    ("kind", "expected"), [(Kind.BYTES, "BYTES"), (Kind.FLOAT, "FLOAT"), (Kind.INT64, "INT")]
)
def test_a_kind_of_values_is_a_type(kind: Any, expected: Any) -> None:
    assert feature_schema("x", kind) == feature_schema("x", expected)
    (feature,) = parse_schema(feature_schema("x", kind), "x").features
    assert feature.type == expected


@pytest.mark.parametrize("kind", [Kind.UNSET, 2, 3, "INT64", "float", None])
def test_what_is_no_type_is_refused(kind: Any) -> None:
    with pytest.raises(UsageError):
        feature_schema("x", kind)


def test_what_image_features_writes_is_declared() -> None:
    header = ImageHeader("png", 2, 3, 3, 8, False)
    written = image_features(b"", header, filename="a.png", source_id="a").keys()
    declared = parse_schema(image_schema("image", named=True), "image").features
    assert {each.name for each in declared} == set(written)

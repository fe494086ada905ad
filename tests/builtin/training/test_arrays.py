"""The form of an element follows from the schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pytest

from tfrecreg.builtin.training.arrays import columns_of, element_of_example
from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.schema.proto import parse_schema
from tfrecreg.core.values.errors import RefusedError

Read: TypeAlias = Callable[[bytes], dict[str, Any]]

SCHEMA = """
feature { name: "label" type: INT presence { min_fraction: 1 } shape {} }
feature { name: "score" type: FLOAT presence { min_fraction: 1 } shape {} }
feature { name: "image" type: BYTES presence { min_fraction: 1 } shape {} }
feature {
  name: "point" type: FLOAT presence { min_fraction: 1 }
  shape { dim { size: 2 } dim { size: 2 } }
}
feature { name: "pair" type: BYTES presence { min_fraction: 1 } value_count { min: 2 max: 2 } }
feature { name: "boxes" type: FLOAT shape { dim {} dim { size: 4 } } }
feature { name: "tags" type: BYTES }
feature { name: "ids" type: INT value_count { min: 0 max: 9 } }
feature { name: "weights" type: FLOAT shape { dim {} dim { size: 1 } } }
feature { name: "flat" type: INT shape { dim {} dim { size: 0 } } }
"""
FULL: dict[str, Feature] = {
    "label": int64_feature(-3),
    "score": float_feature(0.5),
    "image": bytes_feature(b"\xff\xd8"),
    "point": float_feature([1, 2, 3, 4]),
    "pair": bytes_feature([b"a", b""]),
    "boxes": float_feature(range(8)),
    "tags": bytes_feature([b"x", b"yy", b"x"]),
    "ids": int64_feature([2**62, -1]),
    "weights": float_feature([0.25, 0.5]),
    "flat": int64_feature([1, 2]),
}


@pytest.fixture(scope="module")
def read() -> Read:
    return partial(element_of_example, columns=columns_of(parse_schema(SCHEMA, "x")))


def test_a_full_example(read: Read) -> None:
    element = read(encode({**FULL, "more": int64_feature(1)}))
    assert list(element) == sorted(FULL)
    assert type(element["label"]) is np.int64
    assert element["label"] == -3
    assert type(element["score"]) is np.float32
    assert element["score"] == 0.5
    assert element["image"] == b"\xff\xd8"
    assert element["point"].tolist() == [[1, 2], [3, 4]]
    assert element["pair"].tolist() == [b"a", b""]
    assert element["boxes"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert element["tags"].tolist() == [b"x", b"yy", b"x"]
    assert element["ids"].tolist() == [2**62, -1]
    assert element["weights"].tolist() == [[0.25], [0.5]]
    assert element["flat"].tolist() == [1, 2]
    dtypes = {name: value.dtype for name, value in element.items() if hasattr(value, "dtype")}
    assert {name: str(dtype) for name, dtype in dtypes.items()} == {
        "label": "int64",
        "score": "float32",
        "point": "float32",
        "pair": "object",
        "boxes": "float32",
        "tags": "object",
        "ids": "int64",
        "weights": "float32",
        "flat": "int64",
    }


def test_arrays_may_be_written_to_and_are_not_shared(read: Read) -> None:
    data = encode(FULL)
    element = read(data)
    for name in ("point", "ids", "boxes", "tags"):
        element[name][...] = element[name][::-1].copy()
    assert read(data)["point"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("absent", ["left out", "unset", "empty"])
def test_what_is_absent_is_an_empty_array(read: Read, absent: str) -> None:
    optional = ("boxes", "tags", "ids", "weights")
    example = {name: value for name, value in FULL.items() if name not in optional}
    if absent == "unset":
        example |= dict.fromkeys(optional, unset_feature())
    if absent == "empty":
        example |= {"boxes": float_feature([]), "tags": bytes_feature([])}
        example |= {"ids": int64_feature([]), "weights": float_feature([])}
    element = read(encode(example))
    found = {name: (element[name].shape, str(element[name].dtype)) for name in optional}
    assert found == {
        "boxes": ((0, 4), "float32"),
        "tags": ((0,), "object"),
        "ids": ((0,), "int64"),
        "weights": ((0, 1), "float32"),
    }


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"label": None}, "`label` should be int64 of shape (), it lacks the feature"),
        ({"label": unset_feature()}, "`label` should be int64 of shape (), it lacks the feature"),
        ({"label": int64_feature([1, 2])}, "`label` should be int64 of shape (), found 2 values"),
        ({"label": float_feature(1)}, "`label` should be int64 of shape (), found float"),
        ({"point": float_feature([1])}, "`point` should be float of shape (2, 2), found 1 values"),
        ({"pair": bytes_feature(b"a")}, "`pair` should be bytes of shape (2,), found 1 values"),
        (
            {"boxes": float_feature([1])},
            "`boxes` should be float of shape (any, 4), found 1 values",
        ),
        ({"tags": int64_feature(1)}, "`tags` should be bytes of shape (any,), found int64"),
    ],
)
def test_what_does_not_fit_is_refused(read: Read, change: dict[str, Any], fault: str) -> None:
    example = {name: value for name, value in {**FULL, **change}.items() if value is not None}
    with pytest.raises(RefusedError) as caught:
        read(encode(example))
    assert caught.value.message == f"does not fit the schema: {fault}"


def test_without_a_schema_every_feature_has_one_dimension() -> None:
    element = element_of_example(encode({**FULL, "gone": unset_feature()}), None)
    assert list(element) == sorted(FULL)
    assert {value.ndim for value in element.values()} == {1}
    assert element["label"].tolist() == [-3]
    assert element_of_example(b"", None) == {}


def test_tensorflow_makes_the_same_of_what_is_dense(read: Read) -> None:
    tf = pytest.importorskip("tensorflow", reason="the extra `tf` is not installed")
    from sequences_support import feature_spec

    payload = encode(FULL)
    theirs = tf.io.parse_single_example(payload, feature_spec(tf, parse_schema(SCHEMA, "x")))
    ours = read(payload)
    assert list(ours) == sorted(theirs)
    for name, value in theirs.items():
        dense = value.values if isinstance(value, tf.SparseTensor) else value
        assert np.array_equal(np.ravel(dense.numpy()), np.ravel(np.asarray(ours[name], object)))
        if not isinstance(value, tf.SparseTensor):
            assert np.shape(ours[name]) == value.shape

"""Features: equal by kind and bits, immutable, lazy, and no heavier to send than they are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.encode import encode
from tfrecreg.core.example.features import (
    bytes_feature,
    float_feature,
    int64_feature,
    unset_feature,
)
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.example.wire import NotAnExampleError

QUIET, SIGNALLING = bytes.fromhex("0000c07f"), bytes.fromhex("0100807f")
FEATURES = {
    "unset": unset_feature(),
    "no bytes": bytes_feature([]),
    "bytes": bytes_feature([b"ab", b"", b"c"]),
    "large": bytes_feature([b"x" * 20_000, b"y" * 300]),
    "no floats": float_feature([]),
    "floats": float_feature([0.1, -0.0]),
    "nan": float_feature(SIGNALLING),
    "no ints": int64_feature([]),
    "ints": int64_feature([3, -1, 300]),
}


@pytest.fixture(params=list(FEATURES))
def made(request: pytest.FixtureRequest) -> Feature:
    return FEATURES[request.param]


def from_wire(feature: Feature) -> Feature:
    return decode(encode({"before": int64_feature(1), "it": feature, "z": bytes_feature("z")}))[
        "it"
    ]


def test_made_and_decoded_features_are_the_same(made: Feature) -> None:
    found = from_wire(made)
    assert found == made
    assert hash(found) == hash(made)
    assert repr(found) == repr(made)
    assert (found.kind, found.count, found.wire_bytes) == (made.kind, made.count, made.wire_bytes)
    assert found.count == len(found.values)
    assert [*map(str, found.values)] == [*map(str, made.values)]


def test_wire_bytes_are_those_of_the_feature_message(
    made: Feature, delimited: Callable[[int, bytes], bytes]
) -> None:
    payload = encode({"": made})
    message = payload[len(payload) - made.wire_bytes :]
    assert payload == delimited(1, delimited(1, delimited(1, b"") + delimited(2, message)))
    assert from_wire(made).wire_bytes == made.wire_bytes


def test_pickles_come_back_equal_and_leave_the_payload_behind(made: Feature) -> None:
    found = from_wire(made)
    again = pickle.loads(pickle.dumps(found))
    assert again == made
    assert again.values == made.values or made == FEATURES["nan"]
    assert copy.deepcopy(made) == made
    payload = encode({"it": int64_feature(7), "image": bytes_feature(b"x" * 10_000)})
    assert len(pickle.dumps(decode(payload)["it"])) < 300


def test_features_that_differ_in_anything_are_unequal() -> None:
    features = [*FEATURES.values(), float_feature(QUIET), int64_feature([3, -1])]
    features += [bytes_feature([b"a", b"b"]), bytes_feature([b"ab"]), int64_feature(0)]
    features += [float_feature(0.0), float_feature(-0.0), bytes_feature(b"\0"), bytes_feature(b"")]
    assert len(set(features)) == len(features)
    for feature in features:
        assert sum(feature == other for other in features) == 1
    assert unset_feature() != ()


def test_features_cannot_be_changed() -> None:
    feature: Any = int64_feature(7)
    for name in ("kind", "count", "values", "wire_bytes", "new"):
        with pytest.raises(AttributeError):
            setattr(feature, name, 1)


def test_values_are_made_once() -> None:
    feature = from_wire(FEATURES["large"])
    assert feature.values is feature.values


@pytest.mark.parametrize("most", [0, 1, 2, 99])
def test_the_first_values_are_had_without_the_others(made: Feature, most: int) -> None:
    for feature in (made, decode(encode({"x": made}))["x"]):
        first = feature.first(most)
        assert len(first) == min(most, feature.count)
        assert repr(first) == repr(feature.values[:most])
        assert repr(feature.first(most)) == repr(first)


def test_sizes_and_repr_do_not_make_the_values() -> None:
    feature = from_wire(FEATURES["large"])
    assert feature.sizes == (20_000, 300)
    assert feature.wire_bytes > 20_000
    repr(feature)
    assert feature._values is None


def test_packed_floats_share_the_payload() -> None:
    payload = encode({"f": float_feature(SIGNALLING + QUIET)})
    view = decode(payload)["f"].packed_floats
    assert view.obj is payload
    assert view.readonly
    assert bytes(view) == SIGNALLING + QUIET


@pytest.mark.parametrize("name", ["sizes", "packed_floats"])
def test_what_belongs_to_another_kind_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=f"`{name}` is for .* only, and this one is INT64"):
        getattr(int64_feature(1), name)


@pytest.mark.parametrize(
    ("feature", "shown"),
    [
        (unset_feature(), "<Feature UNSET>"),
        (int64_feature([]), "<Feature INT64 0 values []>"),
        (int64_feature(7), "<Feature INT64 1 value [7]>"),
        (float_feature([1, 2, 3]), "<Feature FLOAT 3 values [1.0, 2.0, 3.0]>"),
        (int64_feature(range(1000)), "<Feature INT64 1000 values [0, 1, 2, …]>"),
        (
            bytes_feature([b"\x1b[31m", b"x" * 500]),
            r"<Feature BYTES 2 values [b'\x1b[31m', b'xxxxxxxxxxxxxxxx'… of 500 bytes]>",
        ),
    ],
)
def test_repr_is_short_and_safe(feature: Feature, shown: str) -> None:
    assert repr(feature) == shown


def test_kinds_are_the_field_numbers_of_the_oneof() -> None:
    assert [(kind.name, int(kind)) for kind in Kind] == [
        ("UNSET", 0),
        ("BYTES", 1),
        ("FLOAT", 2),
        ("INT64", 3),
    ]


def test_the_error_says_where_and_why_and_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(NotAnExampleError(12, "a cut varint")))
    assert isinstance(error, NotAnExampleError)
    assert issubclass(NotAnExampleError, ValueError)
    assert (error.offset, error.reason) == (12, "a cut varint")
    assert str(error) == "not a tf.train.Example: a cut varint at byte 12"

"""Features: equal by kind and bits, immutable, lazy, and no heavier to send than they are."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from tfrecreg.core.example.decode import decode
from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature

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

"""Both ways between this codec and TensorFlow's own `tf.train.Example`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.decode import canonical, decode
from tfrecreg.core.example.model import Feature, Kind, NotAnExampleError, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature

Build = Callable[[dict[str, Any]], bytes]

Values = dict[str, "tuple[str, list[Any]] | None"]

contents: st.SearchStrategy[Values] = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.one_of(
        st.none(),
        st.tuples(st.just("bytes_list"), st.lists(st.binary(max_size=300), max_size=4)),
        st.tuples(st.just("float_list"), st.lists(st.floats(width=32), max_size=40)),
        st.tuples(st.just("int64_list"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20)),
    ),
    max_size=6,
)


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


def theirs(tf: Any, content: Values) -> Any:
    """TensorFlow's message, filled in the order of `content`."""
    made = tf.train.Example()
    for key, value in content.items():
        feature = made.features.feature[key]
        if value is not None:
            target = getattr(feature, value[0])
            target.SetInParent()
            target.value.extend(value[1])
    return made


def ours(value: tuple[str, list[Any]] | None) -> Feature:
    """The same feature, made here."""
    if value is None:
        return unset_feature()
    makers: dict[str, Callable[[Any], Feature]] = {
        "bytes_list": bytes_feature,
        "float_list": float_feature,
        "int64_list": int64_feature,
    }
    return makers[value[0]](value[1])


@pytest.mark.medium
@settings(max_examples=200)
@given(content=contents, seed=st.integers(0, 99))
def test_what_tensorflow_serializes_is_read_and_written_alike(
    tf: Any, content: Values, seed: int
) -> None:
    order = list(content)
    random.Random(seed).shuffle(order)
    message = theirs(tf, {key: content[key] for key in order})
    expected = {key: ours(value) for key, value in content.items()}
    payload = encode(expected)
    for written in (message.SerializeToString(), message.SerializeToString(deterministic=True)):
        assert decode(written) == expected
        assert canonical(written) == payload
    # NaN is unequal to itself in a message, so the text is compared, which says nan.
    assert str(tf.train.Example.FromString(payload)) == str(message)


@pytest.mark.medium
@settings(max_examples=100)
@given(content=contents)
def test_values_are_those_that_tensorflow_sees(tf: Any, content: Values) -> None:
    found = decode(theirs(tf, content).SerializeToString())
    again = tf.train.Example.FromString(encode(found))
    assert set(again.features.feature) == set(found)
    for key, feature in found.items():
        message = again.features.feature[key]
        kind = message.WhichOneof("kind")
        names = {None: "UNSET", "bytes_list": "BYTES", "float_list": "FLOAT", "int64_list": "INT64"}
        assert feature.kind is Kind[names[kind]]
        values = list(getattr(message, kind).value) if kind else []
        assert str(list(feature.values)) == str(values)
        assert feature.wire_bytes == message.ByteSize()


@settings(max_examples=300)
@given(payload=st.binary(max_size=30))
def test_bytes_are_refused_where_tensorflow_refuses_them(tf: Any, payload: bytes) -> None:
    from google.protobuf.message import DecodeError

    try:
        message = tf.train.Example.FromString(payload)
    except (DecodeError, SystemError):  # the C++ protobuf of Python 3.10 wraps the one in the other
        with pytest.raises(NotAnExampleError):
            decode(payload)
        return
    assert sorted(decode(payload)) == sorted(message.features.feature)


def test_canonical_payloads_are_parsed_by_tf_io(tf: Any) -> None:
    payload = encode(
        {
            "é": bytes_feature(["a", b"\xff"]),
            "f": float_feature([0.5, -1]),
            "i": int64_feature([-(2**63), 300]),
            "none": int64_feature([]),
        }
    )
    found = tf.io.parse_single_example(
        payload,
        {
            "é": tf.io.FixedLenFeature([2], tf.string),
            "f": tf.io.FixedLenFeature([2], tf.float32),
            "i": tf.io.FixedLenFeature([2], tf.int64),
            "none": tf.io.RaggedFeature(tf.int64),
        },
    )
    assert found["é"].numpy().tolist() == [b"a", b"\xff"]
    assert found["f"].numpy().tolist() == [0.5, -1]
    assert found["i"].numpy().tolist() == [-(2**63), 300]
    assert found["none"].numpy().tolist() == []


def test_sequence_examples_and_events_are_their_own_canonical_form(tf: Any) -> None:
    sequence = tf.train.SequenceExample()
    sequence.context.feature["b"].int64_list.value.append(1)
    sequence.context.feature["a"].int64_list.value.append(2)
    alone = sequence.SerializeToString()
    assert canonical(alone) == encode({"a": int64_feature(2), "b": int64_feature(1)})
    sequence.feature_lists.feature_list["frames"].feature.add().bytes_list.value.append(b"x")
    event = tf.compat.v1.Event(wall_time=1.5, step=7, file_version="brain.Event:2")
    for message in (sequence, event):
        payload = message.SerializeToString()
        assert canonical(payload) is payload
        assert sorted(decode(payload)) == (["a", "b"] if message is sequence else [])

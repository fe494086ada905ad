"""Both ways between this codec and TensorFlow's own `tf.train.Example`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.decode import canonical, decode
from tfrecreg.core.example.model import Feature, encode
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

"""SequenceExamples are read as protobuf reads them; hostile bytes are refused, never misread."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sequences_support import tf_sequence, video

from tfrecreg.builtin.training.arrays import ArrayColumn, element_of_sequence
from tfrecreg.core.example.kinds import SequenceExample
from tfrecreg.core.example.model import Feature, Kind
from tfrecreg.core.example.sequences import read_sequence
from tfrecreg.core.values.errors import RefusedError

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.lists(st.binary(max_size=200), min_size=1, max_size=3),
    st.lists(st.floats(width=32), min_size=1, max_size=5),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5),
)
contexts = st.dictionaries(names, values, max_size=3)
lists = st.dictionaries(names, st.lists(values, max_size=4), max_size=3)


@pytest.fixture(scope="module")
def tf() -> Any:
    return pytest.importorskip("tensorflow")


def _theirs(feature: Any) -> tuple[str, str]:
    """Kind and values of a feature of protobuf, as text, which says nan."""
    kind = feature.WhichOneof("kind")
    return kind or "", str(list(getattr(feature, kind).value) if kind else [])


def _ours(feature: Feature) -> tuple[str, str]:
    kinds = {Kind.UNSET: "", Kind.BYTES: "bytes_list", Kind.FLOAT: "float_list"}
    return kinds.get(feature.kind, "int64_list"), str(list(feature.values))


def same(found: SequenceExample, message: Any) -> None:
    """Assert that they hold the same."""
    assert {name: _ours(each) for name, each in found.context.items()} == {
        name: _theirs(each) for name, each in message.context.feature.items()
    }
    assert {name: list(map(_ours, steps)) for name, steps in found.lists.items()} == {
        name: list(map(_theirs, each.feature))
        for name, each in message.feature_lists.feature_list.items()
    }


@pytest.mark.medium
@settings(max_examples=200, deadline=None)
@given(context=contexts, found=lists)
def test_what_tensorflow_serializes_is_read(tf: Any, context: Any, found: Any) -> None:
    payload = tf_sequence(tf, context, found)
    sequence = read_sequence(payload)
    assert sequence is not None
    same(sequence, tf.train.SequenceExample.FromString(payload))


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def _flip(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _twice(data: bytes, rng: random.Random) -> bytes:
    first, last = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return data[:last] + data[first:last] + data[last:]


def _joined(data: bytes, rng: random.Random) -> bytes:
    return data + data if rng.random() < 0.5 else data + _flip(data, rng)


MUTATIONS: list[Callable[[bytes, random.Random], bytes]] = [_cut, _flip, _twice, _joined]


def _check(tf: Any, payload: bytes) -> str:
    """Read hostile bytes; the outcome in a word."""
    from google.protobuf.message import DecodeError

    sequence = read_sequence(payload)
    try:
        message = tf.train.SequenceExample.FromString(payload)
    except (DecodeError, SystemError):
        assert sequence is None
        return "refused by both"
    if sequence is None:
        return "refused here"
    same(sequence, message)
    return "read"


@pytest.mark.medium
@settings(max_examples=300, deadline=None)
@given(payload=st.binary(max_size=40))
def test_bytes_are_never_misread(tf: Any, payload: bytes) -> None:
    _check(tf, payload)
    _check(tf, b"\x12" + bytes([len(payload)]) + payload)


def hostile(tf: Any, count: int, seed: int) -> dict[str, int]:
    """How many mutants of real records had each outcome."""
    rng = random.Random(seed)
    outcomes: dict[str, int] = {}
    for _ in range(count):
        payload = video(tf, rng.randrange(6))
        for _ in range(rng.randint(1, 2)):
            payload = rng.choice(MUTATIONS)(payload, rng) or b"\x12"
        outcome = _check(tf, payload)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    return outcomes


def test_mutants_of_records_are_never_misread(tf: Any) -> None:
    outcomes = hostile(tf, 300, seed=1)
    assert outcomes.keys() == {"read", "refused by both", "refused here"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_many_mutants_of_records_are_never_misread(tf: Any, seed: int) -> None:
    assert min(hostile(tf, 5_000, seed=100 + seed).values()) > 100


COLUMNS = (
    ArrayColumn("a", 3, (-1,), False, True, True),
    ArrayColumn("f", 2, (-1, 2), False, True, True),
)


@pytest.mark.medium
@settings(max_examples=200, deadline=None)
@given(
    first=st.lists(st.one_of(st.none(), st.lists(st.integers(-9, 9), max_size=2)), max_size=3),
    second=st.lists(
        st.one_of(st.none(), st.lists(st.floats(-9, 9, width=32), max_size=3)), max_size=3
    ),
)
def test_lists_of_one_shape_are_those_of_tf_io_or_refused_by_both(
    tf: Any, first: Any, second: Any
) -> None:
    payload = tf_sequence(tf, {}, {"a": first, "f": second})
    spec = {
        "a": tf.io.FixedLenSequenceFeature([], tf.int64),
        "f": tf.io.FixedLenSequenceFeature([2], tf.float32),
    }
    try:
        _, parsed, _ = tf.io.parse_sequence_example([payload], sequence_features=spec)
    except (tf.errors.InvalidArgumentError, tf.errors.InternalError):
        with pytest.raises(RefusedError):
            element_of_sequence(payload, COLUMNS)
        return
    element = element_of_sequence(payload, COLUMNS)
    assert element["a"].tolist() == parsed["a"][0].numpy().tolist()
    assert element["f"].tolist() == parsed["f"][0].numpy().tolist()

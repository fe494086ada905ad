"""Whatever the bytes: the same judgement and the same content as protobuf's own parser."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sweep_support import part

from tfrecreg.core.example.decode import (
    canonical,
    decode,
    decode_fast,
    decode_fully,
    decode_or_none,
)
from tfrecreg.core.example.model import Example, Feature, NotAnExampleError, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature

Judge = Callable[[bytes], "tuple[bytes, bool] | None"]


def padded(number: int, padding: int) -> bytes:
    """`number` as a varint with `padding` bytes more than it needs."""
    out = bytearray()
    while number > 127 or padding:
        padding -= number <= 127
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


paddings = st.sampled_from([0] * 40 + [1, 1, 2, 3, 4, 5, 8, 9])
small = st.sampled_from([1, 2, 3, 4, 5] * 4 + [0])


@st.composite
def field(draw: st.DrawFn, number: int, content: st.SearchStrategy[bytes]) -> bytes:
    """A length-delimited field, now and then written with more bytes than it takes."""
    inside = draw(content)
    tag = padded(number << 3 | 2, draw(paddings))
    return tag + padded(len(inside), draw(paddings)) + inside


def joined(*parts: st.SearchStrategy[bytes], most: int = 4) -> st.SearchStrategy[bytes]:
    return st.lists(st.one_of(parts), max_size=most).map(b"".join)


varints = st.builds(
    padded,
    st.one_of(st.integers(0, 300), st.sampled_from([2**63 - 1, 2**63, 2**64 - 1, 2**70 - 1])),
    st.sampled_from([0] * 40 + [1, 2, 7, 8, 9]),
)
scalars = st.one_of(
    st.builds(lambda n, v: padded(n << 3, 0) + v, small, varints),
    st.builds(lambda n, v: padded(n << 3 | 1, 0) + v, small, st.binary(min_size=8, max_size=8)),
    st.builds(lambda n, v: padded(n << 3 | 5, 0) + v, small, st.binary(min_size=4, max_size=4)),
)
groups = st.recursive(
    joined(scalars, most=2),
    lambda inner: st.builds(
        lambda first, last, content: padded(first << 3 | 3, 0) + content + padded(last << 3 | 4, 0),
        st.sampled_from([1] * 9 + [2, 2**29 - 1]),
        st.sampled_from([1] * 9 + [2, 2**29 - 1]),
        inner,
    ),
    max_leaves=3,
)
broken = st.sampled_from([b"\x0e", b"\x0f", b"\x0c"])
odd = st.one_of(scalars, groups, field(7, st.binary(max_size=3)), scalars, groups, broken)
rare = st.integers(0, 15).flatmap(lambda n: odd if n == 15 else st.just(b""))
floats = st.one_of(
    field(1, st.binary(max_size=3).map(lambda raw: raw * 4)),
    field(1, st.sampled_from([b"1234", b"12345678", b"abc"])),
    st.binary(min_size=4, max_size=4).map(lambda raw: b"\x0d" + raw),
)
ints = st.one_of(field(1, joined(varints)), varints.map(lambda raw: b"\x08" + raw))
lists = st.one_of(
    field(1, joined(field(1, st.binary(max_size=9)), rare)),
    field(2, joined(floats, rare)),
    field(3, joined(ints, rare)),
)
features = joined(lists, lists, rare, most=3)
keys = st.one_of(
    st.sampled_from(["", "a", "b", "é", "\uffff", "\U0001f600"]).map(str.encode),
    st.sampled_from([b"a\x00"] * 20 + [b"\xff", b"\xed\xa0\x80", b"\xc0\x80"]),
    st.text(max_size=4).map(lambda text: text.encode("utf-8", "replace")),
)
entries = st.one_of(
    st.tuples(field(1, keys), field(2, features)).map(b"".join),
    joined(field(1, keys), field(2, features), rare),
)
strange = joined(field(1, joined(field(1, entries), field(1, entries), rare)), rare, most=3)

valid: st.SearchStrategy[Example] = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.one_of(
        st.lists(st.binary(max_size=200), max_size=4).map(bytes_feature),
        st.binary(max_size=6).map(lambda raw: float_feature(raw[: len(raw) // 4 * 4])),
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(int64_feature),
        st.lists(st.integers(-5, 200), max_size=4).map(int64_feature),
        st.builds(unset_feature),
    ),
    max_size=5,
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A valid payload with some bytes changed, put in, or cut out."""
    payload = bytearray(encode(draw(valid)))
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(payload)))
        new = draw(st.binary(max_size=2))
        cut = draw(st.sampled_from([len(new)] * 9 + [0, 1, 2**20]))
        payload[place : place + cut] = new
    return bytes(payload)


def compare(judge: Judge, payload: bytes) -> None:
    expected = judge(payload)
    if expected is None:
        with pytest.raises(NotAnExampleError) as caught:
            decode(payload)
        assert 0 <= caught.value.offset <= len(payload)
        assert decode_or_none(payload) is None
        assert decode_fast(payload) is None
        assert canonical(payload) is payload
        return
    content, unknown = expected
    found = decode(payload)
    assert encode(found) == content
    merged, merged_unknown = decode_fully(payload)
    assert merged == found
    # upb forgets the unknown fields of a list that another one of the oneof replaces.
    assert merged_unknown or not unknown
    shape = canonical(payload)
    assert shape == (payload if merged_unknown else content)
    assert canonical(shape) == shape
    fast = decode_fast(payload)
    if fast is not None:
        assert not merged_unknown
        assert fast[0] == merged
        assert fast[1] is (payload == content)
    for feature in found.values():
        assert len(feature.values) == feature.count


@settings(max_examples=400)
@given(payload=st.binary(max_size=40))
def test_arbitrary_bytes_are_judged_as_protobuf_judges_them(judge: Judge, payload: bytes) -> None:
    compare(judge, payload)


@pytest.mark.medium
@settings(max_examples=200)
@given(payload=strange)
def test_strange_encodings_are_read_as_protobuf_reads_them(judge: Judge, payload: bytes) -> None:
    compare(judge, payload)


@pytest.mark.medium
@settings(max_examples=200)
@given(payload=mutated())
def test_damaged_examples_are_judged_as_protobuf_judges_them(judge: Judge, payload: bytes) -> None:
    compare(judge, payload)


@pytest.mark.medium
@settings(max_examples=200)
@given(made=valid)
@example(made={})
def test_canonical_payloads_are_decoded_fast(judge: Judge, made: Example) -> None:
    payload = encode(made)
    assert judge(payload) == (payload, False)
    assert decode_fast(payload) == (made, True)
    assert canonical(payload) is payload


@pytest.mark.parametrize(
    "feature", [bytes_feature(b"xyz"), float_feature([1, 2]), int64_feature([1, 200])]
)
def test_lengths_that_contradict_each_other_are_judged_as_protobuf_judges_them(
    judge: Judge, feature: Feature
) -> None:
    last = encode({"key": feature})
    places = (1, 3, 5, 10, 12, 14)  # of the lengths: each message's, the key's, and the values'
    for payload in (last, encode({"key": feature, "z": unset_feature()})):
        for changes in itertools.product((-1, 0, 1), repeat=len(places)):
            changed = bytearray(payload)
            for place, change in zip(places, changes, strict=True):
                changed[place] += change
            compare(judge, bytes(changed))


@pytest.mark.slow
@settings(max_examples=len(part(range(12_500))))
@given(payload=st.one_of(strange, mutated()), place=st.integers(0, 199), wrong=st.integers(1, 255))
def test_a_long_sweep_agrees_with_protobuf(
    judge: Judge, payload: bytes, place: int, wrong: int
) -> None:
    """25,000 payloads. Drawing one takes longer than comparing it, so each is damaged as well."""
    compare(judge, payload)
    damaged = bytearray(payload or b"\n")
    damaged[place % len(damaged)] ^= wrong
    compare(judge, bytes(damaged))

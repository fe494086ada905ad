from __future__ import annotations

from hypothesis import example as case
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.example.decode import decode
from tfrecreg.example.encode import encode
from tfrecreg.example.features import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.example.wire import varint
from tfrecreg.statistics.columns import Cutter

FEATURES = st.one_of(
    st.lists(st.binary(max_size=300), max_size=4).map(bytes_feature),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4).map(int64_feature),
    st.lists(st.floats(width=32, allow_nan=False), max_size=4).map(float_feature),
    st.just(unset_feature()),
)
NAMES = st.sampled_from(["image", "mask", "label", "é" * 70, ""])
EXAMPLES = st.dictionaries(NAMES, FEATURES, max_size=5)


def field(tag: int, content: bytes) -> bytes:
    return bytes((tag,)) + varint(len(content)) + content


LENGTHS = (0, 127, 128, 255, 256, 300, (1 << 14) - 1, 1 << 14, 1 << 21)
"""Of one to four bytes as varints, with and without each bit that could be mixed up."""


@settings(max_examples=150)
@case({"image": bytes_feature([bytes(length) for length in LENGTHS])}, b"")
@case({name * 256: int64_feature([-1] * 30) for name in "abc"}, b"")
@given(EXAMPLES, st.binary(max_size=5))
def test_values_are_emptied_their_sizes_are_told_and_the_rest_is_kept(example, before) -> None:
    payload = encode(example)
    memory = before + payload + b"behind"
    found = Cutter(["image", "mask", "gone"]).cut(memory, len(before), len(payload))
    images = {
        name: feature
        for name, feature in example.items()
        if name in ("image", "mask") and feature.kind.name == "BYTES"
    }
    if any(name in example and name not in images for name in ("image", "mask")):
        assert found is None  # left to the thorough way
        found = Cutter(["image", "mask", "gone"]).cut_decoded(decode(payload))
    assert found is not None
    cut, sizes = found
    expected = dict(example)
    for name, feature in images.items():
        expected[name] = bytes_feature([b""] * feature.count)
    assert decode(cut) == expected
    assert sizes == {
        name: [len(value) for value in feature.values] for name, feature in images.items()
    }


def test_what_no_encoder_writes_is_left_to_the_thorough_way() -> None:
    cutter = Cutter(["image"])
    example = encode({"image": bytes_feature(b"image")})
    entry = example[2:]
    twice = field(0x0A, entry + entry)
    for payload in (example[:-1], example + b"\x10\x01", example + example, twice, b"\x0a\xff"):
        assert cutter.cut(payload, 0, len(payload)) is None, payload
    assert cutter.cut_decoded(decode(twice)) == cutter.cut_decoded(decode(example))


@settings(max_examples=200)
@given(st.binary(max_size=60))
def test_any_bytes_are_cut_to_an_example_or_left(payload) -> None:
    found = Cutter(["", "a"]).cut(payload, 0, len(payload))
    if found is not None and found[1]:
        assert len(found[0]) <= len(payload) + 8

"""The canonical form: these bytes never change."""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.decode import canonical, decode
from tfrecreg.core.example.model import Example, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature

# name, example, canonical payload in hex. A change here is a new format.
GOLDEN: list[tuple[str, Example, str]] = [
    ("no features", {}, ""),
    ("bytes", {"a": bytes_feature(b"\x00\xff")}, "0a0d 0a0b 0a0161 1206 0a04 0a0200ff"),
    ("text", {"t": bytes_feature("né")}, "0a0e 0a0c 0a0174 1207 0a05 0a036ec3a9"),
    (
        "many bytes",
        {"a": bytes_feature([b"x", b"", b"yz"])},
        "0a12 0a10 0a0161 120b 0a09 0a0178 0a00 0a02797a",
    ),
    ("float", {"f": float_feature(1.5)}, "0a0f 0a0d 0a0166 1208 1206 0a04 0000c03f"),
    (
        "floats",
        {"f": float_feature([0.5, -2.0])},
        "0a13 0a11 0a0166 120c 120a 0a08 0000003f 000000c0",
    ),
    ("int", {"i": int64_feature(1)}, "0a0c 0a0a 0a0169 1205 1a03 0a01 01"),
    (
        "ints",
        {"i": int64_feature([0, 1, 127, 128, 300])},
        "0a12 0a10 0a0169 120b 1a09 0a07 00 01 7f 8001 ac02",
    ),
    ("unset", {"u": unset_feature()}, "0a07 0a05 0a0175 1200"),
    ("empty bytes", {"e": bytes_feature([])}, "0a09 0a07 0a0165 1202 0a00"),
    ("empty floats", {"e": float_feature([])}, "0a09 0a07 0a0165 1202 1200"),
    ("empty ints", {"e": int64_feature([])}, "0a09 0a07 0a0165 1202 1a00"),
    ("one empty value", {"e": bytes_feature(b"")}, "0a0b 0a09 0a0165 1204 0a02 0a00"),
    ("empty key", {"": int64_feature(7)}, "0a0b 0a09 0a00 1205 1a03 0a01 07"),
    (
        # UTF-16 would put the emoji, a surrogate pair, before U+FFFF.
        "order of UTF-8",
        dict.fromkeys(["\U0001f600", "\uffff", "é", "z", "Z", "a/b", "a"], unset_feature()),
        "0a39 0a050a015a1200 0a050a01611200 0a070a03612f621200 0a050a017a1200"
        "0a060a02c3a91200 0a070a03efbfbf1200 0a080a04f09f98801200",
    ),
    (
        "extreme ints",
        {"i": int64_feature([-(2**63), 2**63 - 1, -1, 0])},
        "0a29 0a27 0a0169 1222 1a20 0a1e 80808080808080808001 ffffffffffffffff7f"
        "ffffffffffffffffff01 00",
    ),
    (
        "NaN payloads",
        {"f": float_feature(bytes.fromhex("0000c07f 0100807f 0100c0ff"))},
        "0a17 0a15 0a0166 1210 120e 0a0c 0000c07f 0100807f 0100c0ff",
    ),
    (
        "infinities and zeros",
        {"f": float_feature([float("inf"), float("-inf"), -0.0, 0.0])},
        "0a1b 0a19 0a0166 1214 1212 0a10 0000807f 000080ff 00000080 00000000",
    ),
    (
        "denormals",
        {"f": float_feature([2.0**-149, 2.0**-126 - 2.0**-149])},
        "0a13 0a11 0a0166 120c 120a 0a08 01000000 ffff7f00",
    ),
    (
        "lengths of two bytes",
        {"k": bytes_feature(b"x" * 200)},
        "0ad701 0ad401 0a016b 12ce01 0acb01 0ac801" + "78" * 200,
    ),
]


@pytest.mark.parametrize(
    ("made", "golden"), [row[1:] for row in GOLDEN], ids=[row[0] for row in GOLDEN]
)
def test_golden_vectors_hold(
    made: Example, golden: str, judge: Callable[[bytes], tuple[bytes, bool] | None]
) -> None:
    payload = bytes.fromhex(golden)
    assert encode(made) == payload
    assert decode(payload) == made
    assert encode(decode(payload)) == payload
    assert canonical(payload) is payload
    assert judge(payload) == (payload, False)


def test_insertion_order_leaves_no_trace() -> None:
    features = {"b": int64_feature(1), "a": bytes_feature(b"x"), "é": float_feature(0.5)}
    payloads = {encode(dict(order)) for order in itertools.permutations(features.items())}
    assert len(payloads) == 1


@settings(max_examples=60)
@given(sizes=st.lists(st.sampled_from([0, 1, 127, 128, 4093, 4094, 16384]), max_size=4))
def test_sizes_around_each_length_of_a_length_come_back(sizes: list[int]) -> None:
    made: dict[str, Any] = {
        "all": bytes_feature([b"x" * size for size in sizes]),
        **{f"one{size}": bytes_feature(b"y" * size) for size in sizes},
        **{f"floats{size}": float_feature(struct.pack("<f", size) * size) for size in sizes},
    }
    payload = encode(made)
    found = decode(payload)
    assert found == made
    assert encode(found) == payload
    assert canonical(payload) is payload


def test_large_bytes_are_encoded_alike_from_values_and_from_the_wire(
    delimited: Callable[[int, bytes], bytes],
) -> None:
    values = [b"x" * 100_000, b"", b"y" * 5000]
    expected = delimited(
        1,
        delimited(
            1,
            delimited(1, b"k")
            + delimited(2, delimited(1, b"".join(delimited(1, value) for value in values))),
        ),
    )
    made = encode({"k": bytes_feature(values)})
    assert made == expected
    assert encode(decode(made)) == expected


def test_a_value_that_is_no_feature_is_refused_by_name() -> None:
    wrong: Any = {"label\x1b": 7}
    with pytest.raises(TypeError, match=r"^`label\\x1b` is a `int`, expected a `Feature`$"):
        encode(wrong)


def test_an_example_beyond_protobufs_limit_is_refused_before_it_is_built() -> None:
    part = bytes(2**20)  # many times the same megabyte: nothing here takes 2 GiB
    with pytest.raises(ValueError, match=r"takes 2147\d{6} bytes, more than the 2147483647"):
        encode({"huge": bytes_feature([part] * 2048)})


def test_the_documented_vectors_are_canonical() -> None:
    text = (Path(__file__).parents[3] / "docs" / "formats.md").read_text(encoding="utf-8")
    section = text.split("\n## Canonical Example\n")[1].split("\n### ")[0]
    vectors = re.findall(r"^\|.*\| `([0-9a-f]+)` \|$", section, re.MULTILINE)
    assert len(vectors) == 11
    for vector in vectors:
        payload = bytes.fromhex(vector)
        assert canonical(payload) is payload
        assert encode(decode(payload)) == payload

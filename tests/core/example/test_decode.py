"""Reading what encoders write, and the canonical form of what they wrote."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tfrecreg.core.example.decode import (
    canonical,
    decode,
    decode_fast,
    decode_fully,
    decode_or_none,
)
from tfrecreg.core.example.model import Feature, NotAnExampleError, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature

Delimited = Callable[[int, bytes], bytes]


def test_entries_out_of_order_are_decoded_fast_and_come_out_sorted(delimited: Delimited) -> None:
    one, two = encode({"a": int64_feature(1)}), encode({"b": float_feature([0.5, 2])})
    payload = delimited(1, two[2:] + one[2:])
    expected = {"a": int64_feature(1), "b": float_feature([0.5, 2])}
    assert decode_fast(payload) == (expected, False)
    assert canonical(payload) == encode(expected) == delimited(1, one[2:] + two[2:])


def test_sequence_examples_with_lists_are_their_own_canonical_form(delimited: Delimited) -> None:
    context = encode({"b": int64_feature(1)})[2:] + encode({"a": int64_feature(2)})[2:]
    lists = delimited(1, delimited(1, b"frames") + delimited(2, b""))
    payload = delimited(1, context) + delimited(2, lists)
    assert decode(payload) == {"b": int64_feature(1), "a": int64_feature(2)}
    assert canonical(payload) is payload
    # Without lists nothing tells it from an Example.
    assert canonical(delimited(1, context)) == encode(decode(payload))


def test_events_are_their_own_canonical_form(delimited: Delimited) -> None:
    event = b"\x09" + bytes(8) + b"\x10\x07" + delimited(3, b"brain.Event:2")
    assert decode(event) == {}
    assert canonical(event) is event


Judge = Callable[[bytes], "tuple[bytes, bool] | None"]


def d(number: int, *content: bytes) -> bytes:
    """A delimited field of less than 128 bytes."""
    joined = b"".join(content)
    assert len(joined) < 128
    return bytes((number << 3 | 2, len(joined))) + joined


def entry(*fields: bytes) -> bytes:
    return d(1, d(1, *fields))


K, J = d(1, b"k"), d(1, b"j")


def ints(*numbers: int) -> bytes:
    return d(2, d(3, d(1, bytes(numbers))))


FIVE, SIX = int64_feature(5), int64_feature(6)

READ: list[tuple[str, bytes, dict[str, Feature]]] = [
    ("an empty features message", d(1), {}),
    ("two features messages", entry(K, ints(5)) + entry(J, ints(6)), {"k": FIVE, "j": SIX}),
    ("a key twice", d(1, d(1, K, ints(5)), d(1, K, ints(6))), {"k": SIX}),
    ("a key twice, then no value", d(1, d(1, K, ints(5)), d(1, K)), {"k": unset_feature()}),
    ("an entry with two keys", entry(J, K, ints(5)), {"k": FIVE}),
    ("an entry without a key", entry(ints(5)), {"": FIVE}),
    ("an entry without a value", entry(K), {"k": unset_feature()}),
    ("an empty entry", entry(), {"": unset_feature()}),
    ("value before key", entry(ints(5), K), {"k": FIVE}),
    ("a value twice, merged", entry(K, ints(5), ints(6)), {"k": int64_feature([5, 6])}),
    ("a value thrice", entry(K, ints(5), d(2), ints(6)), {"k": int64_feature([5, 6])}),
    ("another kind twice", entry(K, ints(5), d(2, d(1, d(1, b"x")))), {"k": bytes_feature("x")}),
    (
        "kinds back and forth",
        entry(K, d(2, d(3, d(1, b"\5")), d(1, d(1, b"x")), d(3, d(1, b"\6")))),
        {"k": SIX},
    ),
    (
        "a kind twice, merged",
        entry(K, d(2, d(1, d(1, b"x")), d(1), d(1, d(1, b"y")))),
        {"k": bytes_feature(["x", "y"])},
    ),
    ("unpacked ints", entry(K, d(2, d(3, b"\x08\x05\x08\x06"))), {"k": int64_feature([5, 6])}),
    (
        "packed and unpacked ints",
        entry(K, d(2, d(3, b"\x08\x05", d(1, b"\x06\x07"), d(1), b"\x08\xff\x01"))),
        {"k": int64_feature([5, 6, 7, 255])},
    ),
    (
        "packed and unpacked floats",
        entry(K, d(2, d(2, b"\x0d\x00\x00\x80\x3f", d(1, b"\x00\x00\x00\x40")))),
        {"k": float_feature([1, 2])},
    ),
    ("an empty packed field", entry(K, d(2, d(3, d(1)))), {"k": int64_feature([])}),
    (
        "padded varints",
        entry(K, d(2, d(3, d(1, b"\x85\x80\x00\x86\x00")))),
        {"k": int64_feature([5, 6])},
    ),
    (
        "a tenth byte with too many bits",
        entry(K, d(2, d(3, d(1, b"\xff" * 9 + b"\x7f" + b"\xff" * 9 + b"\x02")))),
        {"k": int64_feature([-1, 2**63 - 1])},
    ),
    ("padded lengths", b"\x0a\x8d\x80\x00" + d(1, K, b"\x12\x85\x00", ints(5)[2:]), {"k": FIVE}),
    ("a length of ten bytes", b"\x0a" + b"\x80" * 9 + b"\x00", {}),
    ("a length beyond 64 bits", b"\x0a" + b"\x80" * 9 + b"\x02", {}),
    ("a tag of five bytes", b"\x8a\x80\x80\x80\x00" + entry(K, ints(5))[1:], {"k": FIVE}),
]


@pytest.mark.parametrize(
    ("payload", "content"), [row[1:] for row in READ], ids=[row[0] for row in READ]
)
def test_odd_encodings_are_read_as_protobuf_reads_them(
    payload: bytes, content: dict[str, Feature], judge: Judge
) -> None:
    assert decode_fully(payload) == (content, False)
    assert decode(payload) == content
    assert judge(payload) == (encode(content), False)
    assert canonical(payload) == encode(content) == canonical(encode(content))


UNKNOWN: list[tuple[str, bytes, dict[str, Feature]]] = [
    ("beside the features", entry(K, ints(5)) + b"\x18\x01", {"k": FIVE}),
    ("only", b"\x10\x01\x19" + bytes(8) + b"\x25" + bytes(4) + d(6, b"\xff"), {}),
    ("features of another wire type", b"\x08\x01" + entry(K, ints(5)), {"k": FIVE}),
    ("in the features", d(1, d(1, K, ints(5)), b"\x18\x01"), {"k": FIVE}),
    ("in the value", entry(K, d(2, d(3, d(1, b"\5")), d(4))), {"k": FIVE}),
    ("a kind of another wire type", entry(K, d(2, b"\x18\x01")), {"k": unset_feature()}),
    ("in the list", entry(K, d(2, d(3, d(1, b"\5"), d(2)))), {"k": FIVE}),
    ("bytes as a varint", entry(K, d(2, d(1, b"\x08\x01"))), {"k": bytes_feature([])}),
    (
        "floats of 64 bits",
        entry(K, d(2, d(2, b"\x09" + bytes(8)))),
        {"k": float_feature([])},
    ),
    ("ints of 32 bits", entry(K, d(2, d(3, b"\x0d" + bytes(4)))), {"k": int64_feature([])}),
    ("a group", b"\x13\x08\x01\x1b\x1c\x14" + entry(K, ints(5)), {"k": FIVE}),
    ("the largest field number", b"\xf8\xff\xff\xff\x0f\x00", {}),
    # An entry with unknown fields is, as a whole, an unknown field to upb.
    ("in an entry", d(1, d(1, K, ints(5), b"\x18\x01"), d(1, J, ints(6))), {"j": SIX}),
    ("a key of another wire type", entry(b"\x08\x01", K, ints(5)), {}),
    ("in the second entry of a key", d(1, d(1, K, ints(5)), d(1, K, ints(6), d(3))), {"k": FIVE}),
]


@pytest.mark.parametrize(
    ("payload", "content"), [row[1:] for row in UNKNOWN], ids=[row[0] for row in UNKNOWN]
)
def test_unknown_fields_are_passed_over_and_remembered(
    payload: bytes, content: dict[str, Feature], judge: Judge
) -> None:
    assert decode_fully(payload) == (content, True)
    assert decode(payload) == content
    assert judge(payload) == (encode(content), True)
    assert canonical(payload) is payload


REFUSED: list[tuple[bytes, int, str]] = [
    (b"\x0a", 1, "a cut varint"),
    (b"\x0a\x85", 1, "a cut varint"),
    (b"\x0a\x05\x0a", 0, "a field that ends 4 bytes too late"),
    (d(1, b"\x0a\x05\x0a"), 2, "a field that ends 4 bytes too late"),
    (d(1, b"\x18\x80") + b"\x01", 3, "a cut varint"),
    (d(1, b"\x1d\x00") + b"\x00" * 9, 2, "a field that ends 3 bytes too late"),
    (b"\x11" + bytes(7), 0, "a field that ends 1 bytes too late"),
    (b"\x10" + b"\x80" * 10 + b"\x01", 1, "a varint of more than 10 bytes"),
    (b"\x0a" + b"\xff" * 9 + b"\x01", 0, f"a field that ends {2**64 - 1} bytes too late"),
    (b"\x0a\x80\x80\x80\x80\x10", 0, f"a field that ends {2**32} bytes too late"),
    (b"\x8a\x80\x80\x80\x80\x00\x00", 0, "a tag of more than 32 bits"),
    (b"\x8a\x80\x80\x80\x10\x00", 0, "a tag of more than 32 bits"),
    (b"\x00\x00", 0, "the field number 0"),
    (b"\x02\x00", 0, "the field number 0"),
    (b"\x13\x00\x00\x14", 1, "the field number 0"),
    (b"\x0e", 0, "the wire type 6, which does not exist"),
    (b"\x13\x0f\x14", 1, "the wire type 7, which does not exist"),
    (b"\x0c", 0, "an unmatched end of group 1"),
    (b"\x13\x1c", 1, "an unmatched end of group 3"),
    (d(1, b"\x14"), 2, "an unmatched end of group 2"),
    (b"\x13" + d(1, b"x"), 4, "a group 2 that is not closed"),
    (d(1, b"\x13") + b"\x14", 3, "a group 2 that is not closed"),
    (entry(d(1, b"a\xff")), 7, "a feature key that is not UTF-8"),
    (entry(d(1, b"\xed\xa0\x80")), 6, "a feature key that is not UTF-8"),
    (entry(d(1, b"\xff"), K, ints(5)), 6, "a feature key that is not UTF-8"),
    (entry(K, d(2, d(2, d(1, b"abc")))), 13, "packed floats of 3 bytes, not a multiple of 4"),
    (entry(K, ints(0x80)), 13, "a cut varint"),
    (entry(K, d(2, d(3, d(1, b"\xff" * 10 + b"\x01")))), 13, "a varint of more than 10 bytes"),
    (entry(K, ints(5), b"\x18\x01", d(1, b"\xff")), 18, "a feature key that is not UTF-8"),
    (entry(K, ints(5), d(2, b"\x0e")), 16, "the wire type 6, which does not exist"),
]


@pytest.mark.parametrize(("payload", "offset", "reason"), REFUSED)
def test_malformed_payloads_are_refused_with_their_place(
    payload: bytes, offset: int, reason: str, judge: Judge
) -> None:
    with pytest.raises(NotAnExampleError) as caught:
        decode(payload)
    assert (caught.value.offset, caught.value.reason) == (offset, reason)
    assert decode_or_none(payload) is None
    assert canonical(payload) is payload
    assert judge(payload) is None


def group(number: int, depth: int) -> bytes:
    return bytes((number << 3 | 3,)) * depth + bytes((number << 3 | 4,)) * depth


@pytest.mark.parametrize("level", range(5))
def test_groups_nest_as_deep_as_protobuf_lets_them(
    level: int, judge: Judge, delimited: Callable[[int, bytes], bytes]
) -> None:
    def payload(depth: int) -> bytes:
        content = group(5, depth)
        for number in ([], [1], [1, 1], [2, 1, 1], [1, 2, 1, 1])[level]:
            content = delimited(number, content)
        return content

    deepest = 100 - level
    assert decode_fully(payload(deepest))[1] is True
    assert judge(payload(deepest)) is not None
    assert judge(payload(deepest + 1)) is None
    with pytest.raises(NotAnExampleError, match="nested more than 100 deep"):
        decode(payload(deepest + 1))
    with pytest.raises(NotAnExampleError, match="nested more than 100 deep"):
        decode(payload(100_000))


def test_payloads_beyond_protobufs_limit_are_refused() -> None:
    class Huge(bytes):
        def __len__(self) -> int:
            return 2**31

    with pytest.raises(NotAnExampleError, match="more than the 2 GiB") as caught:
        decode_fully(Huge())
    assert caught.value.offset == 2**31 - 1


def test_many_pieces_of_one_value_take_no_quadratic_time(
    delimited: Callable[[int, bytes], bytes],
) -> None:
    # Were each piece merged with all before it, this would be minutes.
    pieces = ints(5) * 20_000
    payload = delimited(1, delimited(1, K + pieces))
    assert decode(payload)["k"].count == 20_000

"""What a payload is told to be, and what it is not taken for."""

from __future__ import annotations

import struct

import pytest
from foreign_support import event, example, field, sequence, summary
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example.kinds import PayloadKind, decode_sequence, payload_kind
from tfrecreg.core.example.model import encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature

LISTS = {"s": [bytes_feature(b"a"), int64_feature([1, 2])], "t": []}

EXAMPLES = {
    "an example": example(1),
    "no features": b"",
    "features that are empty": b"\n\x00",
    "features that are empty, twice": b"\n\x00\n\x00",
    "a feature without a kind": encode({"x": unset_feature()}),
    "a field that protobuf passes over": example(1) + field(15, b"new"),
    "first a field of eight bytes, which are no length": (
        b"\x79" + b"\xff" * 8 + b"\xfa\xff\xff\x7f\x00" + example(1)
    ),
    "padded lengths": b"\n\x8c\x00" + encode({"x": int64_feature(1)})[2:],
    "a long one": encode({"x": bytes_feature(bytes(100_000))}),
    "a sequence without lists": sequence({"x": int64_feature(1)}, {})[:-2],
}

SEQUENCES = {
    "context and lists": sequence({"x": int64_feature(1)}, LISTS),
    "no context": sequence({}, LISTS),
    "no steps": sequence({"x": int64_feature(1)}, {"s": []}),
    "lists that are empty": sequence({"x": int64_feature(1)}, {}),
    "context in pieces": encode({"x": int64_feature(1)}) + sequence({"y": unset_feature()}, LISTS),
    "floats": sequence({}, {"f": [float_feature([0.5]), float_feature([])]}),
}

EVENTS = {
    "the first of a log": event(1.5e9),
    "a summary": event(1.5e9, summary(loss=0.5), step=3),
    "a graph": event(1.5e9, field(4, b"graph")),
    "of later versions": event(1.5e9, field(10, b"writer")),
}

OTHERS = {
    "text": b"1 1 2",
    "JSON": b'{"a": 1}',
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(50),
    "zeros": bytes(8),
    "a list of examples with a context": field(1, example(1)) + field(1, example(2)),
    "a message whose fields an Example lacks": field(3, b"chr1") + field(7, b"T"),
    "a time alone": b"\x09" + struct.pack("<d", 1.5e9),
    "a time and a field that events lack": event(1.5e9, field(11, b"x")),
    "a time and a field of another type": event(1.5e9, b"\x20\x05"),
    "a version that is no text": event(1.5e9, field(3, b"\xff")),
    "a sequence with a field too much": sequence({}, LISTS) + field(3, b"x"),
    "a sequence whose context has a field too much": (
        field(1, field(15, b"new")) + sequence({}, LISTS)
    ),
    "lists with a key that is no text": field(2, field(1, field(1, b"\xff"))),
    "lists that are cut": field(2, field(1, field(1, b"s"))[:-1]),
    "a value of a list with a field too much": field(
        2, field(1, field(1, b"s") + field(2, field(1, field(9, b""))))
    ),
}


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        pytest.param(payload, kind, id=f"{kind.value}: {name}")
        for kind, payloads in (
            (PayloadKind.EXAMPLE, EXAMPLES),
            (PayloadKind.SEQUENCE_EXAMPLE, SEQUENCES),
            (PayloadKind.EVENT, EVENTS),
            (PayloadKind.OTHER, OTHERS),
        )
        for name, payload in payloads.items()
    ],
)
def test_a_payload_is_what_it_is(payload: bytes, kind: PayloadKind) -> None:
    assert payload_kind(payload) is kind


def test_a_sequence_is_read_with_its_context_and_its_steps() -> None:
    found = decode_sequence(sequence({"x": int64_feature(7)}, LISTS))
    assert found is not None
    assert {name: feature.values for name, feature in found.context.items()} == {"x": (7,)}
    assert {name: [step.values for step in steps] for name, steps in found.lists.items()} == {
        "s": [(b"a",), (1, 2)],
        "t": [],
    }


def test_of_a_list_that_comes_twice_the_last_holds() -> None:
    first = sequence({}, {"s": [int64_feature(1)]})
    found = decode_sequence(first + sequence({}, {"s": [int64_feature(2), int64_feature(3)]}))
    assert found is not None
    assert [step.values for step in found.lists["s"]] == [(2,), (3,)]


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_have_a_kind(payload: bytes) -> None:
    assert payload_kind(payload) in PayloadKind


@given(st.sampled_from([*SEQUENCES.values(), *EVENTS.values()]), st.data())
@settings(max_examples=200)
def test_one_changed_byte_never_raises(payload: bytes, data: st.DataObject) -> None:
    changed = bytearray(payload)
    changed[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    assert payload_kind(bytes(changed)) in PayloadKind

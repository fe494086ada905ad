"""What is shown of payloads that are no Examples: readable, bounded, and nothing that misleads."""

from __future__ import annotations

from pathlib import Path

from foreign_support import event, put, sequence
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.builtin.look.head import head
from tfrecreg.core.example.format_payload import ShownPart, describe_payload
from tfrecreg.core.example.kinds import payload_kind
from tfrecreg.core.example.model import Feature
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.registry.find import find_target

SEQUENCE = sequence(
    {"n": int64_feature([1, 2]), "b\x1b": bytes_feature(b"\x1b[31mred")},
    {"s": [bytes_feature(b"a"), int64_feature([])], "long": [int64_feature(n) for n in range(30)]},
)


def values(feature: Feature) -> str:
    return "; ".join(repr(value) for value in feature.values)


def parts(payload: bytes) -> list[ShownPart]:
    return list(describe_payload(payload, payload_kind(payload), values))


def rows(payload: bytes) -> list[tuple[str, str, str, str]]:
    return [(each.part, each.name, each.kind, each.shown) for each in parts(payload)]


def test_a_sequence_is_shown_by_context_and_lists() -> None:
    assert rows(SEQUENCE) == [
        ("context", "b\\x1b", "bytes", "b'\\x1b[31mred'"),
        ("context", "n", "int64", "1; 2"),
        ("list", "long", "int64", "[0] [1] [2] [3] … 26 more steps"),
        ("list", "s", "bytes and int64", "[b'a'] []"),
    ]
    assert [each.count for each in parts(SEQUENCE)] == [1, 2, 30, 2]


@given(st.binary(max_size=100))
@settings(max_examples=200)
def test_any_bytes_can_be_described(payload: bytes) -> None:
    for each in parts(payload):
        assert each.name.isprintable()


def test_head_shows_each_by_its_kind(tmp_path: Path) -> None:
    path = put(tmp_path / "x", SEQUENCE, event(1.0), b"\xff", sequence({"n": float_feature(1)}, {}))
    found = list(head(find_target(str(path))))
    assert [each.payload for each in found] == [
        "sequence_example",
        "event",
        "other",
        "sequence_example",
    ]
    assert [each.features for each in found] == [None] * 4
    assert [len(each.parts) for each in found] == [4, 0, 0, 1]
    assert found[2].start == "ff"
    for record in found:
        for part in record.parts:
            assert (part.name + part.shown).isprintable()

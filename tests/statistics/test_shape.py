from __future__ import annotations

import pytest

from tfrecreg.example.encode import encode
from tfrecreg.example.features import bytes_feature, int64_feature
from tfrecreg.records.batch import RecordBatch
from tfrecreg.statistics.columns import are_single_fields

EXAMPLES = [
    encode({}),
    b"",
    encode({"a": int64_feature(1)}),
    encode({"a": bytes_feature(b"x" * 1000)}),
    encode({"a": bytes_feature(b"x" * 100_000)}),
]


def batch(payloads: list[bytes], behind: bytes = b"") -> RecordBatch:
    starts, at = [], 0
    for payload in payloads:
        starts.append(at)
        at += len(payload)
    lengths = [len(payload) for payload in payloads]
    return RecordBatch(0, starts, lengths, starts, b"".join(payloads) + behind)


def test_examples_are_single_fields() -> None:
    assert are_single_fields(batch(EXAMPLES))
    assert are_single_fields(batch([]))
    assert are_single_fields(batch([b""]))


@pytest.mark.parametrize(
    "payload",
    [
        b"\x09" + bytes(8),
        EXAMPLES[2] + b"\x12\x00",
        EXAMPLES[2] + EXAMPLES[2],
        b"{}",
        b"\x0a",
        b"\x0a\x05abc",
        b"\x0a\x80\x80\x80\x80\x80\x80",
        b"\x0a\xff\xff\xff\xff\xff",
    ],
)
@pytest.mark.parametrize("behind", [b"", b"\x00" * 9])
def test_what_is_more_or_less_is_not(payload: bytes, behind: bytes) -> None:
    assert not are_single_fields(batch([*EXAMPLES, payload], behind))
    assert not are_single_fields(batch([payload, *EXAMPLES], behind))

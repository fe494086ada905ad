"""Which records are canonical Examples: the compiled answer is that of the decoder."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.example.decode import canonical, decode_fast
from tfrecreg.core.example.model import Feature, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature, unset_feature
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.records.batch_columns import batch_digests
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.scanner import VARIABLE, load_scanner


def _batch(payloads: Sequence[bytes]) -> RecordBatch:
    lengths = array("q", map(len, payloads))
    starts = array("q", [3 + sum(lengths[:number]) for number in range(len(payloads))])
    return RecordBatch(0, starts, lengths, starts, b"abc" + b"".join(payloads) + b"\x0a\x01")


def _both(payloads: Sequence[bytes]) -> tuple[bytes, bytes]:
    """A byte for each payload, 1 where it is canonical: from the compiled code, and the decoder."""
    batch = _batch(payloads)
    starts, lengths = (np.array(each, np.int64) for each in (batch.starts, batch.lengths))
    flags = np.full(len(payloads), 7, np.uint8)
    columns = (starts.ctypes.data, lengths.ctypes.data, len(payloads))
    load_scanner().canonical(batch.memory, *columns, flags.ctypes.data)
    found = map(decode_fast, batch.payloads())
    return flags.tobytes(), bytes(each is not None and each[1] for each in found)


_KEYS = st.one_of(st.text(max_size=3), st.sampled_from(["é", "日本", "\U0001f600", "a" * 130]))
_VALUES = st.one_of(
    st.lists(st.binary(max_size=200), max_size=3).map(bytes_feature),
    st.lists(st.floats(width=32), max_size=3).map(float_feature),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(int64_feature),
    st.just(unset_feature()),
)


@pytest.mark.medium
@given(
    st.lists(
        st.tuples(
            st.dictionaries(_KEYS, _VALUES, max_size=4),
            st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=2),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_both_agree_on_examples_and_on_damaged_ones(
    compiled: Path,
    made: list[tuple[dict[str, Feature], list[tuple[int, int]], int]],
) -> None:
    del compiled
    payloads = []
    for features, damages, cut in made:
        payload = bytearray(encode(features))
        for place, byte in damages:
            if payload:
                payload[place % len(payload)] = byte
        payloads.append(bytes(payload[: len(payload) - cut] if cut < len(payload) else payload))
    native, python = _both(payloads)
    assert native == python
    for payload, is_canonical in zip(payloads, native, strict=True):
        assert not is_canonical or canonical(payload) == payload


def test_every_sound_example_is_canonical_and_no_other(
    compiled: Path,
) -> None:
    del compiled
    one, two = encode({"a": int64_feature(1)}), encode({"b": int64_feature(2)})
    keys = [
        b"\xc0\x80",
        b"\xed\xa0\x80",
        b"\xf4\x90\x80\x80",
        b"\xe0\x80\x80",
        b"\xff",
        b"\xe2\x82",
    ]
    wrong = [
        b"\x0a" + bytes([len(one) + len(two) - 4]) + two[2:] + one[2:],  # in another order
        b"\x0a" + bytes([2 * len(one) - 4]) + one[2:] + one[2:],  # twice
        b"\x0a\x00",
        b"\x0a\x80\x00",
        b"text",
        b"\x12\x00",
        one + b"\x12\x00",
        one.replace(b"\x1a\x03\x0a\x01\x01", b"\x1a\x03\x08\x01\x01"),
        *(_with_key(key) for key in keys),
        *(_with_integer(each) for each in (b"\x80\x00", b"\xff", b"\xff" * 9 + b"\x02")),
        _with_integer(b"\xff" * 10 + b"\x01"),
    ]
    right = [
        b"",
        one,
        encode({"a": int64_feature(1), "b": float_feature([0.5])}),
        encode({"é": bytes_feature([b"x" * 300, b""]), "日": unset_feature()}),
        *(_with_integer(each) for each in (b"\xff" * 9 + b"\x01", b"\x80\x01", b"\x7f")),
        encode({"": int64_feature([]), "\U0010ffff": float_feature([])}),
    ]
    native, python = _both([*wrong, *right])
    assert native == python == bytes(len(wrong)) + b"\x01" * len(right)


def _field(tag: int, content: bytes) -> bytes:
    return bytes((tag, len(content))) + content


def _with_key(key: bytes) -> bytes:
    return _field(0x0A, _field(0x0A, _field(0x0A, key) + _field(0x12, b"")))


def _with_integer(packed: bytes) -> bytes:
    value = _field(0x12, _field(0x1A, _field(0x0A, packed)))
    return _field(0x0A, _field(0x0A, _field(0x0A, b"a") + value))


@pytest.mark.parametrize("kind", ["native", "python"])
def test_digests_are_those_of_the_canonical_form(
    compiled: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del compiled
    monkeypatch.setenv(VARIABLE, kind)
    one, two = encode({"a": int64_feature(1)}), encode({"b": int64_feature(2)})
    mixed = b"\x0a" + bytes([len(one) + len(two) - 4]) + two[2:] + one[2:]
    payloads = [one, mixed, b"no Example", b""]
    batch = _batch(payloads)
    assert batch_digests(batch) == b"".join(record_digest(canonical(each)) for each in payloads)
    assert batch_digests(batch) is batch_digests(batch)


_SIZES = (0, 1, 63, 64, 65, 127, 128, 129, 500, 959, 960, 961, 1023, 1024, 1025, 3000)


@pytest.mark.parametrize("wide", [0, 1])
def test_digests_of_all_sizes_are_those_of_blake3(compiled: Path, wide: int) -> None:
    """Up to one chunk; of more, and of payloads that are not canonical, nothing is written."""
    del compiled
    source = random.Random(57)
    payloads = [source.randbytes(source.choice(_SIZES)) for _ in range(300)]
    wanted = [source.random() < 0.9 for _ in payloads]
    batch = _batch(payloads)
    starts, lengths = (np.array(each, np.int64) for each in (batch.starts, batch.lengths))
    flags, rows = np.array(wanted, np.uint8), np.zeros((len(payloads), 16), np.uint8)
    columns = (starts.ctypes.data, lengths.ctypes.data, len(payloads))
    load_scanner().digests(wide, batch.memory, *columns, flags.ctypes.data, rows.ctypes.data)
    for payload, is_wanted, flag, row in zip(payloads, wanted, flags, rows, strict=True):
        digested = is_wanted and len(payload) <= 1024
        assert flag == (2 if digested else is_wanted)
        assert row.tobytes() == (record_digest(payload) if digested else bytes(16))

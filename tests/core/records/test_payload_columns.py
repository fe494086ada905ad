"""Payloads of one layout: the compiled reader finds what the one with NumPy does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.example import columns as with_numpy
from tfrecreg.core.example.columns import Column, Layout, Slot, layout_of
from tfrecreg.core.example.decode import decode, decode_or_none
from tfrecreg.core.example.model import Feature, Kind, encode
from tfrecreg.core.example.values import bytes_feature, float_feature, int64_feature
from tfrecreg.core.records.batch_columns import layout_columns
from tfrecreg.core.records.scanner import VARIABLE

_NAMES = st.sampled_from(["", "a", "b", "é", "image/encoded", "k" * 130, "k" * 1000])
_VALUES = st.one_of(
    st.sampled_from([0, 1, 127, 128, 300]).map(lambda size: bytes_feature([b"x" * size])),
    st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-2, 300)).map(int64_feature),
    st.lists(st.floats(width=32), min_size=1, max_size=3).map(float_feature),
)
_CHANGES = st.lists(
    st.tuples(st.sampled_from(["set", "cut", "add", "drop", "flip"]), st.integers(0), st.binary()),
    max_size=2,
)


def _field(tag: int, content: bytes) -> bytes:
    return bytes((tag, len(content))) + content


def _ordered(features: dict[str, Feature]) -> dict[str, Feature]:
    return dict(sorted(features.items(), key=lambda item: item[0].encode()))


def _changed(payload: bytes, changes: Sequence[tuple[str, int, bytes]]) -> bytes:
    changed = bytearray(payload)
    for kind, number, added in changes:
        at = number % (len(changed) + 1)
        if kind == "cut":
            del changed[at:]
        elif kind == "add":
            changed[at:at] = added[:3]
        elif kind == "drop":
            del changed[at : at + 1]
        elif at < len(changed):
            changed[at] = number % 251 if kind == "set" else changed[at] ^ 0x80
    return bytes(changed)


def _equal(layout: Layout, payloads: Sequence[bytes]) -> list[int]:
    """The rows that both readers find, with equal columns; nothing but chance is between them."""
    memory, starts = b"", []
    for number, payload in enumerate(payloads):
        memory += b"\x0a\x12between"[: number % 10]
        starts.append(len(memory))
        memory += payload
    lengths = [len(each) for each in payloads]
    rows, columns = layout_columns(layout, memory, starts, lengths)
    expected, wanted = with_numpy.read_columns(layout, memory, starts, lengths)
    assert rows.tolist() == expected.tolist()
    assert len(columns) == len(wanted)
    for one, other in zip(columns, wanted, strict=True):
        for name in Column._fields:
            assert getattr(one, name).tolist() == getattr(other, name).tolist()
    return rows.tolist()


@settings(max_examples=150)
@given(
    st.dictionaries(_NAMES, _VALUES, min_size=1, max_size=4),
    st.lists(st.dictionaries(_NAMES, _VALUES, min_size=1, max_size=4), max_size=4),
    st.lists(_CHANGES, min_size=1, max_size=12),
)
def test_both_find_the_same_in_sound_and_in_damaged_payloads(
    compiled: Path,
    features: dict[str, Feature],
    others: list[dict[str, Feature]],
    changes: list[list[tuple[str, int, bytes]]],
) -> None:
    del compiled
    payload = encode(_ordered(features))
    layout = layout_of(decode(payload))
    assert layout is not None
    payloads = [payload, *(encode(_ordered(each)) for each in others)]
    payloads += [_changed(payload, each) for each in changes]
    assert 0 in _equal(layout, payloads)


def _entry(key: bytes, value: bytes) -> bytes:
    return _field(0x0A, _field(0x0A, key) + _field(0x12, value))


def _number(packed: bytes, tag: int = 0x0A) -> bytes:
    return _field(0x1A, _field(tag, packed))


_LONG = b"\xff" * 9
_A_FLOAT = _field(0x12, _field(0x0A, b"\x00\x00\xc0\x7f"))  # NaN
_TEXT = _field(0x0A, _field(0x0A, b"xyz"))
_T = _entry(b"t", _TEXT)
_SOUND = [
    *(_number(each) for each in (b"\x07", b"\x7f", b"\x80\x01", _LONG + b"\x01")),
    _number(b"\x80\x00"),  # longer than needed: its value is certain, if not its digest
]
_HOSTILE = [
    *(_number(each) for each in (b"", b"\x80", b"\x01\x02", _LONG, _LONG + b"\x02")),
    _number(_LONG + b"\xff\x01"),
    _number(b"\x07", tag=0x08),  # not packed
    b"\x1a\x02\x08\x07",
    b"\x1a\x00",
    b"",
    _number(b"\x07") + b"\x20\x01",  # an unknown field
    _number(b"\x07") + _number(b"\x07"),
    _field(0x1A, _field(0x0A, b"\x07") + _field(0x0A, b"\x07")),
    _A_FLOAT,
    _field(0x0A, _field(0x0A, b"\x07")),
    b"\x1a\xff\xff\xff\xff\x7f",
    b"\x1a\x80\x80\x80\x80\x80\x00",
]


def test_hostile_payloads_are_left_to_the_decoder(compiled: Path) -> None:
    del compiled
    layout = (
        Slot("a", Kind.INT64, 1),
        Slot("f", Kind.FLOAT, 1),
        Slot("t", Kind.BYTES, 1),
    )
    rest = _entry(b"f", _A_FLOAT) + _T
    sound = [_field(0x0A, _entry(b"a", each) + rest) for each in _SOUND]
    hostile = [_field(0x0A, _entry(b"a", each) + rest) for each in _HOSTILE]
    one = _entry(b"a", _SOUND[0])
    hostile += [
        _field(0x0A, one + one + rest),  # the same entry twice
        _field(0x0A, rest + one),
        _field(0x0A, one + rest + b"\x10\x01"),
        _field(0x0A, one + rest) + b"\x10\x01",
        _field(0x0A, one + _entry(b"f", _TEXT) + _T),
        _field(0x0A, one + _entry(b"f", _field(0x12, _field(0x0A, bytes(8)))) + _T),
        _field(0x0A, one + _entry(b"f", _field(0x12, _field(0x0A, b""))) + _T),
        _field(0x0A, one + _entry(b"f", _field(0x12, b"\x0d\x00\x00\xc0\x7f")) + _T),
        b"",
        b"\x0a",
        b"\x0a\x00",
        *(sound[0][:cut] for cut in range(len(sound[0]))),
    ]
    assert _equal(layout, [*hostile, *sound, *hostile]) == list(
        range(len(hostile), len(hostile) + len(sound))
    )
    for each in sound:
        found = decode_or_none(each)
        assert found is not None
        assert math.isnan(found["f"].values[0])


def test_a_payload_at_the_end_of_the_memory_is_not_read_beyond(compiled: Path) -> None:
    """With lengths that say more than there is."""
    del compiled
    payload = encode({"a": int64_feature(5)})
    layout = layout_of(decode(payload))
    assert layout is not None
    assert _equal(layout, [payload, payload]) == [0, 1]
    for cut in range(len(payload)):
        assert _equal(layout, [payload[:cut]]) == []


@pytest.mark.parametrize("kind", ["native", "python"])
def test_the_rows_are_the_same_with_and_without_a_compiled_scanner(
    compiled: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del compiled
    monkeypatch.setenv(VARIABLE, kind)
    payloads = [encode({"a": int64_feature(number - 3)}) for number in range(6)]
    layout = layout_of(decode(payloads[0]))
    assert layout is not None
    memory = b"".join(payloads)
    lengths = np.array([len(each) for each in payloads])
    rows, (column,) = layout_columns(layout, memory, np.cumsum(lengths) - lengths, lengths)
    assert rows.tolist() == list(range(6))
    assert column.integers.tolist() == [-3, -2, -1, 0, 1, 2]
    assert [memory[slice(*each)] for each in zip(column.start, column.stop, strict=True)] == [
        each[13:] for each in payloads
    ]

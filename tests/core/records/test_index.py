from __future__ import annotations

import struct
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import IndexBuilder, read_index
from tfrecreg.core.values.errors import ManifestError, NewerFormatError

GOLDEN = (
    "544652494e444558"
    "01000000"
    "20000000"
    "0200000000000000"
    "0a00000000000000"
    "0200000000000000"
    "6437b3ac38465133ffb63b75273a8db5"
    "0300000000000000"
    "0700000000000000"
    "af1349b9f5f9a1a6a0404dea36dcc949"
    "0000000000000000"
    "0a00000000000000"
    "612f622e706e67"
    "c3a9ff"
    "00000000000000000000000000000000"
    "e803000000000000d007000000000000"
    "7a7c6461b6add8f3ba2444bbaeeb6b8e3afb3df19b9d4713a638f35e67e94e63"
)


def small() -> bytes:
    builder = IndexBuilder()
    builder.add(record_digest(b"abc"), 3, "a/b.png")
    builder.add(record_digest(b""), 0, "é\udcff")
    return builder.render([(0, 0), (1000, 2000)])


def sealed(body: bytes) -> bytes:
    return body + blake3(body).digest()


def test_index_never_changes() -> None:
    assert small().hex() == GOLDEN
    assert IndexBuilder().render().hex() == (
        "544652494e4445580100000020000000"
        + "00" * 24
        + "a8801ed2baa4d4ed916ec5c6619e6430bc381fc10abf3b33db146bb50a6a2abc"
    )


def test_what_is_read_is_what_was_written() -> None:
    index = read_index(small(), "x.index")
    assert len(index) == 2
    assert index.digests.tobytes() == record_digest(b"abc") + record_digest(b"")
    assert index.lengths.tolist() == [3, 0]
    assert index.keys() == ["a/b.png", "é\udcff"]
    assert index.key(1) == "é\udcff"
    assert index.members == ((0, 0), (1000, 2000))
    assert index.offsets().tolist() == [0, 19]
    assert index.stream_bytes == 35


def test_index_of_no_records_is_one() -> None:
    index = read_index(IndexBuilder().render(), "x")
    assert len(index) == index.stream_bytes == 0
    assert index.offsets().tolist() == index.keys() == []
    assert index.members == ()


@given(
    st.lists(
        st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 2**31), st.text(max_size=20)),
        max_size=20,
    )
)
def test_any_rows_come_back(rows: list[tuple[bytes, int, str]]) -> None:
    builder = IndexBuilder()
    rows = [row for row in rows if row[2].isprintable()]
    for digest, length, key in rows:
        builder.add(digest, length, key)
    index = read_index(builder.render(), "x")
    found = zip(index.digests, index.lengths, index.keys(), strict=True)
    assert [(bytes(digest), int(length), key) for digest, length, key in found] == rows


def test_every_flipped_byte_is_noticed() -> None:
    data = small()
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 0x11
        with pytest.raises((ManifestError, NewerFormatError)):
            read_index(bytes(damaged), "x.index")


def test_every_cut_is_noticed() -> None:
    data = small()
    for end in range(len(data)):
        with pytest.raises(ManifestError):
            read_index(data[:end], "x.index")
    with pytest.raises(ManifestError, match="it should have 178 bytes, found 179"):
        read_index(data + b"x", "x.index")


def header(**changes: Any) -> bytes:
    fields: dict[str, Any] = {
        "magic": b"TFRINDEX",
        "version": 1,
        "row": 32,
        "records": 0,
        "keys": 0,
        "members": 0,
    }
    return struct.pack("<8sIIQQQ", *(fields | changes).values())


@pytest.mark.parametrize("field", ["records", "keys", "members"])
@pytest.mark.parametrize("count", [1, 2**32, 2**64 - 1])
def test_counts_beyond_the_file_are_refused_without_allocating(field: str, count: int) -> None:
    with pytest.raises(ManifestError, match=r"`x\.index` is damaged: it should have \d+ bytes"):
        read_index(sealed(header(**{field: count})), "x.index")


@pytest.mark.parametrize(
    "body",
    [
        header(records=1, keys=1) + bytes(16) + struct.pack("<QQ", 0, 2) + b"k",
        header(records=2, keys=1)
        + bytes(16)
        + struct.pack("<QQ", 0, 2)
        + bytes(16)
        + struct.pack("<QQ", 0, 1)
        + b"k",
        header(keys=1) + b"k",
        header(records=1) + bytes(16) + struct.pack("<QQ", 2**31 + 1, 0),
        header(members=2) + struct.pack("<QQQQ", 5, 5, 5, 6),
    ],
)
def test_nonsense_with_a_good_digest_is_refused(body: bytes) -> None:
    with pytest.raises(ManifestError, match="positions or lengths are impossible"):
        read_index(sealed(body), "x.index")

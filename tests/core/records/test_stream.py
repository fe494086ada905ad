from __future__ import annotations

import gzip
from typing import Any

import pytest
from memory_support import MemoryReader, see
from salvage_support import compress, make

from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.records.reader import open_stream
from tfrecreg.core.records.stream import sniff_compression


def test_plain_record_whose_length_looks_like_gzip_is_plain() -> None:
    length = int.from_bytes(b"\x1f\x8b\x08", "little")
    made = make([bytes(length), b"next"])
    assert made.stream.startswith(b"\x1f\x8b\x08")
    assert sniff_compression(made.stream) == "none"
    seen = see(made.stream, declared="none")
    assert seen.codes == []
    assert seen.end.compression == "none"
    assert [number for number, _, _ in seen.records] == [0, 1]


def test_compression_is_told_by_the_bytes(small_shard: Any) -> None:
    assert sniff_compression(small_shard.stream) == "none"
    assert sniff_compression(compress(small_shard)[0]) == "gzip"
    assert sniff_compression(gzip.compress(b"no record at all")) == "gzip"
    assert sniff_compression(b"") == "none"
    assert sniff_compression(b"some text") == "none"


@pytest.mark.parametrize("byte", range(4))
def test_damaged_gzip_header_is_still_gzip(byte: int, small_shard: Any) -> None:
    data = bytearray(compress(small_shard)[0])
    data[byte] ^= 0xFF
    assert sniff_compression(bytes(data)) == "gzip"


def test_declaration_decides_only_what_the_bytes_do_not(small_shard: Any) -> None:
    stranger = gzip.compress(b"no record at all")
    assert sniff_compression(stranger, "none") == "none"
    assert sniff_compression(stranger, "gzip") == "gzip"
    assert sniff_compression(b"\x1f\x8b", "gzip") == "gzip"
    assert sniff_compression(b"\x1f\x8b", None) == "none"
    assert sniff_compression(b"some text", "gzip") == "none"
    assert sniff_compression(small_shard.stream, "gzip") == "none"
    assert sniff_compression(compress(small_shard)[0], "none") == "gzip"


LENGTHS = [0, 1, 40, 300, 10_000, 100_000, 1 << 20, 1 << 31, 1 << 40]


@pytest.mark.parametrize("declared", ["gzip", None])
@pytest.mark.parametrize("length", LENGTHS)
def test_header_over_the_beginning_of_gzip_makes_it_no_plain_file(
    length: int, declared: Any, small_shard: Any
) -> None:
    data, _ = compress(small_shard, 700)
    forged = frame_header(length) + data[12:]
    stream, _ = open_stream(MemoryReader(forged), digest=False, declared=declared)
    assert stream.compression == "gzip"


@pytest.mark.parametrize("declared", ["none", "gzip", None])
def test_header_that_leads_to_the_end_of_gzip_does_not_hold_for_its_data(
    declared: Any, small_shard: Any
) -> None:
    data, _ = compress(small_shard, 700)
    forged = frame_header(len(data) - 16) + data[12:]
    stream, _ = open_stream(MemoryReader(forged), digest=False, declared=declared)
    assert stream.compression == ("none" if declared == "none" else "gzip")


@pytest.mark.parametrize("members", [1, 40])
def test_plain_file_whose_payloads_are_gzip_of_records_stays_plain(
    members: int, small_shard: Any
) -> None:
    packed = gzip.compress(small_shard.stream) * members
    made = make([b"first", packed, b"last"])
    for changed in (13, made.offsets[1] + 5):  # in the data of the first record, or in a header
        data = bytearray(made.stream)
        data[changed] ^= 1
        stream, _ = open_stream(MemoryReader(bytes(data)), digest=False)
        assert stream.compression == "none"


@pytest.mark.parametrize("declared", ["gzip", None])
def test_gzip_whose_first_records_lie_uncompressed_stays_gzip(declared: Any) -> None:
    """What is left of the first member looks like a plain file, and is longer than the rest."""
    members = [
        gzip.compress(make([bytes([n]) * size]).stream, 0) for n, size in enumerate((900, 30))
    ]
    data = frame_header(57) + b"".join(members)[12:]
    stream, _ = open_stream(MemoryReader(data), digest=False, declared=declared)
    assert stream.compression == "gzip"

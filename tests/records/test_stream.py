from __future__ import annotations

import gzip
from typing import Any

import pytest
from blake3 import blake3

from tfrecreg.records.framing import frame
from tfrecreg.records.reader import open_stream
from tfrecreg.records.stream import sniff_compression


def test_plain_record_whose_length_looks_like_gzip_is_plain(shard: Any, see: Any) -> None:
    length = int.from_bytes(b"\x1f\x8b\x08", "little")
    made = shard([bytes(length), b"next"])
    assert made.stream.startswith(b"\x1f\x8b\x08")
    assert sniff_compression(made.stream) == "none"
    seen = see(made.stream, declared="none")
    assert seen.codes == []
    assert seen.end.compression == "none"
    assert [number for number, _, _ in seen.records] == [0, 1]


def test_compression_is_told_by_the_bytes(small_shard: Any, compress: Any) -> None:
    assert sniff_compression(small_shard.stream) == "none"
    assert sniff_compression(compress(small_shard)[0]) == "gzip"
    assert sniff_compression(gzip.compress(b"no record at all")) == "gzip"
    assert sniff_compression(b"") == "none"
    assert sniff_compression(b"some text") == "none"


@pytest.mark.parametrize("byte", range(4))
def test_damaged_gzip_header_is_still_gzip(byte: int, small_shard: Any, compress: Any) -> None:
    data = bytearray(compress(small_shard)[0])
    data[byte] ^= 0xFF
    assert sniff_compression(bytes(data)) == "gzip"


def test_declaration_decides_only_what_the_bytes_do_not(small_shard: Any, compress: Any) -> None:
    stranger = gzip.compress(b"no record at all")
    assert sniff_compression(stranger, "none") == "none"
    assert sniff_compression(stranger, "gzip") == "gzip"
    assert sniff_compression(b"\x1f\x8b", "gzip") == "gzip"
    assert sniff_compression(b"\x1f\x8b", None) == "none"
    assert sniff_compression(b"some text", "gzip") == "none"
    assert sniff_compression(small_shard.stream, "gzip") == "none"
    assert sniff_compression(compress(small_shard)[0], "none") == "gzip"


def test_both_digests_come_of_one_reading(
    memory_reader: Any, small_shard: Any, compress: Any
) -> None:
    for data in (small_shard.stream, compress(small_shard, 700)[0]):
        reader = memory_reader(data)
        stream, file = open_stream(reader, digest=True)
        at = 0
        while piece := stream.window(at, 1000):
            assert piece == small_shard.stream[at : at + 1000]
            at += len(piece)
        assert stream.position == at == len(small_shard.stream)
        assert stream.hexdigest() == blake3(small_shard.stream).hexdigest()
        assert file.hexdigest() == blake3(data).hexdigest()


def test_no_digest_is_made_if_nobody_asks(memory_reader: Any, small_shard: Any) -> None:
    stream, file = open_stream(memory_reader(small_shard.stream), digest=False)
    assert stream.hexdigest() is None
    assert file.hexdigest() is None


def test_record_of_nothing_is_a_stream() -> None:
    header, footer = frame(b"")
    assert sniff_compression(header + footer) == "none"

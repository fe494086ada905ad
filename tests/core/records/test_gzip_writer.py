from __future__ import annotations

import gzip
import io
import random
import zlib
from typing import Any

import pytest
from salvage_support import compress, make

from tfrecreg.core.records.gzip_writer import (
    INPUT_BUFFER,
    MEMBER_BYTES,
    MEMBER_HEADER,
    GzipEncoder,
    ends_badly,
    parse_member_header,
)

OTHER_ZLIB = "ng" in zlib.ZLIB_RUNTIME_VERSION


def test_member_header_never_changes() -> None:
    assert MEMBER_HEADER.hex() == "1f8b08000000000000ff"


@pytest.mark.skipif(OTHER_ZLIB, reason="zlib-ng compresses to other bytes than zlib")
def test_compressed_bytes_never_change() -> None:
    assert compress(make([b"abc"]))[0].hex() == (
        "1f8b08000000000000ff636680800d333df9129392f3c23f2a020032a97b3913000000"
    )


def test_empty_stream_is_one_empty_member() -> None:
    data, members = compress(make([]))
    assert data.hex() == "1f8b08000000000000ff03000000000000000000"
    assert members == [(0, 0)]
    assert gzip.decompress(data) == b""


def test_python_reads_what_we_compress(small_shard: Any) -> None:
    for member_bytes in (1, 500, MEMBER_BYTES):
        data, _ = compress(small_shard, member_bytes)
        assert gzip.decompress(data) == small_shard.stream


def test_members_begin_at_records_and_can_be_read_alone(small_shard: Any) -> None:
    data, members = compress(small_shard, 700)
    assert len(members) > 5
    ends = [*(file for file, _ in members[1:]), len(data)]
    stops = [*(stream for _, stream in members[1:]), len(small_shard.stream)]
    for (file, stream), end, stop in zip(members, ends, stops, strict=True):
        assert stream in small_shard.offsets
        assert gzip.decompress(data[file:end]) == small_shard.stream[stream:stop]
        assert stop - stream >= 700 or stop == len(small_shard.stream)
        assert stop - stream < 700 + 216


def test_member_holds_about_a_mebibyte() -> None:
    record = random.Random(1).randbytes(100_000)
    encoder = GzipEncoder()
    for _ in range(25):
        encoder.write(record)
    encoder.close()
    assert [stream for _, stream in encoder.members] == [0, 1_100_000, 2_200_000]


def first_member(size: int, *, apart: bool) -> tuple[bytes, bytes]:
    """A file whose first member holds a record of random bytes, and the file's stream."""
    source = random.Random(5)
    records = [source.randbytes(size), *(b"record %d" % number for number in range(3))]
    encoder = GzipEncoder(8, apart=apart)
    return b"".join(map(encoder.write, records)) + encoder.close(), b"".join(records)


def first_end(data: bytes) -> int:
    inflater = zlib.decompressobj(31)
    inflater.decompress(data)
    return len(data) - len(inflater.unused_data)


@pytest.mark.medium
def test_no_member_ends_right_behind_the_end_of_a_buffer() -> None:
    """TensorFlow would lose what follows it: see `tensorflow_reader.InputBuffer`."""
    natural = INPUT_BUFFER - first_end(first_member(INPUT_BUFFER, apart=True)[0]) + INPUT_BUFFER
    moved = 0
    for behind in range(-2, 20):
        plain, stream = first_member(natural + behind, apart=True)
        data, _ = first_member(natural + behind, apart=False)
        assert first_end(plain) == INPUT_BUFFER + behind
        assert gzip.decompress(data) == stream
        assert not ends_badly(first_end(data))
        assert (data == plain) == (not 1 <= behind <= 16)
        assert first_end(data) - first_end(plain) <= 25
        moved += data != plain
    assert moved == 16


def test_a_member_of_nothing_but_one_record_can_be_moved() -> None:
    for held in (b"x", b"", bytes(100)):
        encoder = GzipEncoder(apart=True)
        length = len(encoder.write(held) + encoder.close())
        for end in (1, 10, 16):
            encoder = GzipEncoder()
            encoder.skip(INPUT_BUFFER + end - length, 0, [])
            data = encoder.write(held) + encoder.close()
            assert gzip.decompress(data) == held
            assert not ends_badly(INPUT_BUFFER + end - length + len(data))


def test_header_of_another_tool_is_measured() -> None:
    buffer = io.BytesIO()
    with gzip.GzipFile("some name.tfrecord", "wb", fileobj=buffer) as file:
        file.write(b"\x03")
    found = parse_member_header(buffer.getvalue())
    assert (found.size, found.optional, found.problem) == (
        10 + len(b"some name.tfrecord") + 1,
        True,
        "",
    )

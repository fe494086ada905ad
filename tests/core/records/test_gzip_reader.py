from __future__ import annotations

import gzip
import io
import random
import struct
import zlib
from typing import Any

import pytest
from check_support import framed
from memory_support import MemoryReader, see

from tfrecreg.core.records.gzip_reader import GzipStream
from tfrecreg.core.records.stream import HashedFile

TEXT = random.Random(3).randbytes(400) * 60


@pytest.fixture
def inflate() -> Any:
    def opened(data: bytes, **options: Any) -> GzipStream:
        return GzipStream(HashedFile(MemoryReader(data), digest=False), digest=False, **options)

    return opened


def read_all(stream: GzipStream, step: int = 1000) -> bytes:
    parts = []
    while piece := stream.window(stream.position, step):
        parts.append(piece)
    return b"".join(parts)


def deflated(data: bytes, level: int = 6) -> bytes:
    deflate = zlib.compressobj(level, zlib.DEFLATED, -15)
    return deflate.compress(data) + deflate.flush()


def test_optional_header_fields_are_passed_over(inflate: Any) -> None:
    buffer = io.BytesIO()
    with gzip.GzipFile("a name", "wb", fileobj=buffer, mtime=1) as file:
        file.write(TEXT)
    body = deflated(TEXT)
    trailer = struct.pack("<II", zlib.crc32(TEXT), len(TEXT))
    extra = b"\x1f\x8b\x08\x14" + bytes(6) + struct.pack("<H", 5) + b"extra" + b"comment\0"
    stream = inflate(buffer.getvalue() + extra + body + trailer)
    assert read_all(stream) == TEXT * 2
    assert stream.interruption is None


@pytest.mark.parametrize(("zeros", "tail"), [(1, 0), (2, None), (3000, None)])
def test_zeros_behind_the_last_member_are_damage_that_costs_nothing(
    zeros: int, tail: int | None, inflate: Any
) -> None:
    """`gzip` takes them for padding, TensorFlow for an error: from two on, zlib sees them."""
    data = gzip.compress(TEXT)
    stream = inflate(data + bytes(zeros))
    assert read_all(stream) == TEXT
    damage = stream.interruption
    assert damage is not None
    assert (damage.member, damage.stream) == (len(data), len(TEXT))
    assert (damage.lossless, damage.inside, damage.cut) == (True, False, False)
    assert damage.tail == tail
    assert stream.resume()
    assert stream.ends_at(len(TEXT))


def test_everything_before_damage_is_decoded(inflate: Any) -> None:
    source = random.Random(11)
    text = source.randbytes(200_000)
    data = bytearray(deflated(text, 0))  # stored blocks of known size
    blocks = [0]
    while blocks[-1] + 5 < len(data):
        size = int.from_bytes(data[blocks[-1] + 1 : blocks[-1] + 3], "little")
        blocks.append(blocks[-1] + 5 + size)
    data[blocks[2] + 3] ^= 0xFF  # the complement of the third block's size
    trailer = struct.pack("<II", zlib.crc32(text), len(text))
    stream = inflate(b"\x1f\x8b\x08" + bytes(7) + bytes(data) + trailer)
    whole = blocks[2] - 10
    assert read_all(stream) == text[:whole]
    assert stream.interruption is not None
    assert "its data do not decode" in stream.interruption.detail
    assert stream.interruption.stream == whole


def test_reading_goes_on_in_a_damaged_member_where_none_is_whole(inflate: Any) -> None:
    first, second = (framed(random.Random(number).randbytes(400)) for number in range(2))
    destroyed = gzip.compress(first)[:10] + b"\xff" * 400
    stream = inflate(destroyed + gzip.compress(second)[:300])
    assert read_all(stream) == b""
    assert stream.interruption is not None
    assert (stream.interruption.member, stream.interruption.cut) == (0, False)
    assert stream.resume()
    assert stream.guessed
    assert stream.position == 0
    rest = read_all(stream)
    assert len(rest) > 250
    assert second.startswith(rest)
    assert stream.interruption.cut
    assert not stream.resume()


@pytest.mark.parametrize("cut", [False, True])
def test_a_damaged_member_inside_one_that_the_file_ends_in_is_a_payload(
    cut: bool, inflate: Any
) -> None:
    """Where the outer one is damaged in another way, the inner one may be the next of the file."""
    inner = bytearray(gzip.compress(framed(random.Random(0).randbytes(400))))
    inner[-8] ^= 1
    outer = gzip.compress(framed(bytes(inner)), 0)
    at = outer.index(inner[:10])
    stream = inflate(outer[:-20] if cut else outer[:-20] + b"\xff" * 40)
    read_all(stream)
    assert stream.interruption is not None
    assert stream.interruption.cut == cut
    assert stream.resume() != cut
    assert stream.guessed
    if not cut:
        assert stream.file_position == at


@pytest.mark.parametrize("left", range(8))
@pytest.mark.parametrize("wrong", [False, True])
def test_zlib_reports_a_wrong_checksum_as_soon_as_all_of_it_is_there(
    left: int, wrong: bool, inflate: Any
) -> None:
    """TensorFlow takes a cut trailer for the end of the file, unless zlib stops before."""
    before = gzip.compress(TEXT, mtime=0)
    data = bytearray(before)
    data[-8] ^= wrong
    del data[len(data) - 8 + left :]
    try:
        zlib.decompressobj(31).decompress(data)
        fails = False
    except zlib.error:
        fails = True
    assert fails == (wrong and left >= 4)
    stream = inflate(before + data)
    assert read_all(stream) == TEXT * 2
    damage = stream.interruption
    assert damage is not None
    assert damage.detail.endswith("the file ends inside its trailer")
    assert damage.tail == (None if fails else 0)
    is_lossless = not wrong or left == 0
    assert (damage.cut, damage.lossless, damage.inside) == (True, is_lossless, not is_lossless)


def test_file_that_shrinks_ends_inside_a_member() -> None:
    text = random.Random(5).randbytes(3_000_000)
    data = gzip.compress(text, 1)
    reader = MemoryReader(data)
    stream = GzipStream(HashedFile(reader, digest=False), digest=False)
    assert stream.window(0, 1000) == text[:1000]
    reader.data = data[:2_000_000]
    rest = read_all(stream, 1 << 20)
    assert text[1000:].startswith(rest)
    assert stream.interruption is not None
    assert stream.interruption.cut


@pytest.mark.parametrize("lost", [1, 4, 6, 7, 8])
def test_members_without_trailers_keep_their_records(lost: int) -> None:
    payloads = [random.Random(number).randbytes(300) for number in range(400)]
    members = (gzip.compress(framed(payload), mtime=0)[:-lost] for payload in payloads)
    seen = see(b"".join(members))
    assert [payload for _, _, payload in seen.records] == payloads
    assert {fault.code for fault in seen.faults} == {"CRC007"}
    assert len(seen.faults) == 400


def test_a_long_header_is_read_as_far_as_it_goes(inflate: Any) -> None:
    """And no further: the rest of the file is not asked for."""
    name = b"n" * 70_000 + b"\0"
    body = deflated(TEXT) + struct.pack("<II", zlib.crc32(TEXT), len(TEXT))
    stream = inflate(b"\x1f\x8b\x08\x08" + bytes(6) + name + body + bytes(3_000_000))
    assert stream.window(0, 100) == TEXT[:100]
    assert stream._file._reader.most <= 1 << 19


def test_headers_that_begin_nothing_are_not_decoded(
    inflate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage sends the reader to look for the next member among 100,000 headers."""
    opened = []
    decompressobj = zlib.decompressobj

    def counted(bits: int) -> Any:
        opened.append(bits)
        return decompressobj(bits)

    good = gzip.compress(TEXT, mtime=0)
    bad = bytearray(good)
    bad[20:40] = bytes(20)
    stream = inflate(bytes(bad) + b"\x1f\x8b\x08\x00" * 100_000 + good)
    monkeypatch.setattr(zlib, "decompressobj", counted)
    read_all(stream)
    assert stream.resume()
    assert read_all(stream) == TEXT
    assert len(opened) < 20

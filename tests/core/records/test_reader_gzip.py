"""Reading compressed shards: what gzip's damage does to records."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from typing import Any

import pytest
from blake3 import blake3
from memory_support import see
from salvage_support import compress, make

from tfrecreg.core.records.framing import frame_header

# Bytes of a member's header that no checksum covers and that change nothing: time, effort, system.
IDLE = range(4, 10)


def bounds(members: Any, at: int) -> tuple[int, int]:
    """The member of this byte of the file: where it begins and ends in the stream."""
    number = max(n for n, (file, _) in enumerate(members) if file <= at)
    end = members[number + 1][1] if number + 1 < len(members) else 1 << 60
    return members[number][1], end


def test_compressed_shard_is_delivered_whole(small_shard: Any) -> None:
    for member_bytes in (1, 700, 1 << 20):
        data, _ = compress(small_shard, member_bytes)
        seen = see(data, declared="gzip", digest=True)
        assert seen.faults == []
        assert seen.records == small_shard.records
        assert seen.end.compression == "gzip"
        assert seen.end.file_bytes == len(data)
        assert seen.end.stream_bytes == len(small_shard.stream)
        assert seen.end.blake3 == blake3(data).hexdigest()
        assert seen.end.stream_blake3 == blake3(small_shard.stream).hexdigest()


def test_empty_member_is_a_shard_of_no_records() -> None:
    seen = see(compress(make([]))[0], declared="gzip", digest=True)
    assert seen.faults == []
    assert seen.end.compression == "gzip"
    assert seen.end.stream_blake3 == blake3(b"").hexdigest()


def test_members_may_begin_inside_records(small_shard: Any) -> None:
    stream = small_shard.stream
    data = b"".join(gzip.compress(stream[at : at + 101]) for at in range(0, len(stream), 101))
    seen = see(data, digest=True)
    assert seen.faults == []
    assert seen.records == small_shard.records


@pytest.mark.parametrize("member_bytes", [1, 700, 1 << 20])
def test_where_members_begin_is_what_the_writer_noted(member_bytes: int, small_shard: Any) -> None:
    data, members = compress(small_shard, member_bytes)
    assert see(data, list_members=True).end.members == tuple(members)
    assert see(data).end.members == ()
    flawed = bytearray(data)
    flawed[members[-1][0] + 12] ^= 0x55
    for damaged in (bytes(flawed), data[:-1], data + bytes(9)):
        assert see(damaged, list_members=True).end.members == ()


def test_foreign_members_and_plain_shards(small_shard: Any) -> None:
    stream = small_shard.stream
    pieces = [gzip.compress(stream[at : at + 101]) for at in range(0, len(stream), 101)]
    starts = [sum(map(len, pieces[:number])) for number in range(len(pieces))]
    begun = tuple((start, 101 * number) for number, start in enumerate(starts))
    assert see(b"".join(pieces), list_members=True).end.members == begun
    assert see(stream, list_members=True).end.members == ()
    assert see(gzip.compress(b""), list_members=True).end.members == ((0, 0),)
    assert see(b"", list_members=True).end.members == ()


@pytest.mark.parametrize("zeros", [1, 2, 512])
def test_zeros_behind_the_last_member_cost_no_record(zeros: int, small_shard: Any) -> None:
    data, _ = compress(small_shard, 2000)
    seen = see(data + bytes(zeros), digest=True)
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.offset) == ("CRC007", None, len(small_shard.stream))
    assert (
        f"byte {len(data)} of the file: it is missing, and only zeros follow up to the file's end"
        in fault.detail
    )
    assert fault.detail.endswith("; no record is lost")
    assert seen.records == small_shard.records
    assert seen.end.blake3 == blake3(data + bytes(zeros)).hexdigest()
    assert seen.end.stream_blake3 == blake3(small_shard.stream).hexdigest()


def test_gzip_declared_none_is_told_first_and_read_on(small_shard: Any) -> None:
    seen = see(compress(small_shard)[0], declared="none")
    assert seen.codes == ["CRC006"]
    assert seen.faults[0].detail == "compression should be `none`, found `gzip`"
    assert seen.records == small_shard.records
    assert see(compress(make([]))[0], declared="none").codes == ["CRC006"]


def test_damage_from_before_compression_is_found_as_in_plain_files(small_shard: Any) -> None:
    source = random.Random(21)
    for _ in range(200):
        at = source.randrange(len(small_shard.stream))
        stream = bytearray(small_shard.stream)
        stream[at] ^= source.randrange(1, 256)
        number = small_shard.record_at(at)
        code = "CRC001" if at - small_shard.offsets[number] < 12 else "CRC002"
        half = len(stream) // 2
        data = gzip.compress(stream[:half], 1) + gzip.compress(stream[half:], 1)
        seen = see(data, batch_bytes=3000, digest=True)
        assert [(f.code, f.record, f.offset) for f in seen.faults] == [
            (code, number, small_shard.offsets[number])
        ]
        assert seen.records == small_shard.without(number)
        assert seen.end.stream_blake3 == blake3(stream).hexdigest()


@pytest.mark.medium
@pytest.mark.parametrize("with_index", [False, True])
def test_any_flipped_byte_is_one_fault_and_costs_one_member_at_most(
    with_index: bool, small_shard: Any
) -> None:
    data, members = compress(small_shard, 2000)
    options = {"known_offsets": small_shard.offsets, "members": members} if with_index else {}
    source = random.Random(22)
    unseen = 0
    for _ in range(1000):
        at = source.randrange(len(data))
        damaged = bytearray(data)
        damaged[at] ^= source.randrange(1, 256)
        begin, end = bounds(members, at)
        seen = see(damaged, digest=True, **options)
        assert seen.end.blake3 == blake3(damaged).hexdigest()
        if not seen.faults:
            unseen += 1
            assert seen.records == small_shard.records
            continue
        (fault,) = seen.faults
        assert fault.code == "CRC007"
        assert begin <= fault.offset <= end
        assert fault.record in (None, *range(200))
        assert fault.exact == (fault.record is None)
        if fault.record is not None:
            assert fault.offset == small_shard.offsets[fault.record]
        delivered = {(o, p) for _, o, p in seen.records}
        assert {(o, p) for _, o, p in small_shard.records if not begin <= o < end} <= delivered
        if with_index:
            numbers = {(n, o) for n, o, _ in seen.records if not begin <= o < end}
            assert numbers <= {(n, o) for n, o, _ in small_shard.records}
    # Only bits that change nothing: see "What no reader of the bare file can see".
    assert unseen < 25


def test_every_byte_of_a_members_header_and_trailer(small_shard: Any) -> None:
    data, members = compress(small_shard, 2000)
    for file, _ in (members[0], members[2]):
        for place in [*range(10), *range(-8, 0)]:
            if file + place < 0:
                continue
            for change in (0x01, 0x04, 0x08, 0x10, 0x80, 0xFF):
                damaged = bytearray(data)
                damaged[file + place] ^= change
                seen = see(damaged)
                idle = place in IDLE or (place == 3 and change == 0x01)
                assert seen.codes == ([] if idle else ["CRC007"]), (file, place, change)
                assert seen.records == small_shard.records
                if not idle:
                    assert seen.faults[0].record is None
                    assert seen.faults[0].detail.endswith("; no record is lost")


def test_fault_names_where_the_damage_takes_effect(small_shard: Any) -> None:
    data, members = compress(small_shard, 2000)
    damaged = bytearray(data)
    at = members[2][0] + 600
    damaged[at : at + 50] = bytes(50)
    seen = see(damaged)
    (fault,) = seen.faults
    assert fault.code == "CRC007"
    assert fault.record is not None
    assert fault.offset == small_shard.offsets[fault.record]
    assert members[2][1] < fault.offset < members[3][1]
    assert fault.length == members[3][1] - fault.offset
    assert f"gzip member at byte {members[2][0]} of the file: " in fault.detail
    assert f"; bytes {fault.offset} to {members[3][1]} of the stream are lost" in fault.detail
    before = [r for r in small_shard.records if r[1] < fault.offset]
    behind = [r for r in small_shard.records if r[1] >= members[3][1]]
    assert seen.records[: len(before)] == before
    assert [r[1:] for r in seen.records[len(before) :]] == [r[1:] for r in behind]
    assert seen.records[len(before)][0] == fault.record + 1
    exact = see(damaged, known_offsets=small_shard.offsets, members=members)
    assert exact.records == before + behind


def test_single_member_gives_what_is_before_the_damage(small_shard: Any) -> None:
    data, _ = compress(small_shard)
    damaged = bytearray(data)
    middle = len(data) // 2
    damaged[middle : middle + 20] = bytes(20)
    seen = see(damaged, digest=True)
    assert seen.codes == ["CRC007"]
    assert "the stream is lost from byte" in seen.faults[0].detail
    assert 50 < len(seen.records) < 150
    assert seen.records == small_shard.records[: len(seen.records)]
    assert seen.end.stream_blake3 is None


def test_cut_at_every_byte_is_found_unless_it_is_between_members() -> None:
    source = random.Random(31)
    made = make([source.randbytes(source.randrange(40)) for _ in range(30)])
    data, members = compress(made, 300)
    clean = []
    for cut in range(len(data)):
        seen = see(data[:cut])
        assert seen.records == made.records[: len(seen.records)]
        if seen.faults:
            assert len(seen.faults) == 1
            assert seen.codes[0] in ("CRC007", "CRC004" if cut < 3 else "CRC007")
        else:
            clean.append(cut)
    assert clean == [file for file, _ in members]


def test_cut_header_of_a_declared_gzip_is_damaged_gzip(small_shard: Any) -> None:
    data, _ = compress(small_shard)
    for cut in (1, 2, 3, 9, 15):
        assert see(data[:cut], declared="gzip").codes == ["CRC007"]


def test_garbage_behind_the_last_member_is_found(small_shard: Any) -> None:
    data, _ = compress(small_shard)
    seen = see(data + b"garbage")
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.offset) == ("CRC007", None, len(small_shard.stream))
    assert seen.records == small_shard.records


def test_gzip_of_something_else_is_no_tfrecord() -> None:
    for content in (b"text, and nothing else " * 40, bytes(100_000)):
        for declared in (None, "gzip", "none"):
            seen = see(gzip.compress(content), declared=declared)
            assert seen.codes == ["CRC008"]


def test_damaged_gzip_of_which_nothing_decodes_is_damaged_gzip() -> None:
    assert see(b"\x1f\x8b\x08\x00" + bytes(6) + b"\xff" * 50).codes == ["CRC007"]


def test_damaged_record_too_large_to_hold_is_found() -> None:
    made = make([b"first", random.Random(2).randbytes(300_000), b"last"])
    stream = bytearray(made.stream)
    stream[made.offsets[1] + 200_000] ^= 1
    seen = see(gzip.compress(stream, 1), hold_limit=1000, batch_bytes=1000)
    assert [(f.code, f.record, f.offset) for f in seen.faults] == [("CRC002", 1, 21)]
    assert seen.records == made.without(1)


def test_large_record_behind_a_destroyed_one_is_found() -> None:
    made = make([b"first", bytes(2_000_000), b"last"])
    seen = see(gzip.compress(bytes(14) + made.stream[14:]), batch_bytes=1000)
    assert [(f.code, f.record, f.offset) for f in seen.faults] == [("CRC001", 0, 0)]
    assert seen.records == made.without(0)


def test_large_record_in_a_damaged_member_is_lost_with_it() -> None:
    made = make([b"first", random.Random(2).randbytes(300_000), b"last"])
    data, members = compress(made, 1000)
    damaged = bytearray(data)
    damaged[members[0][0] + 150_000] ^= 1
    seen = see(damaged, hold_limit=1000, batch_bytes=1000)
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.offset) == ("CRC007", 1, 21)
    assert seen.records == made.without(1)


@pytest.mark.parametrize("batch_bytes", [1000, 1 << 20])
def test_large_record_passes_over_a_damaged_trailer(batch_bytes: int) -> None:
    made = make([b"first", bytes(30_000), b"last"])
    first = bytearray(gzip.compress(made.stream[:10_000]))
    first[-8] ^= 1
    data = bytes(first) + gzip.compress(made.stream[10_000:])
    seen = see(data, hold_limit=1000, batch_bytes=batch_bytes)
    assert [(f.code, f.record, f.offset) for f in seen.faults] == [("CRC007", None, 10_000)]
    assert [(n, o) for n, o, _ in seen.records] == [(n, o) for n, o, _ in made.records]


def test_large_record_in_a_file_that_is_cut_is_lost() -> None:
    made = make([b"first", random.Random(2).randbytes(300_000), b"last"])
    data, _ = compress(made)
    seen = see(data[:100_000], hold_limit=1000, batch_bytes=1000)
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.offset) == ("CRC007", 1, 21)
    assert "the file ends inside it, at byte 100000" in fault.detail
    assert seen.records == made.records[:1]


def test_large_record_that_was_cut_before_compression_is_truncated() -> None:
    made = make([b"first", bytes(300_000)])
    seen = see(gzip.compress(made.stream[:-7]), hold_limit=1000, batch_bytes=1000)
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.offset, fault.length) == ("CRC003", 1, 21, 300_000)


def test_record_over_two_members_of_which_one_is_damaged(small_shard: Any) -> None:
    cut = small_shard.offsets[100] + 5
    stream = bytearray(small_shard.stream)
    stream[cut + 1] ^= 1
    first = bytearray(gzip.compress(stream[:cut]))
    first[-7] ^= 1
    seen = see(bytes(first) + gzip.compress(stream[cut:]))
    assert seen.codes == ["CRC007"]
    assert seen.records == small_shard.without(100)


def test_many_damaged_records_do_not_read_a_member_each(small_shard: Any) -> None:
    stream = bytearray(small_shard.stream)
    for start in small_shard.offsets[::2]:
        stream[start + 2] ^= 1
    seen = see(gzip.compress(stream))
    assert seen.codes == ["CRC001"] * 100
    assert seen.records == small_shard.records[1::2]


@pytest.mark.medium
def test_bomb_is_read_in_bounded_memory() -> None:
    bomb = gzip.compress(frame_header(2**31) + bytes(100 << 20), 9)
    tracemalloc.start()
    try:
        seen = see(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen.codes == ["CRC003"]
    assert peak < 16 << 20


@pytest.mark.medium
def test_flipped_bytes_of_tiny_records_never_raise() -> None:
    made = make([b"%04d" % number for number in range(300)])
    data, _ = compress(made, 1000)
    source = random.Random(41)
    for _ in range(500):
        damaged = bytearray(data)
        for _ in range(source.randrange(1, 4)):
            damaged[source.randrange(len(data))] ^= source.randrange(1, 256)
        seen = see(damaged, batch_bytes=source.choice((50, 1 << 20)))
        numbers = [number for number, _, _ in seen.records]
        assert numbers == sorted(set(numbers))
        payloads = [payload for _, _, payload in seen.records]
        assert payloads == sorted(set(payloads))
        assert {*payloads} <= {*made.payloads}
        assert all(each == "CRC007" for each in seen.codes)

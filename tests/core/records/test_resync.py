"""Damage that one byte does not explain: how reading finds its way again."""

from __future__ import annotations

import random
from typing import Any

import google_crc32c
import numpy as np
import pytest
from memory_support import see
from salvage_support import make

from tfrecreg.core.records.framing import frame_header, masked_crc, unmask


@pytest.fixture(scope="module")
def nested() -> Any:
    """Records 10 and 11 hold TFRecords: at the very end of their payload, and inside it."""
    source = random.Random(6)
    inner = make([source.randbytes(50) for _ in range(20)]).stream
    payloads = [source.randbytes(30) for _ in range(20)]
    payloads[10] = inner
    payloads[11] = b"begin" + inner + b"end"
    return make(payloads)


@pytest.mark.parametrize("number", [0, 9, 10, 11, 12, 19])
def test_records_inside_a_record_are_not_taken_for_its_neighbours(number: int, nested: Any) -> None:
    start = nested.offsets[number]
    for size in (1, 12):
        data = bytearray(nested.stream)
        data[start : start + size] = bytes(byte ^ 0xA5 for byte in data[start : start + size])
        seen = see(data)
        assert [(fault.code, fault.record) for fault in seen.faults] == [("CRC001", number)]
        assert seen.records == nested.without(number)


def test_record_of_records_with_damaged_data_is_one_fault(nested: Any) -> None:
    for number in (10, 11):
        data = bytearray(nested.stream)
        data[nested.offsets[number] + 500] ^= 1
        data[nested.offsets[number + 1] : nested.offsets[number + 1] + 12] = bytes(12)
        seen = see(data)
        assert [(fault.code, fault.record) for fault in seen.faults] == [
            ("CRC002", number),
            ("CRC001", number + 1),
        ]
        assert [fault.offset for fault in seen.faults] == nested.offsets[number : number + 2]
        assert seen.records == nested.records[:number] + nested.records[number + 2 :]


def test_cut_in_a_record_of_records_is_one_fault(nested: Any) -> None:
    for cut in range(nested.offsets[10] + 12, nested.offsets[11], 11):
        seen = see(nested.stream[:cut])
        assert [(fault.code, fault.record) for fault in seen.faults] == [("CRC003", 10)]
        assert seen.records == nested.records[:10]


def test_index_sees_through_what_nothing_else_does(nested: Any) -> None:
    data = bytearray(nested.stream)
    data[nested.offsets[10] : nested.offsets[10] + 40] = bytes(40)
    seen = see(data, known_offsets=nested.offsets)
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.length) == ("CRC001", 10, 1320)
    assert seen.records == nested.without(10)


def test_lost_bytes_cost_the_record_they_were_in(small_shard: Any) -> None:
    number = next(n for n in range(50, 200) if len(small_shard.payloads[n]) == 200)
    start = small_shard.offsets[number]
    for count in (1, 5, 100):
        data = small_shard.stream[: start + 50] + small_shard.stream[start + 50 + count :]
        seen = see(data)
        (fault,) = seen.faults
        assert (fault.code, fault.record, fault.offset) == ("CRC002", number, start)
        assert [(n, p) for n, _, p in seen.records] == [
            (n, p) for n, _, p in small_shard.without(number)
        ]


def test_lost_bytes_of_a_large_record_cost_only_it() -> None:
    large = random.Random(7).randbytes(3_000_000)
    made = make([b"first", large, b"second", large[:2_500_000], b"third"])
    start = made.offsets[1] + 2_000_000
    seen = see(made.stream[:start] + made.stream[start + 1000 :])
    assert [(fault.code, fault.record) for fault in seen.faults] == [("CRC002", 1)]
    moved = [(n, o - 1000 * (n > 1), p) for n, o, p in made.without(1)]
    assert seen.records == moved


def test_records_inside_a_destroyed_record_before_another_are_not_taken(nested: Any) -> None:
    data = bytearray(nested.stream)
    data[nested.offsets[11] + 12 + 200] ^= 1
    data[nested.offsets[12] : nested.offsets[12] + 20] = bytes(20)
    seen = see(data)
    assert [(fault.code, fault.record) for fault in seen.faults] == [("CRC002", 11)]
    behind = [(n - 1, o, p) for n, o, p in nested.records[13:]]  # both count as one
    assert seen.records == nested.records[:11] + behind


def test_extra_bytes_cost_the_record_they_are_in(small_shard: Any) -> None:
    number = next(n for n in range(50, 200) if len(small_shard.payloads[n]) == 200)
    start = small_shard.offsets[number]
    for count in (1, 5, 100):
        extra = random.Random(count).randbytes(count)
        data = small_shard.stream[: start + 50] + extra + small_shard.stream[start + 50 :]
        seen = see(data)
        (fault,) = seen.faults
        assert (fault.code, fault.record, fault.offset) == ("CRC002", number, start)
        assert [(n, p) for n, _, p in seen.records] == [
            (n, p) for n, _, p in small_shard.without(number)
        ]


@pytest.fixture(scope="module")
def zeroed(small_shard: Any) -> bytes:
    """From the header of record 20 into that of record 27, nothing but zeros."""
    start, stop = small_shard.offsets[20] + 3, small_shard.offsets[27] + 5
    data = bytearray(small_shard.stream)
    data[start:stop] = bytes(stop - start)
    return bytes(data)


def test_lost_stretch_counts_as_one_record_and_says_so(zeroed: bytes, small_shard: Any) -> None:
    seen = see(zeroed)
    (fault,) = seen.faults
    lost = small_shard.offsets[28] - small_shard.offsets[20]
    assert (fault.code, fault.record, fault.length) == ("CRC001", 20, lost)
    assert f"the {lost} bytes up to the next sound record, at byte " in fault.detail
    assert fault.detail.endswith("are lost and count as one record")
    assert [o for _, o, _ in seen.records] == small_shard.offsets[:20] + small_shard.offsets[28:]
    assert [n for n, _, _ in seen.records] == [*range(20), *range(21, 193)]


@pytest.mark.parametrize("kind", [list, np.array])
def test_index_tells_each_lost_record(kind: Any, zeroed: bytes, small_shard: Any) -> None:
    seen = see(zeroed, known_offsets=kind(small_shard.offsets))
    assert [(fault.code, fault.record) for fault in seen.faults] == [
        ("CRC001", number) for number in range(20, 28)
    ]
    assert [fault.offset for fault in seen.faults] == small_shard.offsets[20:28]
    assert seen.records == small_shard.records[:20] + small_shard.records[28:]


def test_index_of_another_file_changes_nothing(zeroed: bytes, small_shard: Any) -> None:
    for wrong in ([0, 7, 9], [o + 1 for o in small_shard.offsets], small_shard.offsets[:21]):
        seen = see(zeroed, known_offsets=wrong)
        assert [(fault.code, fault.record) for fault in seen.faults] == [("CRC001", 20)]
        assert [o for _, o, _ in seen.records] == (
            small_shard.offsets[:20] + small_shard.offsets[28:]
        )
    # It knows one record only, the first: numbers go on all the same.
    seen = see(zeroed, known_offsets=[small_shard.offsets[28]])
    assert [n for n, _, _ in seen.records] == [*range(20), *range(21, 193)]
    stale = [offset if offset < 2000 else offset + 8 for offset in small_shard.offsets]
    assert [(fault.code, fault.record) for fault in see(zeroed, known_offsets=stale).faults][
        :1
    ] == [("CRC001", 20)]


def test_last_record_that_is_destroyed_begins_no_record_unless_the_index_knows(
    small_shard: Any,
) -> None:
    start = small_shard.offsets[199]
    data = small_shard.stream[:start] + random.Random(4).randbytes(len(small_shard.stream) - start)
    assert [(f.code, f.record) for f in see(data).faults] == [("CRC004", 199)]
    known = see(data, known_offsets=small_shard.offsets)
    assert [(f.code, f.record) for f in known.faults] == [("CRC001", 199)]


def test_damage_all_over_is_survived(small_shard: Any) -> None:
    source = random.Random(9)
    for _ in range(20):
        data = bytearray(small_shard.stream)
        hit = set()
        for _ in range(30):
            at = source.randrange(len(data))
            data[at] ^= source.randrange(1, 256)
            hit.add(small_shard.record_at(at))
        seen = see(data)
        left = [each for each in small_shard.records if each[0] not in hit]
        assert [each[1:] for each in seen.records] == [each[1:] for each in left]


def test_header_by_accident_is_not_believed() -> None:
    made = make([b"a" * 40, frame_header(3) + b"x" * 60, b"c" * 40])
    data = bytearray(made.stream)
    start = made.offsets[1]
    data[start : start + 12] = bytes(12)
    data[-1] ^= 1
    seen = see(data)
    assert [(fault.code, fault.record) for fault in seen.faults] == [
        ("CRC001", 1),
        ("CRC002", 2),
    ]
    assert seen.records == made.records[:1]


def test_file_made_to_tire_a_reader_does_not() -> None:
    header = frame_header(300_000)
    data = b"\xff" * 16 + header * 60_000
    seen = see(data)
    assert seen.records == []
    assert seen.codes == ["CRC008"]


@pytest.mark.slow
def test_file_damaged_all_over_is_read_a_bounded_number_of_times() -> None:
    made = make([b"%08d" % number for number in range(8_000)])
    data = bytearray(made.stream)
    for start in made.offsets[::4]:
        data[start : start + 20] = b"\xee" * 20
    seen = see(data)
    assert [fault.offset for fault in seen.faults] == made.offsets[::4]
    assert seen.records == [each for each in made.records if each[0] % 4]


def forced(data: bytes, free: int, checked: slice, wanted: int) -> bytes:
    """`data` with four bytes from `free` on such that the CRC32C of a part of it is `wanted`.

    The checksum is linear in the bits: 32 equations for 32 unknowns.
    """

    def crc(bits: int) -> int:
        changed = bytearray(data)
        changed[free : free + 4] = (bits).to_bytes(4, "little")
        return int(google_crc32c.value(bytes(changed[checked])))

    zero = crc(0)
    basis: dict[int, tuple[int, int]] = {}
    for bit in range(32):
        effect, bits = crc(1 << bit) ^ zero, 1 << bit
        while effect and (top := effect.bit_length()) in basis:
            effect, bits = effect ^ basis[top][0], bits ^ basis[top][1]
        assert effect
        basis[effect.bit_length()] = effect, bits
    rest, solution = wanted ^ zero, 0
    while rest:
        effect, bits = basis[rest.bit_length()]
        rest, solution = rest ^ effect, solution ^ bits
    changed = bytearray(data)
    changed[free : free + 4] = solution.to_bytes(4, "little")
    return bytes(changed)


@pytest.mark.parametrize("last", [15, 20])
def test_sound_records_are_no_part_of_the_one_before_even_if_a_checksum_says_so(last: int) -> None:
    source = random.Random(13)
    made = make([source.randbytes(50) for _ in range(20)])
    start = made.offsets[10]
    end = [*made.offsets, len(made.stream)][last]
    data = made.stream[:start] + source.randbytes(20) + made.stream[start + 20 :]
    stored = int.from_bytes(data[end - 4 : end], "little")
    data = forced(data, start + 20, slice(start + 12, end - 4), unmask(stored))
    assert masked_crc(data[start + 12 : end - 4]) == stored
    seen = see(data)
    assert [(fault.code, fault.record) for fault in seen.faults] == [("CRC001", 10)]
    assert [payload for _, _, payload in seen.records] == made.payloads[:10] + made.payloads[11:]

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_support import MemoryFolder, MemoryReader, see
from salvage_support import compress, make

from tfrecreg.core.records.framing import frame_header
from tfrecreg.core.records.reader import scan


def flips(shard: Any, count: int, seed: int) -> Any:
    """Places of the stream, other values there, and what a reader has to say of each."""
    source = random.Random(seed)
    for _ in range(count):
        at = source.randrange(len(shard.stream))
        data = bytearray(shard.stream)
        data[at] ^= source.randrange(1, 256)
        number = shard.record_at(at)
        code = "CRC001" if at - shard.offsets[number] < 12 else "CRC002"
        yield bytes(data), number, code


def expect_one(seen: Any, shard: Any, number: int, code: str) -> None:
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.offset) == (code, number, shard.offsets[number])
    assert fault.length == len(shard.payloads[number])
    assert seen.records == shard.without(number)


def test_sound_shard_is_delivered_whole(small_shard: Any) -> None:
    seen = see(small_shard.stream, digest=True)
    digest = blake3(small_shard.stream).hexdigest()
    assert seen.faults == []
    assert seen.records == small_shard.records
    assert seen.end.compression == "none"
    assert seen.end.file_bytes == seen.end.stream_bytes == len(small_shard.stream)
    assert seen.end.payload_bytes == sum(map(len, small_shard.payloads))
    assert seen.end.blake3 == seen.end.stream_blake3 == digest


@pytest.mark.parametrize("declared", [None, "none", "gzip"])
def test_empty_file_is_a_shard_of_no_records(declared: Any) -> None:
    seen = see(b"", declared=declared, digest=True)
    assert seen.faults == []
    assert seen.end.records == seen.end.stream_bytes == 0
    assert seen.end.blake3 == blake3(b"").hexdigest()


@pytest.mark.medium
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_bytes": 1},
        {"batch_bytes": 12},
        {"batch_bytes": 333},
        {"batch_bytes": 50, "digest": True},
    ],
    ids=str,
)
def test_flips_are_found_whatever_the_size_of_a_batch(options: Any, small_shard: Any) -> None:
    for data, number, code in flips(small_shard, 150, 2):
        seen = see(data, **options)
        expect_one(seen, small_shard, number, code)
        assert seen.end.blake3 in (None, blake3(data).hexdigest())


@pytest.mark.medium
def test_flips_in_records_too_large_to_hold_are_found(small_shard: Any) -> None:
    for data, number, code in flips(small_shard, 200, 3):
        seen = see(data, batch_bytes=16, hold_limit=10)
        (fault,) = seen.faults
        assert (fault.code, fault.record, fault.offset) == (
            code,
            number,
            small_shard.offsets[number],
        )
        expected = [(n, o, p if len(p) <= 10 else None) for n, o, p in small_shard.without(number)]
        assert [(n, o, None if p is None or len(p) > 10 else p) for n, o, p in seen.records] == [
            (n, o, None if p is None or len(p) > 10 else p) for n, o, p in expected
        ]


def test_large_record_is_checked_but_not_held() -> None:
    made = make([b"first", bytes(3_000_000), b"last"])
    reader = MemoryReader(made.stream)
    seen = see(reader, hold_limit=1_000_000, batch_bytes=1000, digest=True)
    assert seen.records == [(0, 0, b"first"), (1, 21, None), (2, made.offsets[2], b"last")]
    assert seen.end.payload_bytes == 3_000_009
    assert seen.end.blake3 == blake3(made.stream).hexdigest()
    assert reader.most <= 1 << 20


def test_large_record_of_gzip_is_checked_but_not_held() -> None:
    made = make([b"first", bytes(3_000_000), b"last"])
    seen = see(compress(made)[0], hold_limit=1_000_000, batch_bytes=1000, digest=True)
    assert seen.records == [(0, 0, b"first"), (1, 21, None), (2, made.offsets[2], b"last")]
    assert seen.end.stream_blake3 == blake3(made.stream).hexdigest()


def test_large_record_that_is_cut_is_truncated() -> None:
    made = make([b"first", bytes(3_000_000)])
    seen = see(made.stream[:-1], hold_limit=1000)
    assert seen.codes == ["CRC003"]
    assert seen.records == made.records[:1]


def test_trailing_bytes_begin_no_record(small_shard: Any) -> None:
    for count in (1, 11, 12, 15, 16, 17, 20, 4096):
        for rest in (bytes(count), random.Random(count).randbytes(count)):
            seen = see(small_shard.stream + rest)
            (fault,) = seen.faults
            assert (fault.code, fault.record, fault.length) == ("CRC004", 200, count)
            assert fault.detail.endswith("begin with zeros") == (count > 11 and not any(rest))
            assert fault.offset == len(small_shard.stream)
            assert seen.records == small_shard.records


@pytest.mark.parametrize("length", [2**31 + 1, 2**40, 2**64 - 1])
def test_impossible_length_is_refused_without_reading_it(length: int) -> None:
    reader = MemoryReader(frame_header(length) + bytes(66))
    seen = see(reader)
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.offset, fault.length) == ("CRC005", 0, 0, length)
    assert f"length should be at most 2147483648, found {length}" in fault.detail
    assert reader.most <= 1 << 20


def test_records_behind_an_impossible_length_are_found() -> None:
    made = make([b"one", b"two", b"three"])
    data = bytearray(made.stream)
    data[19:31] = frame_header(2**40)
    seen = see(data)
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.offset) == ("CRC005", 1, 19)
    assert seen.records == made.without(1)


def test_length_the_file_cannot_hold_is_truncated_without_allocating() -> None:
    reader = MemoryReader(frame_header(2**31) + bytes(66))
    seen = see(reader)
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.length) == ("CRC003", 0, 2**31)
    assert fault.detail == (
        "the record should end at byte 2147483664, but the stream ends at byte 78"
    )
    assert reader.most <= 1 << 20


STRANGERS = {
    "text": b"This is not a TFRecord, it only has the name of one.\n" * 3,
    "short text": b"hello\n",
    "git-lfs": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
    "zeros": bytes(5_000),
    "zip": b"PK\x03\x04" + bytes(60),
    "array_record": bytes.fromhex("83af70d10d884a3f") + bytes(8) + b"\x40" + bytes(47),
    "noise": random.Random(8).randbytes(3_000_000),
    "numbers": np.arange(100_000, dtype="<i8").tobytes(),
}


@pytest.mark.parametrize("declared", [None, "none", "gzip"])
@pytest.mark.parametrize("name", STRANGERS)
def test_file_that_is_no_tfrecord_is_told_alone(name: str, declared: Any) -> None:
    data = STRANGERS[name]
    seen = see(data, declared=declared, digest=True)
    (fault,) = seen.faults
    assert (fault.code, fault.record, fault.offset) == ("CRC008", None, 0)
    assert fault.length == len(data)
    assert seen.records == []
    assert seen.end.blake3 == blake3(data).hexdigest()


def test_few_bytes_that_could_begin_a_header_are_a_cut_one() -> None:
    assert see(bytes(5)).codes == ["CRC004"]
    assert see(b"\x07").codes == ["CRC004"]
    assert see(b"\x07\0\0\0\0\0\0\0abc").codes == ["CRC004"]
    assert see(b"\x07\0\0\0\0\1\0\0abc").codes == ["CRC008"]


def test_only_record_with_a_damaged_header_is_a_record_still() -> None:
    made = make([b"the only one"])
    for at in range(12):
        data = bytearray(made.stream)
        data[at] ^= 0x55
        assert see(data).codes == ["CRC001"]
    assert see(random.Random(1).randbytes(12) + made.stream[12:]).codes == ["CRC001"]


def test_plain_file_declared_gzip_is_told_first_and_read_on(small_shard: Any) -> None:
    data = bytearray(small_shard.stream)
    data[small_shard.offsets[7] + 3] ^= 1
    seen = see(data, declared="gzip")
    assert seen.codes == ["CRC006", "CRC001"]
    assert seen.faults[0].detail == "compression should be `gzip`, found `none`"
    assert (seen.faults[0].record, seen.faults[0].offset) == (None, 0)
    assert seen.records == small_shard.without(7)


def test_two_damaged_parts_of_one_record_are_one_fault(small_shard: Any) -> None:
    number = small_shard.payloads.index(next(p for p in small_shard.payloads if len(p) == 60))
    data = bytearray(small_shard.stream)
    data[small_shard.offsets[number] + 1] ^= 8
    data[small_shard.offsets[number] + 30] ^= 8
    seen = see(data)
    expect_one(seen, small_shard, number, "CRC001")
    assert "the data are damaged too" in seen.faults[0].detail


def test_damage_in_neighbours_is_told_of_each(small_shard: Any, monkeypatch: Any) -> None:
    again: list[tuple[int, int]] = []
    monkeypatch.setattr(MemoryReader, "confirm", lambda _, *span: again.append(span), raising=False)
    data = bytearray(small_shard.stream)
    for number in (40, 41, 42):
        data[small_shard.offsets[number] + 9] ^= 0x10
    data[small_shard.offsets[0]] ^= 2
    data[-1] ^= 1
    seen = see(data)
    assert [(fault.code, fault.record) for fault in seen.faults] == [
        ("CRC001", 0),
        ("CRC001", 40),
        ("CRC001", 41),
        ("CRC001", 42),
        ("CRC002", 199),
    ]
    assert len(seen.records) == 195
    ends = [*small_shard.offsets, len(small_shard.stream)]
    assert again == [(ends[number], ends[number + 1]) for number in (0, 40, 41, 42, 199)]


def test_file_that_shrinks_while_it_is_read_is_truncated(small_shard: Any) -> None:
    reader = MemoryReader(small_shard.stream)
    events = scan(MemoryFolder({"x": reader}), "x", batch_bytes=1000, digest=True)  # type: ignore[arg-type]
    first = next(events)
    cut = small_shard.offsets[100] + 3
    reader.data = small_shard.stream[:cut]
    rest = list(events)
    assert len(first) + sum(len(each) for each in rest[:-2]) == 100  # type: ignore[arg-type]
    assert (rest[-2].code, rest[-2].record) == ("CRC004", 100)  # type: ignore[union-attr]
    assert rest[-1].file_bytes == cut  # type: ignore[union-attr]


def test_faults_come_between_batches_in_stream_order(small_shard: Any) -> None:
    data = bytearray(small_shard.stream)
    data[small_shard.offsets[50] + 3] ^= 1
    events = scan(MemoryFolder({"x": bytes(data)}), "x")  # type: ignore[arg-type]
    names = (type(event).__name__ for event in events)
    assert [name for name, _ in itertools.groupby(names)] == [
        "RecordBatch",
        "Fault",
        "RecordBatch",
        "StreamEnd",
    ]


@pytest.mark.parametrize("left", range(1, 12))
@pytest.mark.parametrize("batch_bytes", [16, 48, 64, 1 << 20])
def test_trailing_bytes_are_found_where_a_window_ends_between_two_records(
    left: int, batch_bytes: int
) -> None:
    stream = make([b""] * 4).stream
    seen = see(stream[: 48 + left], batch_bytes=batch_bytes)
    assert [(fault.code, fault.offset, fault.length) for fault in seen.faults] == [
        ("CRC004", 48, left)
    ]
    assert seen.end.records == 3


@pytest.mark.medium
@settings(max_examples=150)
@given(data=st.data())
def test_no_bytes_make_it_raise_or_lose_count(data: Any) -> None:
    payloads = data.draw(st.lists(st.binary(max_size=40), max_size=8))
    stream = bytearray(make(payloads).stream)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(stream)))
        kind = data.draw(st.sampled_from(["insert", "delete", "overwrite", "header"]))
        piece = data.draw(st.binary(max_size=30))
        if kind == "insert":
            stream[at:at] = piece
        elif kind == "delete":
            del stream[at : at + len(piece)]
        elif kind == "header":
            stream[at:at] = frame_header(data.draw(st.sampled_from([0, 5, 2**31, 2**40])))
        else:
            stream[at : at + len(piece)] = piece
    options = {"batch_bytes": data.draw(st.sampled_from([1, 20, 1 << 20])), "digest": True}
    seen = see(stream, **options)
    numbers = [number for number, _, _ in seen.records]
    offsets = [offset for _, offset, _ in seen.records]
    assert numbers == sorted(set(numbers))
    assert offsets == sorted(set(offsets))
    assert seen.end.blake3 == blake3(bytes(stream)).hexdigest()
    places = [fault.offset for fault in seen.faults]
    assert places == sorted(places)
    covered = sum(len(payload or b"") + 16 for _, _, payload in seen.records)
    assert seen.faults or covered == len(stream)

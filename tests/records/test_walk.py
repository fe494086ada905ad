"""Both walkers over the same memory: equal in every field, whatever the bytes are."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.records import MAX_LENGTH, frame, frame_header
from tfrecreg.records.native import ENGINES, NativeWalker, load
from tfrecreg.records.walk import PythonWalker, Stop, Walk, Walker

Compiled = list[tuple[str, NativeWalker]]


@pytest.fixture(scope="module")
def engines(compiled: Path) -> Compiled:
    """The compiled walker with every way that this processor has of computing checksums."""
    names = ["tables"] if load().engine == "tables" else ["tables", load().engine]
    return [(name, NativeWalker(ENGINES.index(name))) for name in names]


@pytest.fixture(scope="module")
def walkers(engines: Compiled) -> list[tuple[str, Walker]]:
    return [("python", PythonWalker()), *engines]


def stream_of(payloads: Sequence[bytes]) -> bytes:
    parts: list[bytes] = []
    for payload in payloads:
        header, footer = frame(payload)
        parts += header, payload, footer
    return b"".join(parts)


def agreed(walkers: list[tuple[str, Walker]], memory: bytes, base: int = 0) -> Walk:
    """What all walkers say."""
    walks = {name: walker(memory, base) for name, walker in walkers}
    expected = walks.pop("python")
    for name, walk in walks.items():
        assert walk == expected, name
    return expected


def test_sound_records_are_walked_over(walkers: Any) -> None:
    payloads = [b"", b"a", bytes(20), b"four"]
    walk = agreed(walkers, stream_of(payloads), base=1000)
    assert list(walk.lengths) == [0, 1, 20, 4]
    assert list(walk.starts) == [12, 28, 45, 81]
    assert list(walk.offsets) == [1000, 1016, 1033, 1069]
    assert (walk.payload_bytes, walk.end) == (25, 89)
    assert (walk.stop, walk.length, walk.needs) == (Stop.SHORT, None, 12)


def test_columns_are_numpy_arrays_without_a_copy(walkers: Any) -> None:
    for _, walker in walkers:
        walk = walker(stream_of([b"abc"] * 5), 0)
        column = np.asarray(walk.lengths)
        assert column.dtype == np.int64
        column[0] = 77
        assert walk.lengths[0] == 77


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 95, 96, 97, 119, 120, 887, 6143, 6144, 6160])
def test_checksums_are_those_of_crc32c(length: int, engines: Compiled) -> None:
    payload = random.Random(length).randbytes(length)
    stream = stream_of([payload])
    for name, walker in engines:
        assert list(walker(stream, 0).lengths) == [length], name


def test_every_length_has_its_checksum(walkers: Any) -> None:
    source = random.Random(3)
    lengths = [*range(700), *range(6100, 6300, 3), 100_000, 1_000_003]
    walk = agreed(walkers, stream_of([source.randbytes(length) for length in lengths]))
    assert list(walk.lengths) == lengths


def test_data_checksum_that_does_not_hold_is_told_with_both_values(walkers: Any) -> None:
    payload = b"the payload"
    stream = bytearray(stream_of([b"first", payload, b"last"]))
    stream[21 + 12] ^= 1
    walk = agreed(walkers, bytes(stream))
    assert (walk.stop, walk.end, walk.length) == (Stop.DATA, 21, len(payload))
    assert walk.stored == struct.unpack("<I", frame(payload)[1])[0]
    crc = google_crc32c.value(bytes(stream[33:44]))
    assert walk.crc == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def test_length_checksum_that_does_not_hold_stops_there(walkers: Any) -> None:
    stream = bytearray(stream_of([b"first", b"second"]))
    stream[21 + 9] ^= 1
    walk = agreed(walkers, bytes(stream))
    assert (walk.stop, walk.end, walk.length) == (Stop.LENGTH, 21, None)


@pytest.mark.parametrize("length", [MAX_LENGTH + 1, 2**32, 2**40, 2**63, 2**64 - 17, 2**64 - 1])
def test_length_above_the_limit_is_told_as_it_stands(length: int, walkers: Any) -> None:
    walk = agreed(walkers, stream_of([b"first"]) + frame_header(length) + bytes(100))
    assert (walk.stop, walk.end, walk.length) == (Stop.HUGE, 21, length)


def test_largest_length_is_waited_for(walkers: Any) -> None:
    walk = agreed(walkers, frame_header(MAX_LENGTH) + bytes(100))
    assert (walk.stop, walk.length, walk.needs) == (Stop.SHORT, MAX_LENGTH, MAX_LENGTH + 16)


def test_window_may_end_anywhere(walkers: Any) -> None:
    stream = stream_of([bytes(30), b"", b"abcdefgh", bytes(100)])
    for cut in range(len(stream) + 1):
        walk = agreed(walkers, stream[:cut])
        assert walk.stop is Stop.SHORT
        assert walk.end <= cut < walk.end + walk.needs


def test_more_records_than_one_call_has_room_for_are_all_there(walkers: Any) -> None:
    count = (1 << 16) * 2 + 3
    stream = stream_of([b""]) * count
    walk = agreed(walkers, stream + b"rest", base=5)
    assert len(walk.starts) == count
    assert walk.offsets[-1] == 5 + 16 * (count - 1)
    assert (walk.end, walk.stop) == (16 * count, Stop.SHORT)


def test_exactly_as_many_records_as_there_is_room_for(walkers: Any) -> None:
    walk = agreed(walkers, stream_of([b""]) * (1 << 16))
    assert len(walk.starts) == 1 << 16
    assert walk.stop is Stop.SHORT


def test_walkers_keep_nothing_from_one_walk_to_the_next(walkers: Any) -> None:
    for _, walker in walkers:
        first = walker(stream_of([b"abc"] * 3), 0)
        before = list(first.starts)
        walker(stream_of([bytes(200)] * 9), 0)
        assert list(first.starts) == before


@st.composite
def memories(draw: Any) -> bytes:
    """Streams of records, mutated, cut anywhere; or bytes of any kind."""
    if draw(st.integers(0, 9)) == 0:
        return bytes(draw(st.binary(max_size=200)))
    lengths = st.sampled_from([0, 1, 7, 8, 30, 96, 100, 300, 900])
    source = random.Random(draw(st.integers(0, 1 << 16)))
    payloads = [source.randbytes(each) for each in draw(st.lists(lengths, max_size=8))]
    stream = bytearray(stream_of(payloads))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(stream)))
        kind = draw(st.sampled_from(["flip", "insert", "delete", "header", "zeros"]))
        if kind == "flip" and at < len(stream):
            stream[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "insert":
            stream[at:at] = draw(st.binary(max_size=20))
        elif kind == "delete":
            del stream[at : at + draw(st.integers(0, 40))]
        elif kind == "header":
            stream[at:at] = frame_header(draw(st.sampled_from([0, 3, 2**31, 2**40, 2**64 - 1])))
        else:
            stream[at : at + 16] = bytes(16)
    start, end = draw(st.integers(0, 40)), draw(st.integers(0, len(stream)))
    return bytes(stream[start if draw(st.booleans()) else 0 : end])


@settings(max_examples=1500)
@given(memory=memories(), base=st.integers(0, 2**62))
def test_walkers_agree_on_any_bytes(memory: bytes, base: int, walkers: Any) -> None:
    walk = agreed(walkers, memory, base)
    # What is told is there, and nothing of it lies outside the memory.
    end = 0
    for start, length in zip(walk.starts, walk.lengths, strict=True):
        assert start == end + 12
        end = start + length + 4
    assert walk.end == end <= len(memory)


GUARDED = """
import ctypes, mmap, random, sys
from pathlib import Path
from tfrecreg.records import frame, frame_header, native
native.LIBRARY = Path(sys.argv[1])
walk, page = native.load().walk, mmap.PAGESIZE
libc = ctypes.CDLL(None)
source = random.Random(7)
room, report = (ctypes.c_int64 * 64)(), (ctypes.c_uint64 * 6)()
pages = mmap.mmap(-1, 4 * page)
base = ctypes.addressof(ctypes.c_char.from_buffer(pages))
assert libc.mprotect(ctypes.c_void_p(base + 3 * page), page, 0) == 0
count = 0
for length in [*range(140), 887, 2000, 6150]:
    payload = source.randbytes(length)
    whole = b"".join((frame(payload)[0], payload, frame(payload)[1]))
    for memory in (whole, whole + whole[:5], whole + frame_header(2**31), whole + frame_header(9)):
        for cut in {0, 1, 11, 12, 13, length + 15, len(whole), len(memory)}:
            part = memory[:cut]
            place = base + 3 * page - len(part)
            ctypes.memmove(place, part, len(part))
            for engine in (-1, 0):
                walk(engine, ctypes.cast(place, ctypes.c_char_p), len(part), 0, 0, 64,
                     *[ctypes.addressof(room)] * 3, ctypes.addressof(report))
                count += report[0]
print(count)
if len(sys.argv) > 2:
    ctypes.string_at(base + 3 * page, 1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="forbids a page with Linux's mprotect")
def test_no_byte_behind_the_window_is_read(compiled: Path) -> None:
    """The memory ends where a page begins that may not be read: reading it would be a crash."""

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", GUARDED, str(compiled), *more]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = run()
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 1000
    assert run("read it").returncode < 0, "the page can be read, so the test proves nothing"


@pytest.mark.parametrize("engine", range(-1, len(ENGINES)))
def test_engine_that_the_processor_lacks_is_replaced(engine: int, compiled: Path) -> None:
    walk = NativeWalker(engine)(stream_of([b"abc"]), 0)
    assert list(walk.lengths) == [3]

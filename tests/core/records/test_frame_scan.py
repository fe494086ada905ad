"""The Python and the compiled scanner over the same memory: equal results for any bytes."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecreg.core.records.frame_scan import (
    KEPT_BYTES,
    FrameScan,
    FrameScanner,
    PythonFinder,
    PythonFrameScanner,
    Stop,
    header_candidates,
    repaired_length,
    stored_length,
)
from tfrecreg.core.records.framing import MAX_LENGTH, frame, frame_header, header_length, masked_crc
from tfrecreg.core.records.scanner import (
    ENGINES,
    Finder,
    NativeFinder,
    NativeFrameScanner,
    load_scanner,
)

Compiled = list[tuple[str, NativeFrameScanner]]


@pytest.fixture(scope="module")
def engines(compiled: Path) -> Compiled:
    """The compiled walker with every way that this processor has of computing checksums."""
    names = ["tables"] if load_scanner().engine == "tables" else ["tables", load_scanner().engine]
    return [(name, NativeFrameScanner(ENGINES.index(name))) for name in names]


@pytest.fixture(scope="module")
def walkers(engines: Compiled) -> list[tuple[str, FrameScanner]]:
    return [("python", PythonFrameScanner()), *engines]


def stream_of(payloads: Sequence[bytes]) -> bytes:
    parts: list[bytes] = []
    for payload in payloads:
        header, footer = frame(payload)
        parts += header, payload, footer
    return b"".join(parts)


def agreed(walkers: list[tuple[str, FrameScanner]], memory: bytes, base: int = 0) -> FrameScan:
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


def test_every_length_has_its_checksum(walkers: Any) -> None:
    source = random.Random(3)
    lengths = [*range(900), *range(6140, 6200), 100_000, 1_000_003]
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


@pytest.mark.slow
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
from tfrecreg.core.records.framing import frame, frame_header
from tfrecreg.core.records import scanner
scanner.LIBRARY = Path(sys.argv[1])
walk, page = scanner.load_scanner().walk, mmap.PAGESIZE
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


def slow_candidates(block: bytes) -> list[tuple[int, int]]:
    found = []
    for place in range(len(block) - 11):
        length = header_length(block[place : place + 12])
        if length is not None and length <= MAX_LENGTH:
            found.append((place, length))
    return found


@settings(max_examples=60)
@given(
    st.binary(max_size=300),
    st.lists(st.tuples(st.integers(0, 299), st.sampled_from([0, 1, 255, 65536, 2**31, 2**31 + 1]))),
)
def test_finds_just_what_trying_every_place_finds(
    noise: bytes, planted: list[tuple[int, int]]
) -> None:
    block = bytearray(noise)
    for place, length in planted:
        block[place : place + 12] = frame_header(length)
    assert header_candidates(bytes(block)) == slow_candidates(bytes(block))


def test_finds_a_header_at_either_end_and_none_in_a_rest() -> None:
    header = frame_header(77)
    assert header_candidates(header) == [(0, 77)]
    assert header_candidates(b"x" + header) == [(1, 77)]
    assert header_candidates(header[:11]) == []
    assert header_candidates(b"") == []


def test_every_single_wrong_byte_of_a_length_is_put_right() -> None:
    length = 0x1234567
    for position in range(8):
        for change in range(1, 256):
            header = bytearray(frame_header(length))
            header[position] ^= change
            assert repaired_length(bytes(header)) == length


@pytest.mark.parametrize("position", range(8, 12))
def test_a_wrong_byte_of_the_checksum_is_not_taken_for_one_of_the_length(position: int) -> None:
    source = random.Random(position)
    for _ in range(500):
        length = source.randrange(MAX_LENGTH)
        header = bytearray(frame_header(length))
        header[position] ^= source.randrange(1, 256)
        assert stored_length(bytes(header)) == length
        assert repaired_length(bytes(header)) is None


Make = Callable[..., Finder]
NOWHERE = 1 << 62


@pytest.fixture(params=["python", "tables", "SSE 4.2"])
def make(request: pytest.FixtureRequest) -> Make:
    """Each finder in turn; what the processor lacks is replaced by what it has."""
    if request.param == "python":
        return PythonFinder
    request.getfixturevalue("compiled")
    engine = ENGINES.index(request.param)
    return lambda at, **limits: NativeFinder(at, **limits, engine=engine)


def record(payload: bytes) -> bytes:
    head, foot = frame(payload)
    return head + payload + foot


def search(
    finder: Finder, data: bytes, size: int, at: int = 0
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What is found in blocks of a size: sound records, and where the gap test passes."""
    gaps = []
    while True:
        block = data[at : at + size]
        last = at + len(block) == len(data)
        while finder.feed(block, at, last=last):
            gaps.append((finder.found, finder.payload))
        if last:
            return finder.spans(), gaps
        at += len(block) - KEPT_BYTES


def by_trying(data: bytes, stop: int) -> list[tuple[int, int]]:
    """The outermost sound records behind the first byte, each place tried for itself."""
    found = []
    for start in range(1, stop - 15):
        length = header_length(data[start : start + 12])
        if length is None or (end := start + 16 + length) > stop:
            continue
        if masked_crc(data[start + 12 : end - 4]) == int.from_bytes(data[end - 4 : end], "little"):
            found.append((start, end))
    outer: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: span[1]):
        while outer and outer[-1][0] >= start:
            outer.pop()
        if not outer or outer[-1][1] <= start:
            outer.append((start, end))
    return outer


def odd_stream(dice: random.Random) -> bytes:
    """Sound records, records inside records, headers of nothing, zeros and noise."""
    kinds: list[Callable[[], bytes]] = [
        lambda: dice.randbytes(dice.randrange(40)),
        lambda: record(dice.randbytes(dice.randrange(30))),
        lambda: record(record(b"abc") + record(b"") + dice.randbytes(dice.randrange(5))),
        lambda: frame_header(dice.randrange(200)),
        lambda: bytes(dice.randrange(40)),
    ]
    data = b"".join(dice.choice(kinds)() for _ in range(dice.randrange(8)))
    return data[dice.choice((0, 0, 5, 12)) :]


def test_it_finds_just_what_trying_every_place_finds(make: Make) -> None:
    for seed in range(200):
        dice = random.Random(seed)
        data = odd_stream(dice)
        stop = len(data) - dice.choice((0, 0, 0, 9))
        found = [
            search(make(0, before=NOWHERE, stop=stop, gap=True), data, size)
            for size in (32, 41, 64, 1000)
        ]
        assert found[0][0] == by_trying(data, stop), seed
        assert all(each == found[0] for each in found), seed


@pytest.mark.parametrize("header", [b"\xff" * 12, bytes(12), b"", b"\xff" * 5, b"\xff" * 20])
def test_a_payload_is_known_whatever_became_of_its_header(make: Make, header: bytes) -> None:
    payload, following = random.Random(1).randbytes(300), record(b"following")
    for inside in (b"", record(b"inside")):
        data = header + record(payload + inside)[12:] + following
        finder = make(0, before=NOWHERE, stop=len(data), gap=True)
        place = len(data) - len(following)
        assert (place, len(header)) in search(finder, data, 100)[1]


def test_a_payload_that_ends_with_the_stream_is_known(make: Make) -> None:
    data = bytes(12) + record(b"the last one")[12:]
    finder = make(0, before=NOWHERE, stop=len(data), gap=True)
    assert search(finder, data, 1000) == ([], [(len(data), 12)])


def test_no_record_starts_at_the_limit_nor_ends_behind_the_stop(make: Make) -> None:
    data = b"".join(record(b"number %d" % number) for number in range(9))
    size = len(data) // 9
    finder = make(0, before=3 * size, stop=len(data), gap=False)
    assert search(finder, data, 50)[0] == [(size, 2 * size), (2 * size, 3 * size)]
    finder = make(0, before=NOWHERE, stop=3 * size + 1, gap=False)
    assert search(finder, data, 50)[0] == [(size, 2 * size), (2 * size, 3 * size)]


def test_it_tells_the_first_and_whether_more_are_on_their_way(make: Make) -> None:
    inside, outside = record(b"inside"), frame_header(5000)
    data = b"x" + outside + inside + bytes(100)
    finder = make(0, before=NOWHERE, stop=1 << 40, gap=False)
    assert finder.first() is None
    assert not finder.waiting()
    finder.feed(data, 0, last=False)
    assert finder.first() == (13, 13 + len(inside))
    assert finder.waiting()
    rest = bytes(5000)
    finder.feed(data[-KEPT_BYTES:] + rest, len(data) - KEPT_BYTES, last=True)
    assert not finder.waiting()


def test_more_headers_than_it_remembers_cost_no_near_record(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    if make is PythonFinder:
        monkeypatch.setattr("tfrecreg.core.records.frame_scan._PENDING", 64)
        data = frame_header(1 << 20) * 100 + record(b"near")
    else:
        data = frame_header(1 << 30) * ((1 << 20) + 10) + record(b"near")
    finder = make(0, before=NOWHERE, stop=1 << 40, gap=False)
    assert search(finder, data, 1 << 16)[0] == [(len(data) - 20, len(data))]

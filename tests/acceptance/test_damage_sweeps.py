"""Sweeps over small files: any damage is found at its place, and costs no other record.

The quick tests take samples of what the slow ones do in full. All of it in memory, through the
scanner that `check` and `salvage` read with.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pytest
from check_support import framed
from memory_support import MemoryFolder, Seen, see
from salvage_support import Record

from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.framing import frame
from tfrecreg.core.records.gzip_writer import GzipEncoder
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.scanner import VARIABLE, load_scanner, scanner_kind
from tfrecreg.core.values.errors import FailureError


@pytest.fixture(params=["native", "python"], autouse=True)
def scanner(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sweep is made with both scanners."""
    if request.param == "native":
        try:
            load_scanner()
        except FailureError as error:
            pytest.skip(f"the compiled scanner is not here: {error.message}")
    monkeypatch.setenv(VARIABLE, request.param)
    assert scanner_kind() == request.param


@dataclass(frozen=True)
class Sound:
    """A sound stream, and the file that it is in."""

    payloads: Sequence[bytes]
    compression: str = "none"
    member_bytes: int = 400

    @cached_property
    def stream(self) -> bytes:
        return framed(*self.payloads)

    @cached_property
    def offsets(self) -> list[int]:
        """Where each record begins in the stream, and where the last one ends."""
        offsets = [0]
        for payload in self.payloads:
            offsets.append(offsets[-1] + len(payload) + 16)
        return offsets

    @cached_property
    def _encoded(self) -> tuple[bytes, list[tuple[int, int]]]:
        encoder = GzipEncoder(self.member_bytes)
        parts = [encoder.write(framed(payload)) for payload in self.payloads]
        return b"".join(parts) + encoder.close(), encoder.members

    @property
    def file(self) -> bytes:
        return self.stream if self.compression == "none" else self._encoded[0]

    @property
    def members(self) -> list[tuple[int, int]]:
        """Where gzip members begin: byte of the file, byte of the stream."""
        return self._encoded[1]

    @cached_property
    def records(self) -> list[Record]:
        return list(zip(range(len(self.payloads)), self.offsets, self.payloads, strict=False))

    def without(self, number: int) -> list[Record]:
        return self.records[:number] + self.records[number + 1 :]

    def record_at(self, byte: int) -> int:
        """The number of the record that this byte of the stream belongs to."""
        return max(number for number, start in enumerate(self.offsets[:-1]) if start <= byte)

    def touched(self, start: int, stop: int) -> set[int]:
        """The records that have bytes in this stretch of the stream."""
        spans = zip(self.offsets, self.offsets[1:], strict=False)
        return {n for n, (begin, end) in enumerate(spans) if begin < stop and end > start}


def sample() -> Sound:
    """1.5 KB: payloads of random bytes, of zeros, of TFRecords, and empty ones."""
    dice = random.Random(15)
    payloads = [dice.randbytes(size) for size in (0, 1, 40, 8, 200, 0, 90, 33)]
    payloads += [bytes(100), b"", framed(b"in", b"side", dice.randbytes(60)), bytes(17)]
    payloads += [dice.randbytes(size) for size in (150, 3, 64, 64, 340)]
    assert 1450 <= len(framed(*payloads)) <= 1550
    return Sound(payloads)


def delivered(seen: Seen) -> list[bytes]:
    return [payload or b"" for _, _, payload in seen.records]


def one_fault(sound: Sound, at: int, seen: Seen) -> str:
    """What is not as it should be after one byte of a plain file was changed; empty if nothing."""
    number = sound.record_at(at)
    code = "CRC001" if at - sound.offsets[number] < 12 else "CRC002"
    if [(f.code, f.record, f.offset, f.length) for f in seen.faults] != [
        (code, number, sound.offsets[number], len(sound.payloads[number]))
    ]:
        return f"byte {at}: {seen.faults}"
    return "" if seen.records == sound.without(number) else f"byte {at}: other records"


@pytest.mark.slow
def test_every_byte_changed_to_every_value_is_found_and_costs_no_other_record() -> None:
    sound = sample()
    problems = []
    for at, byte in enumerate(sound.stream):
        data = bytearray(sound.stream)
        for value in range(1, 256):
            data[at] = byte ^ value
            problem = one_fault(sound, at, see(data))
            if problem:
                problems.append(f"{problem} ^ {value}")
    assert problems == []


def test_a_cut_at_every_byte_of_a_plain_file_is_found_but_between_records() -> None:
    sound = sample()
    for cut in range(len(sound.stream)):
        seen = see(sound.stream[:cut])
        whole = sum(1 for end in sound.offsets[1:] if end <= cut)
        assert seen.records == sound.records[:whole]
        if cut in sound.offsets:
            assert seen.faults == []
        else:
            (fault,) = seen.faults
            left = cut - sound.offsets[whole]
            assert (fault.record, fault.offset) == (whole, sound.offsets[whole])
            assert fault.code == ("CRC003" if left >= 12 else "CRC004")


@pytest.mark.parametrize("writer", ["ours", "gzip"])
def test_a_cut_at_every_byte_of_a_gzip_file_is_found_but_between_members(writer: str) -> None:
    sound = Sound(sample().payloads, "gzip")
    data = sound.file if writer == "ours" else gzip.compress(sound.stream)
    clean = {file for file, _ in sound.members} if writer == "ours" else {0}
    for cut in range(len(data)):
        seen = see(data[:cut], declared="gzip")
        assert seen.records == sound.records[: len(seen.records)]
        assert seen.codes == ([] if cut in clean else ["CRC007"]), cut


class Blocks:
    """A plain file of records of all sizes, of which blocks are overwritten."""

    def __init__(self, size: int) -> None:
        dice = random.Random(size)
        sizes = [dice.choice((0, 10, 100, 700, 1500, 6000)) for _ in range(160)]
        payloads = [bytes(size) if dice.random() < 0.2 else dice.randbytes(size) for size in sizes]
        payloads[40] = framed(*payloads[:12])
        self.sound = Sound(payloads)
        self.size = size
        self.dice = dice
        self.marks = set(payloads)

    def overwrite(self, count: int, *, index: bool) -> None:
        """Overwrite a block, so many times, each time of the sound file."""
        sound = self.sound
        known = sound.offsets[:-1] if index else None
        for number in range(count):
            at = self.dice.randrange(len(sound.stream) - self.size)
            block = bytes(self.size) if number % 2 else self.dice.randbytes(self.size)
            data = sound.stream[:at] + block + sound.stream[at + self.size :]
            seen = see(data, known_offsets=known)
            first = next((n for n in range(at, at + self.size) if data[n] != sound.stream[n]), -1)
            if first < 0:
                assert seen.faults == []  # zeros upon zeros
                continue
            assert seen.faults, f"the block at byte {at} was not found"
            assert seen.faults[0].offset == sound.offsets[sound.record_at(first)]
            touched = sound.touched(at, at + self.size)
            found = {offset: payload for _, offset, payload in seen.records}
            lost = [
                n
                for n in range(len(sound.payloads))
                if n not in touched and found.get(sound.offsets[n]) != sound.payloads[n]
            ]
            assert lost == [], f"the block at byte {at} cost others than {sorted(touched)}"
            assert set(found.values()) <= self.marks, f"the block at byte {at}: an invented record"


@pytest.mark.parametrize("size", [512, 4096])
@pytest.mark.parametrize("index", [False, True])
def test_overwritten_blocks_cost_only_the_records_they_touch(size: int, index: bool) -> None:
    Blocks(size).overwrite(80, index=index)


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.parametrize("size", [512, 4096])
@pytest.mark.parametrize("index", [False, True])
def test_1000_overwritten_blocks_cost_only_the_records_they_touch(size: int, index: bool) -> None:
    Blocks(size).overwrite(1000, index=index)


def gzip_blocks(count: int, size: int) -> None:
    """Blocks of a gzip file in small members: found, and every sound member is delivered."""
    dice = random.Random(size)
    payloads = [dice.randbytes(dice.choice((0, 50, 400, 2000))) for _ in range(200)]
    sound = Sound(payloads, "gzip", 3000)
    marks = set(payloads)
    ends = [*(file for file, _ in sound.members[1:]), len(sound.file)]
    stops = [*(stream for _, stream in sound.members[1:]), len(sound.stream)]
    for number in range(count):
        at = dice.randrange(len(sound.file) - size)
        block = bytes(size) if number % 2 else dice.randbytes(size)
        data = sound.file[:at] + block + sound.file[at + size :]
        seen = see(data, declared="gzip")
        assert seen.faults, f"the block at byte {at} was not found"
        found = delivered(seen)
        assert set(found) <= marks, f"the block at byte {at}: an invented record"
        whole = [
            payload
            for (file, stream), end, stop in zip(sound.members, ends, stops, strict=True)
            if end <= at or file >= at + size
            for payload, begin in zip(payloads, sound.offsets, strict=False)
            if stream <= begin < stop
        ]
        rest = iter(found)
        assert all(payload in rest for payload in whole), f"the block at byte {at} cost others"


@pytest.mark.parametrize("size", [512, 4096])
def test_overwritten_blocks_of_gzip_cost_only_the_members_they_touch(size: int) -> None:
    gzip_blocks(40, size)


@pytest.mark.slow
@pytest.mark.parametrize("size", [512, 4096])
def test_1000_overwritten_blocks_of_gzip_cost_only_the_members_they_touch(size: int) -> None:
    gzip_blocks(1000, size)


def overwrite_headers(count: int) -> None:
    dice = random.Random(12)
    sizes = [dice.choice((0, 1, 30, 300, 3000)) for _ in range(120)]
    payloads = [dice.randbytes(size) for size in sizes]
    payloads[30:32] = [framed(*payloads[:5]), b"begin" + framed(*payloads[5:9]) + b"end"]
    sound = Sound(payloads)
    for _ in range(count):
        number = dice.randrange(len(payloads))
        start = sound.offsets[number]
        header = dice.choice((dice.randbytes(12), bytes(12), b"\xff" * 12, b"\x1f\x8b\x08" * 4))
        data = sound.stream[:start] + header + sound.stream[start + 12 :]
        seen = see(data)
        (fault,) = seen.faults
        assert (fault.code, fault.record, fault.offset) == ("CRC001", number, start)
        # The payload is there, and its length known: nothing is lost, salvage has all of it.
        assert fault.length == len(payloads[number])
        assert fault.detail.endswith("; the data are intact")
        assert data[start + 12 : start + 12 + fault.length] == payloads[number]
        assert seen.records == sound.without(number)


def test_overwritten_headers_lose_nothing() -> None:
    overwrite_headers(100)


@pytest.mark.slow
def test_1000_overwritten_headers_lose_nothing() -> None:
    overwrite_headers(1000)


@pytest.mark.medium
def test_a_million_clean_records_have_no_finding() -> None:
    """Records of many lengths up to 64 KiB, in a sound stream."""
    dice = random.Random(10)
    sizes = [dice.choice((0, 3, 8, 20, 50)) for _ in range(99_998)]
    pool = dice.randbytes(1 << 16)
    parts = []
    for size in [*sizes, 40_000, 65_000]:
        at = dice.randrange(len(pool) - size + 1)
        header, footer = frame(pool[at : at + size])
        parts += [header, pool[at : at + size], footer]
    total = 0
    storage = MemoryFolder({"x": b"".join(parts) * 10})
    for event in scan(storage, "x"):  # type: ignore[arg-type]
        assert not isinstance(event, Fault), event
        if isinstance(event, RecordBatch):
            total += len(event)
        if isinstance(event, StreamEnd):
            assert event.records == 1_000_000
    assert total == 1_000_000

"""No input makes reading or salvaging slower than in proportion to its size: steps are counted.

A step is a call of any function, or 1,000 bytes that are read, decompressed or searched. Each shape
is tried in two sizes, one sixteen times the other. What is done so often at most, whatever the
size, counts more in a large file than in a small one, where it was not yet done so often; in
proportion to the square it would be 16.
"""

from __future__ import annotations

import contextlib
import gzip
import random
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from memory_support import MemoryFolder
from system_support import unsynced as unsynced  # a fixture

from tfrecreg.builtin.salvage.run import salvage
from tfrecreg.core.records.batch import Fault, StreamEnd
from tfrecreg.core.records.frame_scan import PythonFinder
from tfrecreg.core.records.framing import frame, frame_header
from tfrecreg.core.records.gzip_reader import GzipStream
from tfrecreg.core.records.reader import scan
from tfrecreg.core.records.scanner import NativeFinder, scanner_kind
from tfrecreg.core.records.stream import HashedFile
from tfrecreg.core.values.errors import RefusedError

SMALL, LARGE = 20_000, 320_000
AT_MOST = 3
"""How many times the steps a byte of a sixteenth of the size."""


def record(payload: bytes, *, footer: bytes | None = None) -> bytes:
    head, foot = frame(payload)
    return head + payload + (foot if footer is None else footer)


def headers(size: int) -> bytes:
    return frame_header(1000) * (size // 12)


def headers_of_nothing(size: int) -> bytes:
    return frame_header(0) * (size // 12)


def headers_to_the_end(size: int) -> bytes:
    return b"".join(frame_header(size - 12 * each) for each in range(size // 12 - 10))


def headers_to_anywhere(size: int) -> bytes:
    dice = random.Random(3)
    return b"".join(frame_header(dice.randrange(size - 12 * at)) for at in range(size // 12))


def record_of_headers(size: int) -> bytes:
    return record(headers_to_anywhere(size))


def damaged_record_of_headers(size: int) -> bytes:
    return record(headers_to_anywhere(size), footer=bytes(4)) + record(b"behind")


def headers_between_records(size: int) -> bytes:
    return (frame_header(size // 2) + record(b"sound")) * (size // 33)


def empty_records_with_bad_checksums(size: int) -> bytes:
    return record(b"", footer=bytes(4)) * (size // 16)


def records_of_records(size: int) -> bytes:
    inner = record(b"")
    while 2 * len(inner) + 16 < size:
        inner = record(inner + inner)
    return b"damaged" + inner


def zeros(size: int) -> bytes:
    return bytes(size)


def zeros_in_gzip(size: int) -> bytes:
    return gzip.compress(bytes(100 * size), mtime=0)


def members_with_bad_trailers(size: int) -> bytes:
    member = bytearray(gzip.compress(record(b"abc" * 10), mtime=0))
    member[-6] ^= 1
    return bytes(member) * (size // len(member))


def members_that_do_not_decode(size: int) -> bytes:
    member = bytearray(gzip.compress(record(b"abc" * 10), mtime=0))
    member[12] ^= 0x55
    return bytes(member) * (size // len(member))


def headless_gzip(size: int) -> bytes:
    members = [gzip.compress(record(b"%d" % each), mtime=0) for each in range(size // 40)]
    return b"".join(members)[9:]


def heads_of_members(size: int) -> bytes:
    return gzip.compress(b"", mtime=0)[:10] * (size // 10)


def members_in_members(size: int) -> bytes:
    data = record(b"inside")
    while len(data) < size:
        packer = zlib.compressobj(0, zlib.DEFLATED, 31)
        data = packer.compress(data + data) + packer.flush()
    return data[5:]


def members_without_trailers(size: int) -> bytes:
    member = gzip.compress(random.Random(4).randbytes(200), mtime=0)[:-6]
    return member * (size // len(member))


def beginnings_of_members(size: int) -> bytes:
    return b"\x1f\x8b\x08\x00" * (size // 4)


def names_without_an_end(size: int) -> bytes:
    return (b"\x1f\x8b\x08\x08" + b"name" * 3) * (size // 16)


def names_with_one_end(size: int) -> bytes:
    return names_without_an_end(size) + b"\0\3\0"


def names_after_a_member(size: int) -> bytes:
    """As of all of them the first is damaged, the others are looked for."""
    return gzip.compress(record(b"sound"), mtime=0)[:-8] + bytes(8) + names_with_one_end(size)


def members_of_nothing(size: int) -> bytes:
    """Each decodes, as far as it goes, to an empty block."""
    return (b"\x1f\x8b\x08\x00" + bytes(6) + b"\0\0\0\xff\xff") * (size // 15)


def frames_without_their_last_byte(size: int) -> bytes:
    return b"".join(record(b"%04d" % (each % 10_000))[:-1] for each in range(size // 19))


_NOTHING = (beginnings_of_members, names_without_an_end)
_SALVAGED = (
    members_of_nothing,
    names_after_a_member,
    members_without_trailers,
    empty_records_with_bad_checksums,
    members_that_do_not_decode,
    heads_of_members,
    members_in_members,
)
"""Salvaging these shapes, which reads them, takes long enough."""
_SEARCHED_FAR = (frames_without_their_last_byte,)
"""Each search looks further than the one before, up to a few hundred kilobytes: only larger files
show where that ends."""
SHAPES = [
    headers,
    headers_of_nothing,
    headers_to_the_end,
    headers_to_anywhere,
    record_of_headers,
    damaged_record_of_headers,
    headers_between_records,
    empty_records_with_bad_checksums,
    records_of_records,
    zeros,
    zeros_in_gzip,
    members_with_bad_trailers,
    members_that_do_not_decode,
    headless_gzip,
    heads_of_members,
    members_in_members,
    members_without_trailers,
    beginnings_of_members,
    names_without_an_end,
    names_with_one_end,
    names_after_a_member,
    members_of_nothing,
    frames_without_their_last_byte,
]


class Steps:
    """Counts what happens while it is entered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0.0
        take = GzipStream._take

        def taken(stream: GzipStream, piece: bytes) -> None:
            self.count += len(piece) / 1000
            take(stream, piece)

        monkeypatch.setattr(GzipStream, "_take", taken)
        read = HashedFile.read

        def passed(file: HashedFile, start: int, length: int) -> bytes:
            data = read(file, start, length)
            self.count += len(data) / 1000
            return data

        monkeypatch.setattr(HashedFile, "read", passed)
        for kind in (NativeFinder, PythonFinder):
            self._count_blocks(kind, monkeypatch)

    def _count_blocks(self, kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        feed = kind.feed

        def fed(finder: Any, block: bytes, base: int, *, last: bool) -> bool:
            self.count += len(block) / 1000
            found: bool = feed(finder, block, base, last=last)
            return found

        monkeypatch.setattr(kind, "feed", fed)

    def __enter__(self) -> Steps:
        self.count = 0.0
        sys.setprofile(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _call(self, frame: FrameType, event: str, argument: object) -> None:
        self.count += event in ("call", "c_call")


def expect_linear(
    shape: Callable[[int], bytes], steps_of: Callable[[bytes], float], *, times: int = 1
) -> None:
    steps_of(shape(SMALL // 2))  # what happens once in a process is not counted
    small, large = shape(times * SMALL), shape(times * LARGE)
    few, many = steps_of(small), steps_of(large)
    assert len(large) > 12 * len(small)
    assert many / len(large) <= AT_MOST * few / len(small)


@pytest.mark.parametrize("shape", [each for each in SHAPES if each not in _SALVAGED])
def test_reading_takes_steps_in_proportion(
    shape: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)

    def steps_of(data: bytes) -> float:
        with steps:
            for _ in scan(MemoryFolder({"x": data}), "x"):  # type: ignore[arg-type]  # enough of one
                pass
        return steps.count

    expect_linear(shape, steps_of, times=4 if shape in _SEARCHED_FAR else 1)


@pytest.mark.skipif(scanner_kind() != "native", reason="the compiled scanner is needed")
@pytest.mark.parametrize("shape", _NOTHING)
def test_headers_that_begin_nothing_take_no_steps_each(
    shape: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = shape(LARGE)
    steps = Steps(monkeypatch)
    with steps:
        (end,) = (
            each for each in scan(MemoryFolder({"x": data}), "x") if isinstance(each, StreamEnd)
        )  # type: ignore[arg-type]
    assert end.records == 0
    assert steps.count < len(data) / 32


@pytest.mark.medium
def test_frames_that_lack_a_byte_are_not_all_searched_again_after_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = frames_without_their_last_byte(1 << 19)
    searched = 0
    for kind in (NativeFinder, PythonFinder):

        def fed(finder: Any, block: bytes, base: int, *, last: bool, feed: Any = kind.feed) -> bool:
            nonlocal searched
            searched += len(block)
            found: bool = feed(finder, block, base, last=last)
            return found

        monkeypatch.setattr(kind, "feed", fed)
    faults = sum(isinstance(each, Fault) for each in scan(MemoryFolder({"x": data}), "x"))  # type: ignore[arg-type]
    assert faults > 100
    assert searched < 60 * len(data)


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.usefixtures("unsynced")
@pytest.mark.parametrize("shape", SHAPES)
def test_salvaging_takes_steps_in_proportion(
    shape: Callable[[int], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(monkeypatch)

    def steps_of(data: bytes) -> float:
        path = tmp_path / f"{len(data)}.tfrecord"
        path.write_bytes(data)
        with steps, contextlib.suppress(RefusedError):
            salvage([str(path)], tmp_path / f"out-{len(data)}")
        return steps.count

    expect_linear(shape, steps_of)

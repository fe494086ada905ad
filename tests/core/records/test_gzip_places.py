"""Where gzip members may begin: no member is passed over, and both searches find the same."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path

import pytest
from memory_support import MemoryReader

from tfrecreg.core.records.gzip_access import HEADER_LIMIT, member_places, python_members
from tfrecreg.core.records.gzip_writer import MAGIC
from tfrecreg.core.records.scanner import VARIABLE, native_members
from tfrecreg.core.records.stream import READ_BYTES, HashedFile

FEW = 400
MANY = 40_000


def member(dice: random.Random) -> bytes:
    """A member with any of the optional fields, and any kind of block."""
    text = dice.choice((b"", b"abc" * 30, dice.randbytes(dice.randrange(200))))
    level, strategy = (
        dice.choice((0, 1, 6, 9)),
        dice.choice((zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED)),
    )
    deflate = zlib.compressobj(level, zlib.DEFLATED, -15, 8, strategy)
    flags = dice.choice((0, 0, 1, dice.randrange(32)))
    head = MAGIC + bytes([flags]) + dice.randbytes(6)
    if flags & 4:
        extra = dice.randbytes(dice.randrange(20))
        head += len(extra).to_bytes(2, "little") + extra
    for flag in (8, 16):
        if flags & flag:
            head += bytes(dice.randrange(1, 256) for _ in range(dice.randrange(20))) + b"\0"
    if flags & 2:
        head += (zlib.crc32(head) & 0xFFFF).to_bytes(2, "little")
    trailer = zlib.crc32(text).to_bytes(4, "little") + len(text).to_bytes(4, "little")
    return head + deflate.compress(text) + deflate.flush() + trailer


def soup(dice: random.Random) -> bytes:
    """Members, whole or cut, and pieces that look like them."""
    parts = []
    for _ in range(dice.randrange(12)):
        kind = dice.randrange(6)
        if kind == 0:
            parts.append(member(dice))
        elif kind == 1:
            whole = member(dice)
            parts.append(whole[: dice.randrange(len(whole))])
        elif kind == 2:
            parts.append(MAGIC + dice.randbytes(dice.randrange(30)))
        elif kind == 3:
            parts.append(MAGIC + bytes([dice.randrange(32)]) + dice.randbytes(6) + b"n" * 9)
        elif kind == 4:
            parts.append((MAGIC + bytes([dice.choice((0, 8, 16))])) * dice.randrange(8))
        else:
            parts.append(bytes(dice.randrange(5)))
    return b"".join(parts)


def expect_same(numbers: range) -> None:
    find = native_members
    for number in numbers:
        dice = random.Random(number)
        memory = soup(dice)
        stop = dice.choice((len(memory), dice.randrange(len(memory) + 1)))
        assert list(find(memory, stop)) == python_members(memory, stop), number


@pytest.mark.usefixtures("compiled")
def test_both_searches_find_the_same_sampled() -> None:
    expect_same(range(FEW))


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
def test_both_searches_find_the_same() -> None:
    expect_same(range(MANY))


@pytest.mark.usefixtures("compiled")
def test_both_searches_find_the_same_of_more_places_than_fit_at_once() -> None:
    memory = gzip.compress(b"", mtime=0) * 3_000
    found = python_members(memory, len(memory))
    assert len(found) == 3_000
    assert list(native_members(memory, len(memory))) == found


@pytest.mark.usefixtures("compiled")
def test_both_searches_find_the_same_of_long_names() -> None:
    head = MAGIC + b"\x08" + bytes(6)
    block = b"\x01\x00\x00\xff\xff"
    for size in (HEADER_LIMIT - 12, HEADER_LIMIT - 11, HEADER_LIMIT - 10):
        memory = head + b"n" * size + b"\0" + block
        found = python_members(memory, 1)
        assert list(native_members(memory, 1)) == found
        assert found == ([0] if len(head) + size + 1 <= HEADER_LIMIT else [])


def test_every_member_is_found() -> None:
    for number in range(FEW):
        dice = random.Random(number)
        parts, starts, at = [], [], 0
        for _ in range(dice.randrange(1, 6)):
            parts += [dice.randbytes(dice.randrange(9)), member(dice)]
            starts.append(at + len(parts[-2]))
            at += len(parts[-2]) + len(parts[-1])
        data = b"".join(parts)
        assert {*starts} <= {*python_members(data, len(data))}, number


@pytest.mark.parametrize(
    ("bytes_behind", "found"),
    [
        (b"\x00" * 6 + b"\x01\x05\x00\xfa\xff", True),  # a stored block of five bytes
        (b"\x00" * 6 + b"\x01\x05\x00\xfa\xfe", False),  # its size twice, but not the same
        (b"\x00" * 6 + b"\x07" + bytes(9), False),  # a type of block that there is not
        (b"\x00" * 6 + b"\x04" + bytes(12), False),  # code lengths without a code
        (b"\x00" * 5, False),  # the file ends inside the header
    ],
)
def test_the_first_block_decides(bytes_behind: bytes, found: bool) -> None:
    memory = b"xx" + MAGIC + b"\0" + bytes_behind
    assert python_members(memory, len(memory)) == ([2] if found else [])


@pytest.mark.parametrize("flags", [0x20, 0x40, 0x80, 0xFF])
def test_reserved_flags_begin_no_member(flags: int) -> None:
    memory = bytearray(gzip.compress(b"text", mtime=0))
    memory[3] = flags
    assert python_members(bytes(memory), len(memory)) == []


@pytest.mark.parametrize("kind", ["python", "native"])
def test_places_of_a_file_are_found_across_the_blocks_it_is_read_in(
    kind: str, compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, kind)
    packed = gzip.compress(b"some text", mtime=0)
    long = MAGIC + b"\x08" + bytes(6) + b"n" * 5000 + b"\0" + packed[10:]
    data = bytearray(3 * READ_BYTES)
    places = [0, *range(READ_BYTES - 30, READ_BYTES + 90, 30), 2 * READ_BYTES - 1]
    for place in places:
        data[place : place + len(packed)] = packed
    data[2 * READ_BYTES - 4000 : 2 * READ_BYTES - 4000 + len(long)] = long
    data[-len(packed) :] = packed
    expected = [*places[:-1], 2 * READ_BYTES - 4000, len(data) - len(packed)]
    file = HashedFile(MemoryReader(bytes(data)), digest=False)
    assert list(member_places(file, 0)) == expected
    assert list(member_places(file, 1)) == expected[1:]

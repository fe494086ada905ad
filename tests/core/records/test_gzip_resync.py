"""Damage to one of several small members: records, numbers and offsets as a slow reader has them.

It knows where members begin, decodes each byte by byte, and reads records by the letter of the
format up to the first that does not hold. What follows the damaged member stands where the size in
that one's trailer says, if this can be its size at all; otherwise right behind what was decoded.
"""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass

import pytest
from check_support import framed
from memory_support import see

from tfrecreg.core.records.framing import header_length, masked_crc
from tfrecreg.core.records.gzip_writer import GzipEncoder


def inflate(data: bytes, at: int) -> tuple[bytes, int | None]:
    """What deflate data from byte `at` on decode to, up to their end or the first error, and the
    byte behind them; None after an error.
    """
    inflater = zlib.decompressobj(-15)
    parts = []
    try:
        while at < len(data) and not inflater.eof:
            parts.append(inflater.decompress(data[at : at + 1]))
            at += 1
    except zlib.error:
        pass
    return b"".join(parts), at if inflater.eof else None


FEW = 250
MANY = 12_000
PART = 3_000
HEADER = 10
EXPANSION = 1032
Record = tuple[int, int, bytes | None]


@dataclass(frozen=True)
class Damaged:
    """A shard of whole records in each member, one of which is damaged."""

    data: bytes
    before: list[bytes]
    """The payloads in the members before it."""
    behind: list[bytes]
    begin: int
    """Byte of the file where it begins, and where it ends."""
    end: int
    done: str


def damaged(number: int) -> Damaged:
    dice = random.Random(number)
    members = [_payloads(dice) for _ in range(dice.randrange(2, 6))]
    packed = [_packed(payloads) for payloads in members]
    place = dice.randrange(len(members))
    member, done = _damage(dice, packed[place], last=place == len(members) - 1)
    begin = sum(map(len, packed[:place]))
    return Damaged(
        data=b"".join([*packed[:place], member, *packed[place + 1 :]]),
        before=[each for payloads in members[:place] for each in payloads],
        behind=[each for payloads in members[place + 1 :] for each in payloads],
        begin=begin,
        end=begin + len(member),
        done=done,
    )


def _payloads(dice: random.Random) -> list[bytes]:
    size = dice.choice((0, 5, 30, 90))
    kinds = (dice.randbytes(size), bytes(size), b"again and again; " * (size // 15))
    return [dice.choice(kinds) for _ in range(dice.randrange(1, 5))]


def _packed(payloads: list[bytes]) -> bytes:
    encoder = GzipEncoder()
    return b"".join(encoder.write(framed(each)) for each in payloads) + encoder.close()


def _damage(dice: random.Random, member: bytes, *, last: bool) -> tuple[bytes, str]:
    data = bytearray(member)
    kind = dice.choice(("flip", "flip", "zero", "delete", "checksum", "size", "trailer", "cut"))
    at = dice.randrange(HEADER, len(data) - 8)
    count = dice.choice((1, 2, 9, 30))
    if kind == "flip":
        data[at] ^= 1 << dice.randrange(8)
    elif kind == "zero":
        data[at : at + count] = bytes(min(count, len(data) - at))
    elif kind == "delete":
        del data[at : min(at + count, len(data) - 8)]
    elif kind == "cut" and last:
        del data[dice.randrange(HEADER + 1, len(data)) :]
    elif kind == "checksum":
        data[-8:-4] = dice.randbytes(4)
    elif kind == "size":
        data[-4:] = struct.pack("<I", dice.choice((0, 1, 1 << 30, dice.getrandbits(32))))
    else:
        # Its data as well, so that only the trailer tells how many there were.
        data[at] ^= 1 << dice.randrange(8)
        size = dice.choice((0, 1, 40, len(data), 2000 * len(data), 1 << 30, dice.getrandbits(32)))
        data[-4:] = struct.pack("<I", size)
    return bytes(data), kind


def expected(shard: Damaged) -> list[Record]:
    """What a reader has of the shard: number, offset and payload of each record."""
    records: list[Record] = []
    at = 0
    for payload in shard.before:
        records.append((len(records), at, payload))
        at += 16 + len(payload)
    start = at
    stream, end = inflate(shard.data[: shard.end], shard.begin + HEADER)
    if end is None:
        stream, end = inflate(shard.data, shard.begin + HEADER)
    while (found := _record(stream, at - start)) is not None:
        records.append((len(records), at, found))
        at += 16 + len(found)
    if not shard.behind:
        return records
    size = int.from_bytes(shard.data[shard.end - 4 : shard.end], "little")
    span = shard.end - shard.begin
    whole = end is not None and _one_right(shard.data, end, stream)
    if not whole and span // 2 <= size <= span * EXPANSION and start + size >= at:
        start += size
    else:
        start += len(stream)
    number = len(records) + (start > at)
    for payload in shard.behind:
        records.append((number, start, payload))
        number += 1
        start += 16 + len(payload)
    return records


def _record(stream: bytes, at: int) -> bytes | None:
    length = header_length(stream[at : at + 12])
    if length is None or at + 16 + length > len(stream):
        return None
    end = at + 12 + length
    stored = int.from_bytes(stream[end : end + 4], "little")
    return stream[at + 12 : end] if masked_crc(stream[at + 12 : end]) == stored else None


def _one_right(data: bytes, end: int, stream: bytes) -> bool:
    """Whether the checksum or the size in the trailer is right: then the other is damaged."""
    crc, size = struct.unpack("<II", data[end : end + 8].ljust(8, b"\0"))
    return zlib.crc32(stream) == crc or len(stream) == size


def expect(numbers: range) -> None:
    for number in numbers:
        shard = damaged(number)
        assert see(shard.data).records == expected(shard), (number, shard.done)


def expect_all_but_one(numbers: range) -> None:
    """The header of one record was destroyed before it was compressed: it alone is lost."""
    for number in numbers:
        dice = random.Random(number)
        members = [_payloads(dice) for _ in range(dice.randrange(1, 5))]
        lost = dice.randrange(sum(map(len, members)))
        encoder, data, records, at = GzipEncoder(1 << 30), b"", [], 0
        for payload in (each for payloads in members for each in payloads):
            record = bytearray(framed(payload))
            if len(records) == lost:
                places = dice.sample(range(12), dice.choice((2, 3, 12)))
                for place in places:
                    record[place] ^= dice.randrange(1, 256)
            data += encoder.write(bytes(record))
            if dice.randrange(3) == 0:
                data += encoder.end_member()
            records.append((len(records), at, payload))
            at += len(record)
        data += encoder.close()
        assert see(data).records == records[:lost] + records[lost + 1 :], number


def test_records_around_a_destroyed_header_sampled() -> None:
    expect_all_but_one(range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, MANY, PART))
def test_records_around_a_destroyed_header(begin: int) -> None:
    expect_all_but_one(range(begin, begin + PART))


def test_records_around_a_damaged_member_sampled() -> None:
    expect(range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("begin", range(0, MANY, PART))
def test_records_around_a_damaged_member(begin: int) -> None:
    expect(range(begin, begin + PART))

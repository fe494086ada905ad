"""The search for gzip headers in any bytes: where a member may begin.

A member begins with three fixed bytes, which occur elsewhere too. Most such places are excluded by
what follows: reserved flags, a name without an end, or a first block that no decoder accepts. What
is left is decoded by :mod:`tfrecreg.core.records.gzip.reader`.

:func:`python_members` is always available; ``walk.c`` has the compiled version, which finds the
same places.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfrecreg.core.records.gzip.writer import (
    FCOMMENT,
    FEXTRA,
    FHCRC,
    FNAME,
    MAGIC,
    MEMBER_HEADER,
    RESERVED,
)
from tfrecreg.core.records.scanner import load_scanner, scanner_kind
from tfrecreg.core.records.stream import READ_BYTES, HashedFile

HEADER_LIMIT = 1 << 20
"""A header of more bytes counts as damage; 64 KiB of extra field, a name and a comment fit."""

_MOST_LITERALS = _MOST_DISTANCES = 29
_LEAST = (5, 1, 10)
"""Number of bytes of a block that decide whether it can be decoded, by its type."""
_KRAFT = 128


def member_places(file: HashedFile, at: int) -> Iterator[int]:
    """Offsets from byte `at` of the file on where a member may begin, in order."""
    find = load_scanner().members if scanner_kind() == "native" else python_members
    data, whole = b"", False
    while data or not whole:
        # A header that begins in the first half of the buffer ends in the second, or nowhere.
        while not whole and len(data) < READ_BYTES + HEADER_LIMIT:
            more = file.read(at + len(data), READ_BYTES)
            data += more
            whole = not more
        stop = min(len(data), READ_BYTES)
        for place in find(data, stop):
            yield at + place
        data = data[stop:]
        at += stop


def python_members(memory: bytes, stop: int) -> list[int]:
    """Offsets in the first `stop` bytes of `memory` where a member may begin."""
    found = []
    zero = -1  # the first zero behind the last fixed header that a name follows
    at = memory.find(MAGIC, 0, stop + len(MAGIC) - 1)
    while 0 <= at <= len(memory) - len(MEMBER_HEADER):
        begin = at + len(MEMBER_HEADER)
        flags = memory[at + 3]
        if flags & (FNAME | FCOMMENT) and not flags & FEXTRA and zero < begin:
            zero = memory.find(0, begin) % (len(memory) + 1)
        if _may_begin(memory, at, flags, zero):
            found.append(at)
        at = memory.find(MAGIC, at + 1, stop + len(MAGIC) - 1)
    return found


def _may_begin(memory: bytes, at: int, flags: int, zero: int) -> bool:
    if flags & RESERVED:
        return False
    begin = at + len(MEMBER_HEADER)
    end = begin + (2 if flags & FHCRC else 0)
    texts = bool(flags & FNAME) + bool(flags & FCOMMENT)
    if flags & FEXTRA:
        if texts or len(memory) - begin < 2:
            return True
        end += 2 + int.from_bytes(memory[begin : begin + 2], "little")
    elif texts:
        if zero == len(memory) or zero - at >= HEADER_LIMIT:
            return False
        end += zero + 1 - begin
        if texts == 2:
            return True
    # The flags may be damaged, and the data begin right behind them.
    return _may_deflate(memory, end) or _may_deflate(memory, begin)


def _may_deflate(memory: bytes, at: int) -> bool:
    """Whether deflate data may begin here: false only if their first block cannot be decoded."""
    block = memory[at : at + 10]
    kind = block[0] >> 1 & 3 if block else 1
    if kind == 3:
        return False
    if kind == 1 or len(block) < _LEAST[kind]:
        return True
    if kind == 0:
        return block[1] ^ block[3] == 0xFF and block[2] ^ block[4] == 0xFF
    # The code of code lengths has to be complete.
    bits = int.from_bytes(block, "little") >> 3
    if bits & 31 > _MOST_LITERALS or bits >> 5 & 31 > _MOST_DISTANCES:
        return False
    lengths = (bits >> 14 + 3 * number & 7 for number in range(4 + (bits >> 10 & 15)))
    return sum(_KRAFT >> length for length in lengths if length) == _KRAFT

"""Reads the decompressed stream of a gzip file from any place where a member begins.

Only bytes of verified members are returned. In damaged deflate data, a wrong back-reference can
copy whole records together with their checksums, so these checksums prove nothing.

The module also searches for possible members. A member begins with three fixed bytes, which also
occur elsewhere. The search skips a place if reserved flags are set, a name has no end, or every
decoder refuses the first block. ``walk.c`` has a compiled search with equal results.
"""

from __future__ import annotations

import bisect
import zlib
from collections.abc import Iterator

from tfrecreg.core.records.gzip_writer import (
    FCOMMENT,
    FEXTRA,
    FHCRC,
    FNAME,
    GZIP_BITS,
    MAGIC,
    MEMBER_HEADER,
    RESERVED,
)
from tfrecreg.core.records.scanner import native_members, scanner_kind
from tfrecreg.core.records.stream import READ_BYTES, HashedFile, only_zeros
from tfrecreg.core.storage.interface import Readable, Reader

Members = tuple[tuple[int, int], ...]
"""Where each member begins: its offsets in the file and in the decompressed stream. Ascending."""

_READ_BYTES = 1 << 18
_SKIP_BYTES = 1 << 20
_HELD_BYTES = 8 << 20
"""If the data of a member have at most this size, they are kept until another member is read."""


class DamagedGzipError(Exception):
    """The compressed bytes do not decompress, or do not match their trailer."""


class Inflater:
    """Reads the stream forward, from the beginning of one member."""

    def __init__(self, reader: Reader, file: int, stream: int) -> None:
        self.position = stream
        """Position of the next byte of the stream."""
        self.members = 0
        """Number of members that were begun."""
        self.sound_to = stream
        """All members before this byte of the stream match their trailers."""
        self._reader = reader
        self._next = file
        self._input = b""
        self._inflater: zlib._Decompress | None = None

    def read(self, length: int) -> bytes:
        """The next bytes of the stream, at most `length`; empty only at its end."""
        while True:
            if not self._input:
                self._input = self._reader.read_at(self._next, _READ_BYTES)
                self._next += len(self._input)
            ended = not self._input
            if self._inflater is None and not self._open():
                return b""
            assert self._inflater is not None
            try:
                piece = self._inflater.decompress(self._input, length)
            except zlib.error as error:
                raise DamagedGzipError(str(error).split(": ", 1)[-1]) from None
            self.position += len(piece)
            if self._inflater.eof:
                self._input = self._inflater.unused_data
                self._inflater = None
                self.sound_to = self.position
            else:
                self._input = self._inflater.unconsumed_tail
                if ended and not piece:
                    raise DamagedGzipError("the file ends inside a gzip member")
            if piece:
                return piece

    def exactly(self, length: int) -> bytes:
        """The next `length` bytes; fewer only where the stream ends."""
        parts: list[bytes] = []
        while length and (piece := self.read(min(length, _SKIP_BYTES))):
            parts.append(piece)
            length -= len(piece)
        return b"".join(parts)

    def go(self, position: int) -> None:
        """Read and drop the stream up to `position`, or to its end."""
        while self.position < position and self.read(min(_SKIP_BYTES, position - self.position)):
            pass

    def _open(self) -> bool:
        """Begin the next member; False after the last member. Zeros up to the end of the file are
        padding.
        """
        head = self._input
        at = self._next - len(head)
        is_padding = self.members and head[:1] == b"\0" and only_zeros(self._reader.read_at, at)
        if not head or is_padding:
            return False
        if head[: len(MAGIC)] != MAGIC[: len(head)]:
            raise DamagedGzipError(f"no gzip member begins at byte {at} of the file")
        self.members += 1
        self._inflater = zlib.decompressobj(GZIP_BITS)
        return True


class MemberReader:
    """Reads any bytes of the stream. Safe for several threads and after a fork."""

    def __init__(self, reader: Reader, members: Members, end: int, *, proven: bool) -> None:
        self._reader = reader
        self._members = members
        self._starts = [stream for _, stream in members]
        self._end = end
        self._proven = set(range(len(members))) if proven else set()
        # A thread takes an inflater out and puts it back, so threads never share an inflater.
        self._held: tuple[int, bytes] = (-1, b"")
        self._open: list[Inflater] = []

    def read(self, start: int, length: int) -> bytes:
        """`length` bytes from byte `start` of the stream; fewer only where it ends."""
        parts: list[bytes] = []
        stop = min(start + length, self._end)
        while start < stop:
            # If several members begin at the same byte of the stream, all but the last are empty.
            number = bisect.bisect_right(self._starts, start) - 1
            end = self._starts[number + 1] if number + 1 < len(self._starts) else self._end
            piece = self._piece(number, end, start, min(stop, end))
            parts.append(piece)
            if len(piece) < min(stop, end) - start:
                raise DamagedGzipError("a gzip member is shorter than it should be")
            start += len(piece)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _piece(self, number: int, end: int, start: int, stop: int) -> bytes:
        begin = self._starts[number]
        if end - begin <= _HELD_BYTES:
            held, data = self._held
            if held != number:
                inflater = Inflater(self._reader, *self._members[number])
                data = inflater.exactly(end - begin)
                self._prove(inflater, number, end)
                self._held = number, data
            return data[start - begin : stop - begin]
        try:
            inflater = self._open.pop()
        except IndexError:
            inflater = Inflater(self._reader, *self._members[number])
        if not begin <= inflater.position <= start:
            inflater = Inflater(self._reader, *self._members[number])
        inflater.go(start)
        piece = inflater.exactly(stop - start)
        if number in self._proven:
            self._open[:] = [inflater]
        else:
            self._prove(inflater, number, end)
        return piece

    def _prove(self, inflater: Inflater, number: int, end: int) -> None:
        """Read to the member's end, where zlib compares the checksum."""
        if number in self._proven:
            return
        inflater.go(end)
        try:
            # The trailer follows the last byte: a request for one more byte makes zlib verify it.
            inflater.read(1)
        except DamagedGzipError:
            if inflater.sound_to < end:
                raise
            # The next member is damaged: reading that member will report the damage.
        if inflater.sound_to < end:
            raise DamagedGzipError("a gzip member does not end where it should")
        self._proven.add(number)


def decoded_size(storage: Readable, path: str) -> int | None:
    """Decompressed size of a gzip file in bytes; None if the file is not gzip or is damaged.

    The file is decompressed, because its last trailer has only the size of the last member, modulo
    2^32.
    """
    try:
        return sum(map(len, inflated(storage, path)))
    except DamagedGzipError:
        return None


def inflated(storage: Readable, path: str) -> Iterator[bytes]:
    """The decompressed content of a gzip file, in pieces."""
    with storage.open(path) as reader:
        inflater = Inflater(reader, 0, 0)
        while piece := inflater.read(_SKIP_BYTES):
            yield piece


HEADER_LIMIT = 1 << 20
"""A longer header counts as damage. Real headers are shorter, even with a name, a comment and an
extra field of 64 KiB.
"""

_MOST_LITERALS = _MOST_DISTANCES = 29
_LEAST = (5, 1, 10)
"""The first bytes of a block show whether it can be decoded. This is their number for each type."""
_KRAFT = 128


def member_places(file: HashedFile, at: int) -> Iterator[int]:
    """The offsets at which a member may begin, in order, starting at byte `at` of the file."""
    find = native_members if scanner_kind() == "native" else python_members
    data, whole = b"", False
    while data or not whole:
        # A header that begins in the first half of the buffer ends in the second half at the
        # latest.
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
    """The offsets at which a member may begin, within the first `stop` bytes of `memory`."""
    found = []
    zero = -1  # the first zero after the last fixed header
    at = memory.find(MAGIC, 0, stop + len(MAGIC) - 1)
    while 0 <= at <= len(memory) - len(MEMBER_HEADER):
        begin = at + len(MEMBER_HEADER)
        flags = memory[at + 3]
        if zero < begin:
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
    # The flags may be damaged while the data begin right after the header.
    return _may_deflate(memory, end) or _may_deflate(memory, begin)


def _may_deflate(memory: bytes, at: int) -> bool:
    """Whether deflate data may begin at `at`. False means that all decoders refuse the data."""
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

"""Writes deterministic gzip. Each member holds about one MiB of the stream.

A member's header is always the same ten bytes, without time and system, and the deflate parameters
never change. So the same zlib library (the manifest names its version) compresses equal records to
equal files. A member ends after a record, never inside a record. So each member can be read alone,
and damage to one member leaves the other members readable.

A member never ends right after a multiple of 256 KiB: see :func:`ends_badly`.

Formats: RFC 1951 (deflate) and RFC 1952 (gzip).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Compression = Literal["none", "gzip"]

MEMBER_BYTES = 1 << 20
"""A member ends after the record that brings it to this number of stream bytes."""

LEVEL = 6
WINDOW_BITS = -15
"""zlib's number for raw deflate with a window of 32 KiB."""
GZIP_BITS = 31
"""zlib's number for deflate with gzip's header and trailer. zlib then checks the trailer."""

MEM_LEVEL = 8
STRATEGY = zlib.Z_DEFAULT_STRATEGY

MAGIC = b"\x1f\x8b\x08"
"""First bytes of every member: the two magic bytes of gzip, and the method deflate."""

MEMBER_HEADER = MAGIC + b"\x00" + b"\x00\x00\x00\x00" + b"\x00" + b"\xff"
"""The fixed header. It has no optional fields and no time, and does not state the compression level
or the system.
"""

TRAILER = struct.Struct("<II")
"""A member's trailer: CRC-32 of its decompressed data, and their size modulo 2^32."""

INPUT_BUFFER = 1 << 18
"""Number of bytes of a compressed file that TensorFlow reads at once by default."""

_TAIL = 16
"""Assumed maximum number of bytes at a member's end that give no output. The last block and the
trailer have 10 such bytes.
"""
_NOTHING = b"\x00\x00\x00\xff\xff"
"""An empty stored block that begins at a byte boundary."""

FHCRC, FEXTRA, FNAME, FCOMMENT, RESERVED = 2, 4, 8, 16, 0xE0
"""Bits of the flags byte: one for each optional field, and a mask for the reserved bits."""


class GzipEncoder:
    """Compresses a stream of records. The results of all calls, joined in order, are the content of
    the file.
    """

    def __init__(self, member_bytes: int = MEMBER_BYTES, *, apart: bool = False) -> None:
        self._member_bytes = member_bytes
        self._apart = apart
        self.members: list[tuple[int, int]] = []
        """Where each member begins: its offsets in the file and in the stream."""
        self._written = 0
        self._taken = 0
        self._crc = 0
        self._size = 0
        self._deflater: zlib._Compress | None = None
        self._held = b""  # input for the deflater, held until more input comes

    def write(self, record: bytes) -> bytes:
        """Compress one record with its frame."""
        return self.feed(record) + self.end_record()

    def feed(self, piece: bytes) -> bytes:
        """Compress a piece of a record. :meth:`end_record` follows the last piece."""
        out = b""
        if self._deflater is None:
            out, self._deflater = self._begin()
        if piece:
            out += self._deflater.compress(self._held)
            self._held = piece
        self._crc = zlib.crc32(piece, self._crc)
        self._size += len(piece)
        self._taken += len(piece)
        self._written += len(out)
        return out

    def end_record(self) -> bytes:
        """End the record, and the member if the member is full."""
        return self.end_member() if self._size >= self._member_bytes else b""

    def fits(self, members: Iterable[tuple[int, int]], size: int) -> bool:
        """Whether members that were compressed elsewhere can come next. This is possible if none of
        them would end badly.
        """
        ends = [*(file for file, _ in members), size] if size else []
        return not any(ends_badly(self._written + end) for end in ends[1:])

    def skip(self, size: int, taken: int, members: Iterable[tuple[int, int]]) -> None:
        """Count whole members that were compressed elsewhere and come next in the file."""
        self.members += [(self._written + file, self._taken + at) for file, at in members]
        self._written += size
        self._taken += taken

    def end_member(self) -> bytes:
        """End the current member, if there is one."""
        if self._deflater is None:
            return b""
        deflater, self._deflater = self._deflater, None
        held, self._held = self._held, b""
        again = deflater.copy()
        trailer = TRAILER.pack(self._crc, self._size & 0xFFFFFFFF)
        out = deflater.compress(held) + deflater.flush() + trailer
        if not self._apart and ends_badly(self._written + len(out)):
            # Empty blocks before the last piece let the member end a few bytes later.
            before = again.flush(zlib.Z_SYNC_FLUSH)
            out = again.compress(held) + again.flush() + trailer
            while ends_badly(self._written + len(before) + len(out)):
                before += _NOTHING
            out = before + out
        self._written += len(out)
        return out

    def close(self) -> bytes:
        """The last bytes of the file. An empty stream becomes one empty member."""
        out = b"" if self.members else self.feed(b"")
        return out + self.end_member()

    def _begin(self) -> tuple[bytes, zlib._Compress]:
        self.members.append((self._written, self._taken))
        self._crc = self._size = 0
        deflater = zlib.compressobj(LEVEL, zlib.DEFLATED, WINDOW_BITS, MEM_LEVEL, STRATEGY)
        return MEMBER_HEADER, deflater


def ends_badly(end: int) -> bool:
    """Whether TensorFlow may lose the data after a member that ends at byte `end` of the file.

    TensorFlow loses the data if two conditions hold. First, TensorFlow's buffer ends after the
    member's last byte that gives output, but before the end of the member's trailer. Second, the
    next read reaches the end of the file. :mod:`tfrecreg.core.records.reading.tensorflow_reader`
    explains why. Other buffer sizes in use are multiples of the default.
    """
    return 1 <= end % INPUT_BUFFER <= _TAIL


@dataclass(frozen=True, slots=True)
class MemberHeader:
    """The parsed header of a member."""

    size: int
    """Size of the header in bytes; 0 if unknown."""
    optional: bool
    """Whether the header has optional fields."""
    problem: str
    """Why the bytes are not a valid header; empty if they are."""
    unfinished: bool = False
    """Whether the only problem is that the bytes end inside the header."""


def parse_member_header(data: bytes) -> MemberHeader:
    """Parse a member's header: the ten fixed bytes, FEXTRA, FNAME, FCOMMENT and FHCRC."""
    if data[:3] != MAGIC[: len(data[:3])]:
        return MemberHeader(0, False, f"it begins with 0x{data[:3].hex()}, not 0x{MAGIC.hex()}")
    if len(data) < len(MEMBER_HEADER):
        return MemberHeader(0, False, "the file ends inside its header", True)
    flags = data[3]
    if flags & RESERVED:
        return MemberHeader(0, False, f"reserved bits are set in its flags 0x{flags:02x}")
    size = len(MEMBER_HEADER)
    optional = bool(flags & (FHCRC | FEXTRA | FNAME | FCOMMENT))
    if flags & FEXTRA:
        size += 2 + int.from_bytes(data[size : size + 2], "little")
    for flag in (FNAME, FCOMMENT):
        if flags & flag:
            size = data.find(b"\x00", size) + 1 or len(data) + 1
    if flags & FHCRC:
        found = int.from_bytes(data[size : size + 2], "little")
        expected = zlib.crc32(data[:size]) & 0xFFFF
        size += 2
        if size <= len(data) and found != expected:
            problem = f"its header checksum should be 0x{expected:04x}, found 0x{found:04x}"
            return MemberHeader(size, optional, problem)
    if size > len(data):
        return MemberHeader(0, optional, "its header does not end", True)
    return MemberHeader(size, optional, "")

"""Scans frames in memory, in Python. :mod:`tfrecreg.core.records.scanner` has the compiled version.

**In order**: :class:`PythonFrameScanner` goes from record to record and checks both checksums. For
each record it looks up the header in a dictionary of verified headers, and computes the data
checksum in C.

**After damage**: :class:`PythonFinder` finds sound records in one pass over the bytes after the
damage. Testing each header separately would read the same bytes many times. One pass is enough
because CRC32C is linear: the checksum of a range is the checksum of all bytes up to its end, less
the contribution of all bytes before its start. That contribution is a product of polynomials. So
one register runs over the bytes, and its values at both ends of a record or gap show whether the
checksum is correct. The time does not depend on the content of the bytes. At most a million
possible records are kept until the end of their data is reached.

The checksum of a length is also linear: each byte of the length contributes a term, and the
checksum is the XOR of all terms. So all places of a block are tried at once. If a single
byte of a length is wrong, the difference between the checksums identifies this byte, because all
8 × 255 possible differences are distinct.
"""

from __future__ import annotations

import heapq
import struct
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

import google_crc32c
import numpy as np
import numpy.typing as npt

from tfrecreg.core.records.framing import (
    FOOTER_BYTES,
    HEADER_BYTES,
    MASK_DELTA,
    MAX_LENGTH,
    OVERHEAD,
    header_length,
    mask,
    unmask,
)

_VIEW_BYTES = 1 << 14
"""For payloads of at least this size, a view is faster than a copy."""

_HEADERS = 1 << 16
"""Number of cached headers; records of equal length have equal headers."""


class Stop(Enum):
    """Why a walk ended."""

    SHORT = auto()
    """The memory ends inside a record, or right before one."""
    LENGTH = auto()
    """The checksum of a record's length is wrong."""
    HUGE = auto()
    """The checksum of a record's length is correct, but the length is above the limit."""
    DATA = auto()
    """The checksum of a record's data is wrong."""


@dataclass(slots=True)
class FrameScan:
    """The result of a walk. The columns are arrays of signed 64-bit numbers."""

    offsets: array[int]
    """Offset in the stream of each record whose checksums hold."""
    starts: array[int]
    """For each record in `offsets`, the offset of its payload in memory."""
    lengths: array[int]
    payload_bytes: int
    end: int
    """Offset in memory of the record at which the walk ended."""
    stop: Stop
    length: int | None
    """Length in the header at `end`; None if the header is incomplete or its checksum is wrong."""
    crc: int = 0
    """If `stop` is `DATA`: the masked checksum that was computed from the data. It differs from the
    checksum in the file, `stored`.
    """
    stored: int = 0

    @property
    def needs(self) -> int:
        """If `stop` is `SHORT`, the next walk needs this many bytes, counted from `end`."""
        return HEADER_BYTES if self.length is None else OVERHEAD + self.length


FrameScanner = Callable[[bytes, int], FrameScan]
"""Walks through one stream, block by block: checks both checksums of all records in a block, which
starts with a record, at the given offset in the stream. Threads must not share a scanner.
"""


class PythonFrameScanner:
    """The scanner that is always available."""

    def __init__(self) -> None:
        self._headers: dict[bytes, int] = {}

    def __call__(self, memory: bytes, base: int) -> FrameScan:
        # Attributes are copied to local names: their lookups would take a quarter of the time.
        value = google_crc32c.value
        footer = struct.Struct("<I").unpack_from
        headers = self._headers
        view = np.frombuffer(memory, np.uint8)
        size = len(memory)
        starts: array[int] = array("q")
        lengths: array[int] = array("q")
        length: int | None
        crc = stored = 0
        at = 0
        while True:
            start = at + 12
            if start > size:
                stop, length = Stop.SHORT, None
                break
            header = memory[at:start]
            length = headers.get(header)
            if length is None:
                length = header_length(header)
                if length is None:
                    stop = Stop.LENGTH
                    break
                if length > MAX_LENGTH:
                    stop = Stop.HUGE
                    break
                if len(headers) < _HEADERS:
                    headers[header] = length
            end = start + length
            if end + 4 > size:
                stop = Stop.SHORT
                break
            crc = value(memory[start:end] if length < _VIEW_BYTES else view[start:end])
            crc = (((crc >> 15) | (crc << 17)) + MASK_DELTA) & 0xFFFFFFFF
            (stored,) = footer(memory, end)
            if crc != stored:
                stop = Stop.DATA
                break
            starts.append(start)
            lengths.append(length)
            at = end + 4
        if stop is not Stop.DATA:
            crc = stored = 0
        offsets = array("q", (np.frombuffer(starts, np.int64) + (base - HEADER_BYTES)).tobytes())
        total = int(np.frombuffer(lengths, np.int64).sum())
        return FrameScan(offsets, starts, lengths, total, at, stop, length, crc, stored)


_HEADER = struct.Struct("<QI")


def header_candidates(block: bytes) -> list[tuple[int, int]]:
    """The offset and the length of each header in `block`: 12 bytes with a correct checksum.

    A header alone proves little: in data that consist of 64-bit numbers, a header occurs by
    accident about once in 30 GiB.
    """
    count = len(block) - HEADER_BYTES + 1
    if count <= 0 or block.count(0) == len(block):
        return []
    # Every four bytes at every offset. The upper half of a length is zero up to MAX_LENGTH.
    words: npt.NDArray[np.uint32] = np.ndarray((len(block) - 3,), "<u4", block, strides=(1,))
    places = np.flatnonzero(words[4 : 4 + count] == 0)
    lengths = words[places]
    low, high = _tables()
    crcs = low[lengths & np.uint32(0xFFFF)] ^ high[lengths >> np.uint32(16)]
    masked = ((crcs >> np.uint32(15)) | (crcs << np.uint32(17))) + np.uint32(MASK_DELTA)
    good = (masked == words[places + 8]) & (lengths <= MAX_LENGTH)
    return list(zip(places[good].tolist(), lengths[good].tolist(), strict=True))


def stored_length(header: bytes) -> int:
    """The length in a header. The header's checksum is ignored."""
    return int(_HEADER.unpack_from(header)[0])


def repaired_length(header: bytes) -> int | None:
    """The original length if only one of its bytes is damaged; None if other damage is found."""
    stored, masked = _HEADER.unpack_from(header)
    hit = _syndromes().get(google_crc32c.value(header[:8]) ^ unmask(masked))
    return None if hit is None else int(stored) ^ hit


@lru_cache(maxsize=1)
def _tables() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Two tables of contributions to a length's checksum. One is for the lower 16 bits and the
    constant, the other is for the upper 16 bits.
    """
    zero = google_crc32c.value(bytes(8))
    tables = []
    for position in range(4):
        changed = (value << 8 * position for value in range(256))
        crcs = [google_crc32c.value(each.to_bytes(8, "little")) ^ zero for each in changed]
        tables.append(np.array(crcs, np.uint32))
    low = np.bitwise_xor.outer(tables[1], tables[0]).ravel() ^ np.uint32(zero)
    high = np.bitwise_xor.outer(tables[3], tables[2]).ravel()
    return low, high


@lru_cache(maxsize=1)
def _syndromes() -> dict[int, int]:
    zero = google_crc32c.value(bytes(8))
    changes = (value << 8 * position for position in range(8) for value in range(1, 256))
    return {google_crc32c.value(each.to_bytes(8, "little")) ^ zero: each for each in changes}


KEPT_BYTES = 31
"""Number of bytes that a block repeats from the previous block. These bytes can hold a header, or a
whole record with a header as its payload.
"""

_STARTS = 29
"""A damaged record's payload may start at this many offsets, counted from the record's start."""
_PENDING = 1 << 20
_ONES = 0xFFFFFFFF
_ONE = 1 << 31
_POLYNOMIAL = 0x82F63B78


class PythonFinder:
    """Finds sound records, and the end of the damaged record before them.

    This finder is always available.
    """

    def __init__(self, at: int, *, before: int, stop: int, gap: bool, first: bool = False) -> None:
        self.found = -1
        """The offset at which the gap test last passed, or -1 if it never passed. The bytes up to
        this offset are one record with a damaged header.
        """
        self.payload = -1
        """The offset of the payload of the record that ends at `found`."""
        self._before = before
        self._stop = stop
        self._tests = gap
        self._at = self._origin = self._gap = at
        self._place = at + (not first)
        self._state = self._gapped = 0
        self._starts: list[int] = []  # contributions to the register after the last start
        self._pending: list[tuple[int, int, int]] = []
        self._spans: list[tuple[int, int]] = []

    def feed(self, block: bytes, base: int, *, last: bool) -> bool:
        """Search the next block. If the result is True, the gap test passed, and the same block has
        to be fed again.
        """
        most = base + len(block) - (HEADER_BYTES if last else OVERHEAD)
        begin = self._place
        for place, length in header_candidates(block[begin - base :]):
            header = begin + place
            if header > most or header >= self._before:
                break
            self._settle(block, base, header - FOOTER_BYTES)
            if self._tests and self.found != header and self._test_gap(block, base, header):
                self._place = header
                return True
            start = header + HEADER_BYTES
            if start + length + FOOTER_BYTES <= self._stop:
                self._settle(block, base, start)
                self._move(block, base, start)
                mine = _times(self._state ^ _ONES, _power(length))
                if len(self._pending) == _PENDING:
                    # Too many records wait: drop those that end last. A sorted list is a heap.
                    self._pending.sort()
                    del self._pending[_PENDING // 2 :]
                heapq.heappush(self._pending, (start + length, header, mine))
        return self._finish(block, base, last=last)

    def first(self) -> tuple[int, int] | None:
        """The first sound record found so far, as its start and end. A later block may show that
        this record lies inside another record.
        """
        return self._spans[0] if self._spans else None

    def spans(self) -> list[tuple[int, int]]:
        """Start and end of each sound record so far, in order; records inside other records are
        left out.
        """
        return list(self._spans)

    def waiting(self) -> bool:
        """Whether more blocks are needed to read all data after a header."""
        return bool(self._pending)

    def _finish(self, block: bytes, base: int, *, last: bool) -> bool:
        limit = base + len(block)
        self._settle(block, base, limit - FOOTER_BYTES)
        if self._tests and last and self.found != limit and self._test_gap(block, base, limit):
            self._place = limit
            return True
        if not last:
            place = limit - OVERHEAD + 1
            self._place = max(self._place, place)
            self._move(block, base, place)
            if self._tests:
                self._move_gap(block, base, place - FOOTER_BYTES)
        return False

    def _settle(self, block: bytes, base: int, to: int) -> None:
        """Check the data of all records that end at or before `to`."""
        while self._pending and self._pending[0][0] <= to:
            end, header, mine = heapq.heappop(self._pending)
            self._move(block, base, end)
            if mask(self._state ^ mine ^ _ONES) != _word(block, end - base):
                continue
            # This record replaces the records inside it. An earlier record that overlaps it stays.
            while self._spans and self._spans[-1][0] >= header:
                self._spans.pop()
            if not self._spans or self._spans[-1][1] <= header:
                self._spans.append((header, end + FOOTER_BYTES))

    def _move(self, block: bytes, base: int, to: int) -> None:
        if to > self._at:
            self._state = _pass(self._state, block[self._at - base : to - base])
            self._at = to

    def _move_gap(self, block: bytes, base: int, to: int) -> None:
        """Advance the register of the gap test. Keep the contribution of each offset at which the
        payload may start.
        """
        while self._gap < to:
            step = to
            if len(self._starts) < _STARTS:
                self._starts.append(self._contribution(self._gap))
                step = self._gap + 1
            self._gapped = _pass(self._gapped, block[self._gap - base : step - base])
            self._gap = step

    def _contribution(self, at: int) -> int:
        return _times(self._gapped ^ _ONES, _power(self._origin + _STARTS - at))

    def _test_gap(self, block: bytes, base: int, place: int) -> bool:
        """Whether the bytes from the origin to `place` are one record, whatever its header is."""
        end = place - FOOTER_BYTES
        size = end - self._origin
        if size < 0:
            return False
        self._move_gap(block, base, end)
        starts = self._starts if size >= _STARTS else [*self._starts, self._contribution(end)]
        wanted = self._gapped ^ unmask(_word(block, end - base)) ^ _ONES
        key = _times(wanted, _power(_STARTS - size))
        if key not in starts:
            return False
        for number, behind in enumerate((HEADER_BYTES, *range(len(starts)))):
            if behind > size or starts[behind] != key:
                continue
            if number > 0 and behind == size:
                continue
            start = self._origin + behind
            if start == end - 8:
                # A header's length and checksum look like a payload of 8 bytes and its checksum.
                length = int.from_bytes(block[start - base : end - base], "little")
                if number > 0 or length <= self._stop - place:
                    continue
            self.found, self.payload = place, start
            return True
        return False


def _pass(register: int, data: bytes) -> int:
    """The register after `data`. A register is the bitwise inverse of a checksum."""
    crc: int = google_crc32c.extend(register ^ _ONES, data)
    return crc ^ _ONES


def _word(block: bytes, at: int) -> int:
    return int.from_bytes(block[at : at + FOOTER_BYTES], "little")


def _times(a: int, b: int) -> int:
    """The product of two polynomials, with reversed bits, modulo the polynomial of CRC32C."""
    product, bit = 0, _ONE
    while bit:
        if a & bit:
            product ^= b
        b = (b >> 1) ^ _POLYNOMIAL if b & 1 else b >> 1
        bit >>= 1
    return product


@lru_cache(maxsize=1 << 12)
def _power(count: int) -> int:
    """Appending `count` zero bytes multiplies a register by this factor. A negative `count` gives
    the inverse factor.
    """
    product, square = _ONE, _ONE >> 8
    if count < 0:
        square = _ONE
        for _ in range(8):
            square = ((square ^ _POLYNOMIAL) << 1 | 1) & _ONES if square & _ONE else square << 1
    count = abs(count)
    while count:
        if count & 1:
            product = _times(product, square)
        square = _times(square, square)
        count >>= 1
    return product

"""Searches for the next sound record after a damaged record.

A header alone is never trusted. These tests are done, the cheapest and most reliable first:

1. The offsets in the index, if they fit the file.
2. Two possible lengths: the length after a repair of one byte, and the length without a repair (if
   only the length's checksum is wrong). A length is accepted if the data checksum is correct for
   this length, or if the next record begins exactly where this record ends.
3. The **gap test** tries each later header: do all bytes before the header form one record with a
   correct data checksum? The test finds the true end of a record whose payload contains TFRecords.
   If a row of sound records ends exactly at the later header, the test passed by coincidence. The
   row cannot lie inside a payload, because a row inside a payload would end before the payload's
   own checksum. So the records of the row are accepted.
4. The first place at which both checksums of a record are correct.

After tests 1 to 3 the number of records is exact. After test 4 the number of lost records is
unknown. The lost bytes then count as one record, and the message about the damage says so.

All tests read ahead through forks of the stream, block by block, and ignore stated lengths. One
pass of a :class:`~tfrecreg.core.records.frame_scan.PythonFinder` does tests 3 and 4. The total
number of bytes that a scan reads ahead is bounded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np
import numpy.typing as npt

from tfrecreg.core.records.frame_scan import KEPT_BYTES, repaired_length, stored_length
from tfrecreg.core.records.framing import (
    FOOTER_BYTES,
    HEADER_BYTES,
    MAX_LENGTH,
    OVERHEAD,
    header_length,
    mask,
    masked_crc,
)
from tfrecreg.core.records.scanner import count_headers, make_finder
from tfrecreg.core.records.stream import ByteStream
from tfrecreg.core.values.text import safe

Offsets = Sequence[int] | npt.NDArray[np.int64]

_GAP_WINDOW = 64 << 20
"""Number of bytes after the first sound record that the gap test covers. So a record of up to this
size is recognized even if it contains TFRecords and its header is destroyed.
"""
_BLOCK = 1 << 20
_FIRST_BLOCK = 1 << 12
_GAPS = 64
"""The gap test is no longer used after it has passed by coincidence this many times."""
_AHEAD_BUDGET = 1 << 29
_HEADER_COST = 1 << 9
"""Cost of each header in the search, in addition to the bytes that are read ahead."""
_WRONG_BUDGET = 1 << 30
_WRONG_COST = 1 << 12
"""A payload with a wrong checksum costs this much, plus the payload's size in bytes."""
_NOWHERE = 1 << 62


@dataclass(frozen=True, slots=True)
class Resolution:
    """The place at which reading continues after a damaged record."""

    next: int | None
    """Where the next record starts; None if no record begins before the stream stops."""
    length: int | None = None
    """Size of the damaged record's payload in bytes; None if unknown."""
    intact: bool = False
    """Whether the damaged record's data checksum is correct for a payload of this length."""
    exact: bool = True
    """Whether exactly one record is lost. If False, more may be lost, but they count as one record.
    """


class Resync:
    """Finds the next sound record after damage, for one scan of one shard."""

    def __init__(self, known: Offsets) -> None:
        self._known = known
        # Two budgets bound the work on a file that is damaged everywhere, or was made to be slow to
        # read: for bytes that are read ahead, and for payloads whose checksum does not hold.
        self._ahead_budget = _AHEAD_BUDGET
        self._wrong_budget = _WRONG_BUDGET
        self._fits = -1  # a later record whose header was verified
        self._misfit = False

    def number(self, at: int) -> int | None:
        """The number that the index gives to the record at `at`; None if the index has no such
        record.
        """
        place = bisect_left(self._known, at)
        return place if place < len(self._known) and self._known[place] == at else None

    def after_header(self, stream: ByteStream, at: int) -> Resolution:
        """Find where to continue after a record whose header is damaged."""
        known = self._next_known(stream, at)
        if known is not None:
            length = known - at - OVERHEAD
            return Resolution(known, length, data_holds(stream.fork(), at, length))
        return self._one_byte(stream, at) or self._search(stream, at)

    def after_huge(self, stream: ByteStream, at: int, length: int) -> Resolution:
        """Find where to continue after a sound header whose length is too large."""
        if self._holds(stream, at, length):
            return Resolution(at + OVERHEAD + length, length, intact=True)
        known = self._next_known(stream, at)
        return self._search(stream, at) if known is None else Resolution(known)

    def after_data(self, stream: ByteStream, at: int, length: int) -> Resolution:
        """Find where to continue after a record with a sound header but a wrong data checksum."""
        following = at + OVERHEAD + length
        trusted = Resolution(following, length)
        # This record may have lost bytes, so that the next record starts earlier.
        inner = self._crossing(stream, at + HEADER_BYTES, following)
        if inner is not None:
            return Resolution(inner, exact=False)
        if (
            stream.fork().ends_at(following)
            or _header(stream.fork(), following) is not None
            or self.number(following) is not None
            or self._one_byte(stream, following)
        ):
            return trusted
        found = self._search(stream, following)
        return trusted if found.intact or found.next is None else found

    def after_many(self, stream: ByteStream, at: int) -> Resolution:
        """Find where to continue after too many faults: at the first sound record from `at` on."""
        finder = make_finder(at, before=_NOWHERE, stop=stream.bound(), gap=False)
        for block, base, last in _blocks(stream.fork(), at):
            finder.feed(block, base, last=last)
            if (first := finder.first()) is not None:
                return Resolution(first[0], exact=False)
        return Resolution(None)

    def _next_known(self, stream: ByteStream, at: int) -> int | None:
        place = self.number(at)
        if place is None or place + 1 >= len(self._known) or self._misfit:
            return None
        following = int(self._known[place + 1])
        if self._fits < following:
            # The index may belong to another file, so at least one header at its offsets must be
            # sound.
            ahead = stream.fork()
            later = (int(each) for each in self._known[place + 1 :])
            fits = (each for each in later if _header(ahead, each) is not None)
            self._fits = next(fits, -1)
            self._misfit = self._fits < 0
        return None if self._misfit else following

    def _search(self, stream: ByteStream, at: int) -> Resolution:
        """Do the gap test for every later header. If no test passes, continue at the first sound
        record.
        """
        finder = make_finder(at, before=_NOWHERE, stop=stream.bound(), gap=True)
        gaps = 0
        for block, base, last in _blocks(stream.fork(), at):
            while gaps < _GAPS and finder.feed(block, base, last=last):
                spans = finder.spans()
                sound = (finder.payload - HEADER_BYTES, finder.found)
                if sound not in spans[-1:] and not _lead_to(finder.found, spans):
                    # If the damaged header lost or gained bytes, this may be an inner record.
                    if finder.payload != at + HEADER_BYTES:
                        return Resolution(finder.found, exact=False)
                    length = finder.found - FOOTER_BYTES - finder.payload
                    return Resolution(finder.found, length, intact=True)
                gaps += 1
            first = finder.first()
            if gaps == _GAPS or (
                first is not None and self._enough(base + len(block) - first[0], _cost(block))
            ):
                break
        first = finder.first()
        return Resolution(None if first is None else first[0], exact=False)

    def _enough(self, distance: int, cost: int) -> bool:
        """Whether the gap test has read far enough after the first sound record."""
        self._ahead_budget -= cost
        return distance > (_GAP_WINDOW if self._ahead_budget > 0 else 0)

    def _crossing(self, stream: ByteStream, begin: int, target: int) -> int | None:
        """Find the first row of sound records that ends after byte `target`, and return the row's
        start. The search begins at byte `begin`.

        Records inside a payload do not reach that far: they end before the payload's own checksum.
        """
        finder = make_finder(begin, before=target, stop=stream.bound(), gap=False, first=True)
        before = self._ahead_budget
        for block, base, last in _blocks(stream.fork(), begin):
            if self._ahead_budget <= 0:
                return None
            finder.feed(block, base, last=last)
            self._ahead_budget -= _cost(block)
            if base + len(block) < target:
                continue
            start = reached = -1
            for first, end in finder.spans():
                start = start if first == reached else first
                reached = end
            if reached > target:
                return start
            if not finder.waiting():
                break
        # Bytes before the target are not read again, so they do not count.
        self._ahead_budget = min(before, self._ahead_budget + target - begin)
        return None

    def _holds(self, stream: ByteStream, at: int, length: int) -> bool:
        """Whether a record's data checksum is correct; False if the work limit is reached."""
        if self._wrong_budget <= 0 or at + OVERHEAD + length > stream.bound():
            return False
        holds = data_holds(stream.fork(), at, length)
        if not holds:
            self._wrong_budget -= length + _WRONG_COST
        return holds

    def _is_header(self, stream: ByteStream, at: int, length: int) -> bool:
        """Whether a record's data and data checksum form the header of another record. Only a
        record with 8 bytes of data can contain a header in this way.
        """
        if length != HEADER_BYTES - FOOTER_BYTES:
            return False
        at += HEADER_BYTES
        stated = _header(stream.fork(), at)
        return stated is not None and self._holds(stream, at, stated)

    def _one_byte(self, stream: ByteStream, at: int) -> Resolution | None:
        """Find where to continue if the damage is limited to one byte of the length, or to the
        checksum of the length. None for other damage.
        """
        head = stream.fork().window(at, HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            return None
        bound = stream.bound() - at - OVERHEAD
        lengths = [
            length
            for length in (repaired_length(head), stored_length(head))
            if length is not None and length <= min(MAX_LENGTH, bound)
        ]
        for length in lengths:
            if self._holds(stream, at, length) and not self._is_header(stream, at, length):
                return Resolution(at + OVERHEAD + length, length, intact=True)
        for length in lengths:
            following = at + OVERHEAD + length
            # Zeros at the end of the file are padding, not an empty record.
            ends = any(head) and stream.fork().ends_at(following)
            if ends or _header(stream.fork(), following) is not None:
                return Resolution(following, length)
        return None


def sound_records(ahead: ByteStream, at: int, stop: int) -> list[tuple[int, int]]:
    """The start and end of every undamaged record that lies between `at` and `stop`."""
    finder = make_finder(at, before=stop, stop=min(stop, ahead.bound()), gap=False, first=True)
    for block, base, last in _blocks(ahead, at):
        finder.feed(block, base, last=last)
        if base + len(block) >= stop:
            break
    return finder.spans()


def _blocks(ahead: ByteStream, at: int) -> Iterator[tuple[bytes, int, bool]]:
    """Blocks of the stream for a finder: the bytes, their offset, and whether the stream ends after
    them.

    The last block of an undamaged stream ends where the stream ends.
    """
    size = _FIRST_BLOCK
    while True:
        block = ahead.window(at, size)
        short = len(block) < size
        yield block, at, short and ahead.interruption is None
        if short:
            return
        at += len(block) - KEPT_BYTES
        size = min(2 * size, _BLOCK)


def _cost(block: bytes) -> int:
    """The cost of searching a block: 1 for each byte, and :data:`_HEADER_COST` for each header."""
    return len(block) + _HEADER_COST * count_headers(block)


def _lead_to(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether the first records in `spans` have no gaps between them and end exactly at `place`."""
    reached = spans[0][0] if spans else -1
    for start, end in spans:
        if start != reached:
            return False
        reached = end
        if reached >= place:
            break
    return reached == place


def _header(stream: ByteStream, at: int) -> int | None:
    length = header_length(stream.window(at, HEADER_BYTES))
    return length if length is not None and length <= MAX_LENGTH else None


def data_holds(ahead: ByteStream, at: int, length: int) -> bool:
    """Whether a record at `at`, with a payload of `length` bytes, has a correct data checksum."""
    crc = 0
    start = at + HEADER_BYTES
    end = start + length
    while start < end:
        piece = ahead.window(start, min(_BLOCK, end - start))
        if not piece:
            return False
        crc = google_crc32c.extend(crc, piece)
        start += len(piece)
    footer = ahead.window(end, FOOTER_BYTES)
    return len(footer) == FOOTER_BYTES and mask(crc) == int.from_bytes(footer, "little")


LFS_POINTER = "a git-LFS pointer"
"""The description of the placeholder that stands for a file which git-LFS did not fetch."""
_KNOWN = (
    (b"version https://git-lfs", LFS_POINTER),
    (b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", "an ArrayRecord, or other Riegeli records"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"PAR1", "a Parquet file"),
    (b"\x89HDF", "an HDF5 file"),
)
ZLIB = "zlib, TensorFlow's `ZLIB`"
"""The description of an unsupported compression."""


def header_detail(head: bytes, at: int, found: Resolution) -> str:
    """The detail of CRC001, for a header whose checksum is wrong."""
    stored = stored_length(head)
    text = (
        f"length checksum should be 0x{masked_crc(head[:8]):08x}, "
        f"found 0x{int.from_bytes(head[8:HEADER_BYTES], 'little'):08x}"
    )
    if found.length is None:
        return text + lost(at, found)
    if found.length == stored:
        text += f"; the length {stored} itself is right"
    else:
        text += f"; length should be {found.length}, found {stored}"
    return text + ("; the data are intact" if found.intact else "; the data are damaged too")


def trailing_detail(head: bytes, left: int) -> str:
    """The detail of CRC004, for trailing bytes that do not begin a record."""
    if left < HEADER_BYTES:
        return f"{left} bytes are left, but a record takes at least {OVERHEAD}: 0x{head.hex()}"
    begin = "zeros" if not any(head) else f"0x{head[:HEADER_BYTES].hex()}"
    return f"{left} bytes do not begin a record, and none follows: they begin with {begin}"


def huge_detail(length: int, found: Resolution) -> str:
    """The detail of CRC005, for a length above the limit."""
    text = f"length should be at most {MAX_LENGTH}, found {length}; its checksum is correct"
    if found.length == length:
        return text + "; the data are present and intact"
    return text if found.length is None else f"{text}; the {found.length} bytes of data are intact"


def foreign_detail(head: bytes, size: int) -> str:
    """The detail of CRC008, for a file that is not a TFRecord."""
    kind = next((name for magic, name in _KNOWN if head.startswith(magic)), "")
    if not kind and not any(head):
        kind = "zeros"
    if not kind and head[:1] == b"\x78" and int.from_bytes(head[:2], "big") % 31 == 0:
        kind = "" if _TEXT.issuperset(head) else ZLIB
    begin = f"0x{head[:HEADER_BYTES].hex()}"
    if len(head) >= HEADER_BYTES and _TEXT.issuperset(head[:_TEXT_BYTES]):
        begin = f'"{safe(head[:_TEXT_BYTES].decode("ascii"))}"'
    begin += f" ({kind})" if kind else ""
    return f"no valid record in {size} bytes that begin with {begin}"


_TEXT = frozenset((*range(0x20, 0x7F), *b"\t\n\r"))
_TEXT_BYTES = 24


def lost(at: int, found: Resolution) -> str:
    """A clause about losses other than the damaged record. Begins with `; `, or is empty."""
    if found.next is None:
        return "; no sound record follows"
    if found.exact:
        return ""
    return (
        f"; the {found.next - at} bytes up to the next sound record, at byte {found.next}, "
        "are lost and count as one record"
    )

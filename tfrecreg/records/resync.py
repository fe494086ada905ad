"""Finding the next good record behind a damaged one.

A header alone is never believed. In this order, cheapest and surest first:

1. the index's offsets, where they fit the file;
2. one wrong byte in the length, or in nothing but its checksum: the length that follows is
   believed if the data checksum agrees, or if the next record begins exactly where it ends;
3. the **gap test**: for each later header, whether everything before it is one record whose data
   checksum holds. It finds the true end of a record whose payload holds TFRecords itself. Where
   sound records lead exactly to that header, it is their checksum that happens to hold for more,
   and they are believed: records inside a payload end before the payload's own checksum;
4. the first place where a length checksum and then a data checksum hold.

With 1 to 3 the count of records goes on exactly. After 4 it is not known how many records were
lost: the stretch counts as one, and its fault says so.

All of it reads ahead through forks of the stream, a block at a time, whatever the lengths say.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import google_crc32c
import numpy as np
import numpy.typing as npt

from tfrecreg.records.candidates import header_candidates, repaired_length, stored_length
from tfrecreg.records.framing import (
    FOOTER_BYTES,
    HEADER_BYTES,
    MAX_LENGTH,
    OVERHEAD,
    header_length,
    mask,
)
from tfrecreg.records.stream import ByteStream

__all__ = ["GAP_WINDOW", "Offsets", "Resolution", "Resync", "data_holds"]

Offsets = Sequence[int] | npt.NDArray[np.int64]

GAP_WINDOW = 64 << 20

_BLOCK = 1 << 20
_KEEP = OVERHEAD - 1
"""Bytes of a block that the next one begins with: a header may straddle, and what is before it."""
_FIRST_BLOCK = 1 << 14
# So that a file that is damaged all over, or made to tire a reader, is read a bounded number of
# times: bytes that the gap test may look at beyond first sound records, and bytes of payloads that
# may turn out wrong; with what each header and each payload costs beyond its bytes.
_GAP_BUDGET = 1 << 30
_CANDIDATE_COST = 1 << 10
_WRONG_BUDGET = 1 << 32
_WRONG_COST = 1 << 12


@dataclass(frozen=True, slots=True)
class Resolution:
    """Where reading goes on behind a damaged record."""

    next: int | None
    """Where the next record starts; None if no record begins before the stream stops."""
    length: int | None = None
    """Bytes of the damaged record's payload, where that is known."""
    intact: bool = False
    """The damaged record's data checksum holds for that length."""
    exact: bool = True
    """Exactly one record was lost. If not, it may be more, and they count as one."""


class Resync:
    """Finds the next good record, for one scan of one shard.

    Args:
        known: from an index: where each record starts, ascending.
        window: how many bytes the gap test looks beyond the first sound record. A record with
            TFRecords inside, whose header is destroyed, is seen through up to this size.
    """

    def __init__(self, known: Offsets, window: int = GAP_WINDOW) -> None:
        self._known = known
        self._window = window
        self._gap_budget = _GAP_BUDGET
        self._wrong_budget = _WRONG_BUDGET
        self._fits = -1  # the header of a later record that was seen to hold
        self._misfit = False

    def number(self, at: int) -> int | None:
        """The number of the record that starts at `at`, if the index knows."""
        place = bisect_left(self._known, at)
        return place if place < len(self._known) and self._known[place] == at else None

    def after_header(self, stream: ByteStream, at: int) -> Resolution:
        """The header at `at` is damaged."""
        known = self._next_known(stream, at)
        if known is not None:
            length = known - at - OVERHEAD
            return Resolution(known, length, data_holds(stream.fork(), at, length))
        return _one_byte(stream, at) or self._search(stream, at)

    def after_huge(self, stream: ByteStream, at: int, length: int) -> Resolution:
        """The header at `at` holds, and states a length that no record has."""
        if self._holds(stream, at, length):
            return Resolution(at + OVERHEAD + length, length, intact=True)
        known = self._next_known(stream, at)
        return self._search(stream, at) if known is None else Resolution(known)

    def after_data(self, stream: ByteStream, at: int, length: int) -> Resolution:
        """The header at `at` holds, its data checksum does not."""
        following = at + OVERHEAD + length
        trusted = Resolution(following, length)
        if (
            stream.fork().ends_at(following)
            or _header(stream.fork(), following) is not None
            or self.number(following) is not None
            or _one_byte(stream, following)
        ):
            return trusted
        found = self._search(stream, following)
        if found.next is not None and found.exact:
            return trusted
        # Bytes may have been lost from this record, so that the next one starts earlier.
        inner = _crossing(stream, at + HEADER_BYTES, following)
        if inner is not None:
            return Resolution(inner, exact=False)
        return trusted if found.next is None else found

    def _next_known(self, stream: ByteStream, at: int) -> int | None:
        place = self.number(at)
        if place is None or place + 1 >= len(self._known) or self._misfit:
            return None
        following = int(self._known[place + 1])
        if self._fits < following:
            # The index may be that of another file: some header it names has to hold.
            ahead = stream.fork()
            later = (int(each) for each in self._known[place + 1 :])
            fits = (each for each in later if _header(ahead, each) is not None)
            self._fits = next(fits, -1)
            self._misfit = self._fits < 0
        return None if self._misfit else following

    def _search(self, stream: ByteStream, at: int) -> Resolution:
        """The gap test for every later header, and the first sound record if none passes."""
        ahead = stream.fork()
        # A record may start right behind `at`; one that ends the gap takes a whole frame.
        cursor, done = at + 1, at + HEADER_BYTES
        crc = 0
        first: int | None = None
        size = _FIRST_BLOCK
        block = ahead.window(cursor, size)
        while True:
            for place, length in header_candidates(block):
                start = cursor + place
                if first is not None and self._enough(start - first, _CANDIDATE_COST):
                    return Resolution(first, exact=False)
                if start - FOOTER_BYTES >= done:
                    crc = google_crc32c.extend(crc, block[done - cursor : place - FOOTER_BYTES])
                    done = start - FOOTER_BYTES
                    holds = mask(crc) == _word(block, place - FOOTER_BYTES)
                    if holds and (first is None or _chain(stream, first, start) != start):
                        return Resolution(start, start - at - OVERHEAD, intact=True)
                if first is None and self._holds(ahead, start, length):
                    first = start
            if len(block) < size:
                break
            reached = cursor + len(block) - _KEEP
            crc = google_crc32c.extend(crc, block[done - cursor : reached - cursor])
            cursor = done = reached
            if first is not None and self._enough(cursor - first, size):
                return Resolution(first, exact=False)
            size = min(2 * size, _BLOCK)
            block = ahead.window(cursor, size)
        end = cursor + len(block)
        if end - at >= OVERHEAD and ahead.interruption is None:
            crc = google_crc32c.extend(crc, block[done - cursor : len(block) - FOOTER_BYTES])
            holds = mask(crc) == _word(block, len(block) - FOOTER_BYTES)
            if holds and (first is None or _chain(stream, first, end) != end):
                return Resolution(end, end - at - OVERHEAD, intact=True)
        return Resolution(first, exact=False)

    def _enough(self, distance: int, cost: int) -> bool:
        """Whether the gap test has looked far enough beyond the first sound record."""
        self._gap_budget -= cost
        return distance > (self._window if self._gap_budget > 0 else 0)

    def _holds(self, stream: ByteStream, at: int, length: int) -> bool:
        if self._wrong_budget <= 0:
            return False
        if at + OVERHEAD + length > stream.bound():
            return False
        holds = data_holds(stream.fork(), at, length)
        if not holds:
            self._wrong_budget -= length + _WRONG_COST
        return holds


def _one_byte(stream: ByteStream, at: int) -> Resolution | None:
    """What one damaged byte, in the length or anywhere in its checksum, explains."""
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
        if data_holds(stream.fork(), at, length):
            return Resolution(at + OVERHEAD + length, length, intact=True)
    for length in lengths:
        following = at + OVERHEAD + length
        # Zeros are padding, not an empty record at the very end.
        ends = any(head) and stream.fork().ends_at(following)
        if ends or _header(stream.fork(), following) is not None:
            return Resolution(following, length)
    return None


def _crossing(stream: ByteStream, begin: int, target: int) -> int | None:
    """The first sound record from `begin` on whose followers lead beyond `target`, or to the end.

    Records inside a payload do neither: they end before the payload's own checksum.
    """
    ahead = stream.fork()
    cursor = begin
    while cursor < target:
        block = ahead.window(cursor, _BLOCK)
        reached = cursor
        for place, _ in header_candidates(block):
            start = cursor + place
            if start >= target:
                return None
            reached = _chain(ahead, start, target)
            if reached > target or (reached > start and ahead.fork().ends_at(reached)):
                return start
            if reached > start:
                break
        if reached > cursor:
            cursor = reached
        elif len(block) < _BLOCK:
            return None
        else:
            cursor += len(block) - _KEEP
    return None


def _chain(stream: ByteStream, at: int, target: int) -> int:
    """Where the sound records that start at `at` lead, up to the first that reaches `target`."""
    ahead = stream.fork()
    while at < target:
        length = _header(ahead, at)
        if length is None or not _record_holds(ahead, at, length):
            break
        at += OVERHEAD + length
    return at


def _header(stream: ByteStream, at: int) -> int | None:
    length = header_length(stream.window(at, HEADER_BYTES))
    return length if length is not None and length <= MAX_LENGTH else None


def _record_holds(stream: ByteStream, at: int, length: int) -> bool:
    fits = at + OVERHEAD + length <= stream.bound()
    return fits and data_holds(stream.fork(), at, length)


def data_holds(ahead: ByteStream, at: int, length: int) -> bool:
    """Whether a payload of so many bytes, of a record that starts at `at`, has its checksum."""
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
    return len(footer) == FOOTER_BYTES and mask(crc) == _word(footer, 0)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + FOOTER_BYTES], "little")

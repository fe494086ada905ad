"""Reads gzip member by member, in bounded memory. After damage, the reader can continue at the next
sound member.

The caller requests bytes from a :class:`GzipStream`, which stops where the stream ends or is
damaged. At damage, `interruption` has the reason, and :meth:`GzipStream.resume` continues after it.

A file is damaged (CRC007) if deflate data cannot be decoded, a trailer disagrees with the decoded
data, the file ends inside a member, or the bytes after a member do not begin another member. Zeros
up to the end of the file also count as damage: `gzip` accepts them as padding, but TensorFlow
reports an error.
"""

from __future__ import annotations

import bisect
import copy
import itertools
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from blake3 import blake3

from tfrecreg.core.records.framing import HEADER_BYTES, MAX_LENGTH, header_length
from tfrecreg.core.records.gzip_access import HEADER_LIMIT, member_places
from tfrecreg.core.records.gzip_writer import (
    MAGIC,
    MEMBER_HEADER,
    TRAILER,
    WINDOW_BITS,
    MemberHeader,
    parse_member_header,
)
from tfrecreg.core.records.reading.tensorflow_reader import InputBuffer, zlib_makes
from tfrecreg.core.records.stream import (
    READ_BYTES,
    ByteStream,
    Damage,
    HashedFile,
    only_zeros,
)

EXPANSION = 1032
"""Maximum number of decoded bytes per compressed byte."""

_HEADER_BYTES = 512
_FEED = 1 << 16
_FIRST_READ = 1 << 12
_MOST_BEGINNINGS = 100
"""To find a whole member after damage, at most this many places are tried."""
_TRIES = 1 << 20
_TRIES_EACH = 8
_PENDING = 1 << 17
"""Upper bound on the decoded bytes that zlib may still hold after the last input byte."""


class GzipStream(ByteStream):
    """The decompressed stream of a gzip file, read forward through a window."""

    compression = "gzip"
    position = 0  # number of decoded bytes of the stream
    end = None  # unknown until all of it is decoded

    def __init__(
        self,
        file: HashedFile,
        *,
        digest: bool,
        members: Sequence[tuple[int, int]] = (),
        misread: bool = False,
        list_members: bool = False,
    ) -> None:
        super().__init__(file)
        self._members = members
        self._hasher = blake3() if digest else None
        self._finished = False
        self._next = 0  # byte of the file where the next read starts
        self._ahead = _FIRST_READ  # number of bytes of the next read
        # Shared by all forks: places where members may begin,
        self._places = member_places(file, 1)
        self._begun: list[tuple[int, int]] = []
        self._whole: dict[int, tuple[bool, bool]] = {}
        # the number of bytes that tests for whole members may still decode,
        self._tries = [_TRIES + _TRIES_EACH * file.end]
        # and the number of bytes that tests for the end of long headers may still read.
        self._long = list(self._tries)
        self._probes = False  # whether this view only tests whether a member is whole
        self._input = b""  # bytes of the file that were read
        self._used = 0  # decoded up to this position
        self._buffer = b""  # decoded bytes from the last window's start on
        self.base = 0
        """The offset in the stream of the first byte that a caller can still request."""
        self._inflater: zlib._Decompress | None = None
        self._member = 0  # where the current member begins in the file
        self._begin = 0  # where it begins in the stream
        self._crc = 0
        self._joined = -1  # where the member after a trailer of too few bytes begins
        self._sound_to = 0  # byte of the stream up to which members were verified
        self._ended: list[tuple[int, Damage | None]] = []  # ends of members in the buffer
        self._tensorflow = InputBuffer() if misread else None
        self._passed: list[tuple[int, int]] | None = [] if list_members else None

    @property
    def file_position(self) -> int:
        """The file offset of the next byte to decode."""
        return self._next - len(self._input) + self._used

    def bound(self) -> int:
        left = self._file.end - self.file_position
        return self.position + left * EXPANSION + _PENDING

    def ends_at(self, at: int) -> bool:
        return not self.window(at, 1) and self._finished and self.position == at

    def window(self, start: int, length: int) -> bytes:
        place = start - self.base
        if place < 0:
            raise ValueError(f"byte {start} of the stream is no longer in memory")
        if place + length <= len(self._buffer):
            return self._buffer[place : place + length]
        while self.position < start:
            if not self._decode(min(READ_BYTES, start - self.position)):
                self._buffer = b""
                self.base = self.position
                return b""
        parts = [self._buffer[place:]]
        have = len(parts[0])
        self._ended = [pair for pair in self._ended if pair[0] > start]
        while have < length:
            piece = self._decode(min(READ_BYTES, length - have))
            if not piece:
                break
            parts.append(piece)
            have += len(piece)
        self._buffer = b"".join(parts)
        self.base = start
        return self._buffer

    def fork(self) -> GzipStream:
        twin = copy.copy(self)
        twin._hasher = None
        twin._tensorflow = None
        twin._passed = None
        twin._ended = list(self._ended)
        if self._inflater is not None:
            twin._inflater = self._inflater.copy()
        return twin

    def inspect(self, start: int, stop: int) -> Damage | None:
        if stop <= self._sound_to:
            return None
        # Reads each of these members to its end, where its checksum is. This view does not move.
        ahead = self.fork()
        while not ahead._stopped():
            reached = ahead.position if ahead._inflater is None else ahead._begin
            if reached >= stop:
                break
            ahead._step(READ_BYTES)
        for end, damage in ahead._ended:
            if damage is not None and damage.begin < stop and end > start:
                return damage
        damage = ahead.interruption
        if damage is not None and damage.begin < stop:
            return damage
        self._sound_to = stop if ahead._inflater is not None else ahead.position
        return None

    def resume(self, least: int = 0) -> bool:
        damage = self.interruption
        self.interruption = None
        if damage is None or damage.lossless:
            return True
        self._hasher = None
        self.guessed = False
        self._sound_to = 0
        self._ended.clear()
        self._buffer = b""
        found = self._next_member(damage, least)
        if found is None:
            self._finished = True
            return False
        self._jump(found[0])
        self.position = self.base = found[1]
        return True

    def leads_on(self, at: int) -> bool:
        """Whether a whole member begins at this byte of the file and is followed by another member
        or by the end of the file.
        """
        return self._begins(at) and self._ends(at) == (True, True)

    def hexdigest(self) -> str | None:
        return None if self._hasher is None else self._hasher.hexdigest()

    def members(self) -> Sequence[tuple[int, int]]:
        return self._passed or ()

    def _jump(self, at: int) -> None:
        self._next = at
        self._input = b""
        self._used = 0
        self._ahead = _FIRST_READ
        self._inflater = None

    def _peek(self, length: int) -> bytes:
        """The next `length` bytes of the file, or all remaining ones. They are not consumed."""
        while len(self._input) - self._used < length:
            more = self._file.read(self._next, self._ahead)
            if not more:
                break
            self._next += len(more)
            self._ahead = min(2 * self._ahead, READ_BYTES)
            self._input = self._input[self._used :] + more
            self._used = 0
        return self._input[self._used : self._used + length]

    def _stopped(self) -> bool:
        return self._finished or self.interruption is not None

    def _decode(self, limit: int) -> bytes:
        """The next bytes of the stream, at most `limit`; empty where the stream stops."""
        while not self._stopped():
            piece = self._step(limit)
            if piece:
                return piece
        return b""

    def _step(self, limit: int) -> bytes:
        """Open the next member if none is open. Otherwise decode some bytes of the open one."""
        if self._inflater is None:
            self._open()
            return b""
        self._peek(1)
        data = self._input[self._used : self._used + _FEED]
        if self._tensorflow is not None and data:
            self._tensorflow.reach(self.file_position + 1, self._file.end)
            data = data[: self._tensorflow.end - self.file_position]
        before = self._inflater.copy()
        try:
            piece = self._inflater.decompress(data, limit)
        except zlib.error as error:
            piece = decoded_before(before, data, limit)
            self._take(piece)
            self._break(f"its data do not decode ({str(error).split(': ', 1)[-1]})")
            return piece
        self._take(piece)
        if self._inflater.eof:
            self._used += len(data) - len(self._inflater.unused_data)
            self._close()
        else:
            self._used += len(data) - len(self._inflater.unconsumed_tail)
            if not data and not piece:
                self._break(f"the file ends inside it, at byte {self._file.end}", cut=True, tail=0)
        return piece

    def _take(self, piece: bytes) -> None:
        if self._tensorflow is not None:
            self._tensorflow.make(len(piece))
        if not self._is_known():
            self._crc = zlib.crc32(piece, self._crc)
        self.position += len(piece)
        if self._hasher is not None:
            self._hasher.update(piece)

    def _is_known(self) -> bool:
        """Whether this member was verified before. Computing the checksum again would cost as much
        as decoding the member.
        """
        return self._begin < self._sound_to

    def _break(self, detail: str, **facts: Any) -> Damage:
        """Interrupt the stream. `facts` are fields of :class:`Damage`."""
        self._tensorflow = None  # TensorFlow stops at this damage.
        self._passed = None
        self.interruption = Damage(
            member=self._member,
            begin=self._begin,
            stream=self.position,
            detail=f"gzip member at byte {self._member} of the file: {detail}",
            **facts,
        )
        return self.interruption

    def _open(self) -> None:
        """Begin the next member, or finish the stream."""
        self._member = self.file_position
        self._begin = self.position
        self._crc = 0
        head = self._peek(_HEADER_BYTES)
        if not head:
            self._finished = True
            return
        if self._member and head[:1] == b"\x00" and only_zeros(self._file.read, self._member):
            self._finished = True
            words = (
                f"it is missing, and only zeros follow up to the file's end, byte {self._file.end}"
            )
            self._break(words, lossless=True, inside=False, tail=self._tail())
            return
        head, header = self._header()
        size, problem = header.size, header.problem
        if (problem or header.optional) and self._sound(len(MEMBER_HEADER)):
            # Only the ten bytes of the header are damaged: the rest of the member is whole.
            size = len(MEMBER_HEADER)
            problem = problem or f"its flags should be 0x00, found 0x{head[3]:02x}"
        elif problem and (not size or not self._sound(size)):
            cut = header.unfinished and len(head) < HEADER_LIMIT
            self._break(problem, inside=cut, cut=cut, tail=self._tail())
            return
        self._used += size
        if self._passed is not None:
            self._passed.append((self._member, self._begin))
        if self._tensorflow is not None:
            self._tensorflow.reach(self.file_position, self._file.end)
        self._inflater = zlib.decompressobj(WINDOW_BITS)
        if problem:
            self._break(problem, lossless=True, inside=False, tail=self._tail())

    def _header(self) -> tuple[bytes, MemberHeader]:
        """The first bytes of the member that begins here, and its parsed header."""
        size = _HEADER_BYTES
        head = self._peek(size)
        header = parse_member_header(head)
        while header.unfinished and len(head) == size < HEADER_LIMIT:
            size = min(8 * size, HEADER_LIMIT)
            if self._probes:
                self._long[0] -= size
                if self._long[0] < 0:
                    break
            head = self._peek(size)
            header = parse_member_header(head)
        return head, header

    def _tail(self) -> int | None:
        """The number of bytes, at most 12, that zlib decompresses from the rest of the file; None
        if zlib reports an error: see :class:`Damage`. At most :data:`HEADER_LIMIT` bytes are read.
        If so many bytes give no output, this counts as an error.
        """
        rest = self._file.read(self._member, HEADER_LIMIT)
        made = zlib_makes(rest)
        return None if len(rest) == HEADER_LIMIT and made == 0 else made

    def _sound(self, header: int) -> bool:
        """Whether the member that begins here is whole; the size of its header is `header`."""
        probe = self._probe(self._member + header)
        probe._inflater = zlib.decompressobj(WINDOW_BITS)
        return probe._member_ends_well()

    def _close(self) -> None:
        """Compare the member's trailer with the decoded data."""
        trailer = self._peek(TRAILER.size)
        kept = self._trailer_bytes()
        self._used += min(len(trailer), kept)
        self._inflater = None
        damage: Damage | None = None
        if len(trailer) < TRAILER.size:
            # zlib compares the checksum as soon as it has read the checksum.
            wrong = len(trailer) >= 4 and trailer[:4] != self._crc.to_bytes(4, "little")
            words = "the file ends inside its trailer"
            tail = None if wrong else 0
            size = (self.position - self._begin) & 0xFFFFFFFF
            right = TRAILER.pack(self._crc, size).startswith(trailer)
            damage = self._break(words, lossless=right, inside=not right, cut=True, tail=tail)
        elif kept < TRAILER.size:
            crc = self._crc.to_bytes(4, "little")[:kept]
            words = f"its trailer should have {TRAILER.size} bytes, found {kept}"
            right = kept > 1 and trailer.startswith(crc)  # one byte may be right by accident
            damage = self._break(words, lossless=right, inside=not right)
            self._joined = self.file_position
        elif not self._is_known():
            problems = trailer_problems(trailer, self._crc, self.position - self._begin)
            if problems:
                both = len(problems) == 2
                damage = self._break("; ".join(problems), lossless=not both, inside=both)
        self._ended.append((self.position, damage))
        if damage is None and self._tensorflow is not None:
            # Stop if this is the last member that TensorFlow reads.
            at, size = self.file_position, self._file.end
            self._tensorflow.reach(at, size)
            if self._tensorflow.close(at, size):
                rest = f"{size - at} bytes after it"
                words = f"it ends at byte {at}, and TensorFlow does not read the {rest}"
                self._break(words, lossless=True, inside=False, misread=True, tail=0)

    def _trailer_bytes(self) -> int:
        """Number of trailer bytes before the next member: fewer than 8 if some were lost."""
        if self._probes:
            return TRAILER.size  # A trailer that lost bytes is wrong in any case.
        ahead = self._peek(TRAILER.size + len(MAGIC) - 1)
        at = ahead.find(MAGIC)
        cut = 0 <= at < TRAILER.size and self._begins(self.file_position + at)
        return at if cut else TRAILER.size

    def _next_member(self, damage: Damage, least: int) -> tuple[int, int] | None:
        """Find where reading can continue, and return the offsets in the file and in the stream.
        Return None if reading cannot continue.
        """
        place = bisect.bisect_left(self._members, (damage.member, 0))
        known = [file for file, _ in self._members[place : place + 2]]
        if damage.member in known[:1] and known[1:] and self._begins(known[1]):
            return self._members[place + 1]
        likely = None
        for at, size in itertools.islice(self._beginnings(damage.member + 1), _MOST_BEGINNINGS):
            span = at - damage.member
            if span // 2 <= size <= span * EXPANSION and damage.begin + size >= least:
                return at, damage.begin + size
            if at == self._joined:
                return at, damage.stream
            whole, followed = self._ends(at)
            if whole:
                # A payload may contain gzip. Its members do not lead to the end of the file.
                self.guessed = not followed
                return at, damage.stream
            likely = at if likely is None and not damage.cut else likely
        self.guessed = True
        return None if likely is None else (likely, damage.stream)

    def _beginnings(self, start: int) -> Iterator[tuple[int, int]]:
        """Yield the places in the file, from byte `start` on, at which members begin. No place is
        tested twice.

        Each place comes with the number in the four bytes before it. If the previous member is
        whole, that number is the size in its trailer.
        """
        known = self._begun
        place = bisect.bisect_left(known, (start, 0))
        while True:
            if place == len(known):
                following = next((at for at in self._places if at >= start), None)
                if following is None:
                    return
                if not self._begins(following):
                    continue
                before = self._file.read(max(following - 4, 0), min(following, 4))
                known.append((following, int.from_bytes(before, "little")))
            yield known[place]
            place += 1

    def _probe(self, at: int) -> GzipStream:
        """A new view. Its first member begins at this byte of the file."""
        probe = self.fork()
        probe._probes = True
        probe._jump(at)
        probe.interruption = None
        probe._finished = False
        probe._ended = []
        probe._buffer = b""
        probe.position = probe.base = probe._begin = probe._crc = probe._sound_to = 0
        return probe

    def _begins(self, at: int) -> bool:
        """Whether a member begins at this byte of the file. The member must begin with a record's
        header, or be whole and not empty.
        """
        head = self._file.read(at, _HEADER_BYTES)
        if not _may_decode(head):
            return False
        probe = self._probe(at)
        if probe._header()[1].problem:
            return False
        length = header_length(probe.window(0, HEADER_BYTES))
        if length is not None and length <= MAX_LENGTH:
            return True
        return probe._member_ends_well() and probe._ended[0][0] > 0

    def _ends(self, at: int) -> tuple[bool, bool]:
        """Whether the member at `at` is whole and, if so, whether another member or the end of the
        file follows it.
        """
        if at not in self._whole:
            probe = self._probe(at)
            whole = probe._member_ends_well()
            following = probe._peek(len(MEMBER_HEADER))
            followed = not following.strip(b"\0") or following.startswith(MAGIC)
            self._whole[at] = whole, whole and followed
        return self._whole[at]

    def _member_ends_well(self) -> bool:
        """Whether the member decodes to its end and matches its trailer; False if the limit on such
        tests is reached.
        """
        while not self._stopped() and not self._ended and self._tries[0] > 0:
            self._tries[0] -= len(self._step(READ_BYTES)) + _FIRST_READ
        return bool(self._ended) and self._ended[0][1] is None


def _may_decode(head: bytes) -> bool:
    """A fast test whether a member with these first bytes can begin with a record's header."""
    header = parse_member_header(head)
    if header.optional or header.problem:
        return header.optional or header.unfinished
    try:
        # With one more byte, an error might come from the bytes after the header.
        zlib.decompressobj(WINDOW_BITS).decompress(head[header.size :], HEADER_BYTES - 1)
    except zlib.error:
        return False
    return True


def decoded_before(inflater: zlib._Decompress, data: bytes, limit: int) -> bytes:
    """The bytes that are decoded from `data` before the first error. zlib itself drops them."""
    parts = []
    for step in (4096, 64, 1):
        while data:
            attempt = inflater.copy()
            try:
                parts.append(attempt.decompress(data[:step], limit))
            except zlib.error:
                break
            inflater, data = attempt, data[step:]
    return b"".join(parts)


def trailer_problems(trailer: bytes, crc: int, length: int) -> list[str]:
    """Describe up to two differences between a member's trailer and the decoded data."""
    stored_crc, stored_length = TRAILER.unpack(trailer)
    problems = []
    if stored_crc != crc:
        problems.append(f"its CRC-32 should be 0x{stored_crc:08x}, found 0x{crc:08x}")
    if stored_length != length & 0xFFFFFFFF:
        problems.append(
            f"it should have {stored_length} bytes, found {length & 0xFFFFFFFF} (modulo 2^32)"
        )
    return problems

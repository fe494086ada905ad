"""Reading a shard: one pass, both checksums of every record, bounded memory.

:func:`scan` yields batches of records whose checksums hold, faults for damage, in stream order, and
at the end the totals of the file. A single damaged byte gives a single fault, and every other
record is delivered.

The bytes of a fault are read from the store again. If they are the same, the fault says so; if they
are not, the scan ends in a :class:`~tfrecreg.core.values.errors.TransferError`, and whoever needs
the file reads it again from its beginning.
"""

from __future__ import annotations

import itertools
from bisect import bisect
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import google_crc32c

from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.frame_scan import FrameScan, Stop
from tfrecreg.core.records.framing import FOOTER_BYTES, HEADER_BYTES, OVERHEAD, header_length, mask
from tfrecreg.core.records.gzip_writer import Compression
from tfrecreg.core.records.reading.tensorflow_reader import of_length, of_misread, of_rest
from tfrecreg.core.records.resync import (
    Offsets,
    Resolution,
    Resync,
    cut_detail,
    data_detail,
    data_holds,
    foreign_detail,
    gzip_rest,
    header_detail,
    huge_detail,
    lost,
    sound_records,
    trailing_detail,
)
from tfrecreg.core.records.scanner import make_frame_scanner
from tfrecreg.core.records.stream import (
    SNIFF_BYTES,
    ByteStream,
    Damage,
    HashedFile,
    PlainStream,
    sniff_compression,
)
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.values.findings import TensorflowOutcome

SAME_BYTES = "a second read of the store gave the same bytes"
"""The end of the text of such a fault."""

T = TypeVar("T")


def confirmed(events: Iterator[T], reader: Reader, compression: Compression) -> Iterator[T]:
    """The events of a scan; each fault was compared with a second read, if the reader has one."""
    # `isinstance` of a protocol takes a third as long as the scan of a small file.
    confirm: Callable[[int, int], bool] | None = getattr(reader, "confirm", None)
    if confirm is None:
        yield from events
        return
    for event in events:
        if isinstance(event, Fault):
            start, stop = _bytes_of(event, compression, reader.size)
            if confirm(start, stop):
                yield replace(event, detail=f"{event.detail}; {SAME_BYTES}")
                continue
        yield event


def _bytes_of(fault: Fault, compression: Compression, size: int) -> tuple[int, int]:
    """The bytes of the file that a fault is about."""
    if compression != "none":
        return 0, size  # offsets are in the decompressed stream: compare all bytes read
    length = fault.length if fault.length is not None else HEADER_BYTES
    return fault.offset, min(size, fault.offset + OVERHEAD + length)


BATCH_BYTES = 1 << 20
"""Number of bytes of the stream per read and per batch."""

HOLD_LIMIT = 64 << 20
"""Size in bytes above which a record is never held in memory: its checksum is computed in
pieces.
"""

_FIRST_BYTES = 1 << 12
"""Number of bytes of the first read after damage; later reads are larger."""

_MOST_FAULTS = 10_000
"""Number of faults in a shard after which each one covers everything up to the next sound
record.
"""

_HEAD_BYTES = 64
"""Number of bytes of a damaged record that the text of a fault may quote."""

Event = RecordBatch | Fault | StreamEnd

Outcome = Generator[RecordBatch | Fault, None, bool]
"""Yields the results for one place, and returns whether the stream continues after it."""


def scan(
    storage: Readable,
    path: str,
    *,
    declared: Compression | None = None,
    digest: bool = False,
    sha256: bool = False,
    known_offsets: Offsets | None = None,
    members: Sequence[tuple[int, int]] = (),
    list_members: bool = False,
    batch_bytes: int = BATCH_BYTES,
    hold_limit: int = HOLD_LIMIT,
) -> Generator[Event, None, None]:
    """Read one shard from its first byte to its last."""
    with storage.open(path) as reader:
        stream, file = open_stream(
            reader,
            digest=digest,
            sha256=sha256,
            declared=declared,
            members=members,
            list_members=list_members,
        )
        scanner = _Scanner(stream, known_offsets, batch_bytes, hold_limit)
        pending = _mismatch(declared, stream.compression, file) if file.end else None
        yield from confirmed(_all(scanner, pending), reader, stream.compression)
        yield StreamEnd(
            compression=stream.compression,
            file_bytes=file.end,
            stream_bytes=stream.position,
            records=scanner.records,
            payload_bytes=scanner.payload_bytes,
            blake3=file.hexdigest(),
            stream_blake3=stream.hexdigest(),
            sha256=file.sha256(),
            members=tuple(stream.members()),
        )


def _all(scanner: _Scanner, pending: Fault | None) -> Iterator[RecordBatch | Fault]:
    """The batches and faults of a scan, and the fault of the file as a whole."""
    misread = pending.tensorflow if pending is not None else None
    for event in scanner.events():
        if pending is not None:
            yield pending
        pending = None
        yield event
    if scanner.not_tfrecord is not None:
        told = misread or scanner.not_tfrecord.tensorflow
        yield replace(scanner.not_tfrecord, tensorflow=told)
    elif pending is not None:
        yield pending


def _mismatch(declared: Compression | None, found: Compression, file: HashedFile) -> Fault | None:
    if declared is None or declared == found:
        return None
    detail = f"compression should be `{declared}`, found `{found}`"
    return Fault("CRC006", 0, None, None, detail, of_misread(declared, file.read, file.end))


class _Scanner:
    """The state of one scan: its position, and its results so far."""

    def __init__(
        self, stream: ByteStream, known: Offsets | None, batch_bytes: int, hold_limit: int
    ) -> None:
        self.records = 0
        self.payload_bytes = 0
        self.not_tfrecord: Fault | None = None
        """Set if the file is not a TFRecord: then this is its only fault."""
        self._stream = stream
        self._batch_bytes = batch_bytes
        self._hold_limit = hold_limit
        self._resync = Resync(() if known is None else known)
        self._at = 0
        self._number = 0
        self._walk = make_frame_scanner()
        self._searched = False
        self._faults = 0
        # The loss of records in a damaged gzip member is reported once, for the member,
        self._told: set[int] = set()
        self._gap = False  # and then not again up to the next sound record.

    def events(self) -> Iterator[RecordBatch | Fault]:
        """Batches and faults, to the end of the stream."""
        stream = self._stream
        ahead = want = self._batch_bytes
        going = True
        while going:
            memory = stream.window(self._at, want)
            whole = len(memory) == want
            walked = self._walk(memory, self._at)
            if walked.starts:
                yield self._batch(memory, walked)
            head = memory[walked.end : walked.end + _HEAD_BYTES]
            faults = self._faults
            # Bytes that were read ahead are read again after the damage.
            want = ahead = min(2 * ahead, self._batch_bytes)
            if walked.stop is not Stop.SHORT:
                going = yield from self._damaged(stream, head, walked)
            elif not whole or self._beyond(walked):
                going = yield from self._stopped(head, len(memory) - walked.end, walked.length)
            elif walked.length is not None and walked.length > self._hold_limit:
                going = yield from self._large(head, walked.length)
            else:
                want = max(want, walked.needs)
            if self._faults > faults:
                want = ahead = min(_FIRST_BYTES, self._batch_bytes)

    def _beyond(self, walked: FrameScan) -> bool:
        """Whether the record reaches beyond the stream, as its own header says.

        Without a header this is unknown: the window may just end where the last record does.
        """
        end = self._stream.end
        return walked.length is not None and end is not None and self._at + walked.needs > end

    def _batch(self, memory: bytes, walked: FrameScan) -> RecordBatch:
        batch = RecordBatch(
            first=self._number,
            offsets=walked.offsets,
            lengths=walked.lengths,
            starts=walked.starts,
            memory=memory,
            searched=self._searched,
        )
        self._searched = False
        self._count(len(walked.starts), walked.payload_bytes)
        self._at += walked.end
        return batch

    def _count(self, records: int, payload_bytes: int) -> None:
        self._number += records
        self.records += records
        self.payload_bytes += payload_bytes
        self._gap = False

    def _fault(
        self,
        code: str,
        length: int | None,
        detail: str,
        tensorflow: TensorflowOutcome = TensorflowOutcome.STOPS,
        *,
        exact: bool = True,
    ) -> Iterator[Fault]:
        self._faults += 1
        if not self._gap:
            yield Fault(code, self._at, self._number, length, detail, tensorflow, exact)

    def _continue(self, to: int, lost: int, *, searched: bool = False) -> None:
        """Continue at `to`, after `lost` damaged records, or more if the index has more."""
        self._searched = self._searched or searched
        # An index with fewer belongs to another file.
        self._number = max(self._number + lost, self._resync.number(to) or 0)
        self._at = to

    def _damaged(self, stream: ByteStream, head: bytes, walked: FrameScan) -> Outcome:
        """Handle a record whose checksums do not hold. `stream` can still be read from its
        start.
        """
        at, length = self._at, walked.length
        data = walked.stop is Stop.DATA and length is not None
        damage = stream.inspect(at, at + (walked.needs if data else HEADER_BYTES))
        if damage is not None and damage.member in self._told:
            self._gap = True
        elif damage is not None:
            # The rest of its gzip member cannot be trusted: a wrong back-reference copies whole
            # records, checksums and all.
            self._drain()
            return (yield from self._interrupted(self._stream.interruption or damage, lost=True))
        many = self._resync.after_many(stream, at) if self._faults >= _MOST_FAULTS else None
        if walked.stop is Stop.DATA and length is not None:
            found = many or self._resync.after_data(stream, at, length)
            detail = data_detail(walked.crc, walked.stored, at, found)
            yield from self._fault("CRC002", length, detail, exact=found.exact)
        elif walked.stop is Stop.HUGE and length is not None:
            found = many or self._resync.after_huge(stream, at, length)
            detail = huge_detail(length, found) + lost(at, found)
            outcome = self._of_huge(length, found)
            yield from self._fault("CRC005", length, detail, outcome, exact=found.exact)
        else:
            found = many or self._resync.after_header(stream, at)
            if found.next is None:
                return (yield from self._no_more(head))
            size = found.next - at if found.length is None else found.length
            detail = header_detail(head, at, found)
            yield from self._fault("CRC001", size, detail, exact=found.exact)
        if found.next is None:
            self._continue(self._drain(), 1)
            return self._stream.interruption is not None
        self._continue(found.next, 1, searched=not found.exact)
        return True

    def _of_huge(self, length: int, found: Resolution) -> TensorflowOutcome:
        if found.length == length:
            return TensorflowOutcome.READS
        end = self._stream.end  # known of plain files
        left = 0 if end is None else end - self._at - HEADER_BYTES
        return of_length(length, left)

    def _no_more(self, head: bytes) -> Outcome:
        """Handle a damaged header that no record follows before the stream stops."""
        at = self._at
        stop = self._drain()
        interrupted = self._stream.interruption is not None
        if at == 0 and self._number == 0 and not interrupted and not self._gap:
            self.not_tfrecord = Fault("CRC008", 0, None, stop, foreign_detail(head, stop))
        elif interrupted or self._resync.number(at) is not None:
            detail = header_detail(head, at, Resolution(None))
            yield from self._fault("CRC001", stop - at, detail)
        else:
            yield from self._fault("CRC004", stop - at, trailing_detail(head, stop - at))
        self._continue(stop, 1)
        return interrupted

    def _stopped(self, head: bytes, left: int, length: int | None) -> Outcome:
        """Handle a stream that stops in the record, or right before it."""
        stream = self._stream
        if stream.interruption is not None:
            return (yield from self._interrupted(stream.interruption))
        if length is not None:
            detail = cut_detail(self._at, length, self._drain())
            yield from self._fault("CRC003", length, detail)
        elif self._at == 0 and any(head[4:8]):
            # Not even the first bytes of a header: its upper half is zero.
            detail = foreign_detail(head, left)
            self.not_tfrecord = Fault("CRC008", 0, None, left, detail, of_rest(left))
        elif left:
            yield from self._fault("CRC004", left, trailing_detail(head, left), of_rest(left))
        return False

    def _drain(self) -> int:
        """Read up to the place where the stream stops, and return its offset."""
        stream = self._stream
        if stream.end is not None:
            return stream.end
        while stream.window(stream.position, BATCH_BYTES):
            pass
        return stream.position

    def _interrupted(self, damage: Damage, *, lost: bool = False) -> Outcome:
        """Handle a stream that stops because a gzip member is damaged."""
        at = self._at
        left = None if lost or damage.tail is None else damage.stream - at + damage.tail
        outcome = TensorflowOutcome.STOPS if left is None else of_rest(left)
        lost = lost or (not damage.lossless and (damage.inside or damage.stream > at))
        going = self._stream.resume(at)
        behind = self._stream.position
        if lost and going and behind == at:
            lost = False  # All of it came from after the member's last record.
        elif going and behind > max(at, damage.stream):
            lost = True  # The trailer or the index tells of a member whose header is gone.
        if damage.member not in self._told:
            self._told.add(damage.member)
            known = going and (damage.lossless or behind != damage.stream)
            size = behind - at if lost and known else None
            offset, number = (at, self._number) if lost else (damage.stream, None)
            code, detail = "CRC009", damage.detail
            if not damage.misread:
                code = "CRC007"
                detail += gzip_rest(at, behind, lost=lost, going=going, known=known)
            yield Fault(code, offset, number, size, detail, outcome, exact=not lost)
        if going and (lost or not damage.lossless):
            self._gap = True
            self._continue(behind, 1 if lost else 0, searched=self._stream.guessed)
        return going

    def _large(self, head: bytes, length: int) -> Outcome:
        """Check a record that is too large for memory, in pieces."""
        origin = self._stream.fork()
        crc = 0
        place = self._at + HEADER_BYTES
        end = place + length
        footer = b""
        while place < end + FOOTER_BYTES:
            stop = end if place < end else end + FOOTER_BYTES
            piece = self._stream.window(place, min(BATCH_BYTES, stop - place))
            damage = self._stream.interruption
            if not piece and damage is not None and damage.lossless:
                yield from self._interrupted(damage)
            elif not piece:
                if damage is not None:
                    return (yield from self._interrupted(damage))
                return (yield from self._stopped(head, len(head), length))
            elif place < end:
                crc = google_crc32c.extend(crc, piece)
            else:
                footer += piece
            place += len(piece)
        stored = int.from_bytes(footer, "little")
        if mask(crc) != stored:
            walked = FrameScan.nowhere(length, mask(crc), stored)
            return (yield from self._damaged(origin, head, walked))
        yield RecordBatch(
            self._number, [self._at], [length], [0], b"", whole=False, searched=self._searched
        )
        self._searched = False
        self._count(1, length)
        self._at = end + FOOTER_BYTES
        return True


_NOWHERE = 1 << 62
_LARGE_BYTES = 8 << 20
"""Size in bytes of an only record above which its checksum does not decide on the compression."""
_TRIED = 64
"""Number of places that look like the beginning of a member and are tried."""


def open_stream(
    reader: Reader,
    *,
    digest: bool,
    sha256: bool = False,
    declared: Compression | None = None,
    members: Sequence[tuple[int, int]] = (),
    list_members: bool = False,
) -> tuple[ByteStream, HashedFile]:
    """The stream of an open file, and the file, which has its own digest after all of it
    was read.
    """
    file = HashedFile(reader, digest=digest, sha256=sha256)
    head = file.read(0, SNIFF_BYTES)
    if sniff_compression(head, declared) == "gzip" or (
        # An index with members belongs to a gzip file, even if nothing of the first member is left.
        head and not _begins_plain(file, head) and (len(members) or _is_headless(file, declared))
    ):
        from tfrecreg.core.records.gzip_reader import GzipStream

        stream = GzipStream(
            file, digest=digest, members=members, misread=True, list_members=list_members
        )
        return stream, file
    return PlainStream(file), file


def _begins_plain(file: HashedFile, head: bytes) -> bool:
    """Whether the first record's header leads to another or holds for its data: a header alone may
    have been written over the beginning of a gzip file.
    """
    length = header_length(head)
    if length is None:
        return False
    following = OVERHEAD + length
    behind = head[following : following + HEADER_BYTES]
    if len(behind) < HEADER_BYTES:
        behind = file.read(following, HEADER_BYTES)
    if header_length(behind) is not None or (following == file.end and length > _LARGE_BYTES):
        return True
    return following <= file.end and data_holds(PlainStream(file), 0, length)


def _is_headless(file: HashedFile, declared: Compression | None) -> bool:
    """Whether a file whose beginning is damaged is gzip of records."""
    from tfrecreg.core.records.gzip_access import member_places
    from tfrecreg.core.records.gzip_reader import GzipStream

    if declared == "none":
        return False
    places = member_places(file, 0)
    begin = list(itertools.islice(places, _TRIED))
    end = deque(begin, _TRIED)
    end.extend(places)
    gzip = GzipStream(file, digest=False)
    unknown = declared == "gzip" or header_length(file.read(0, HEADER_BYTES)) is None
    # A plain shard may hold gzip in its payloads, which does not lead to the end of the file; and
    # gzip may hold records uncompressed.
    if unknown and any(map(gzip.leads_on, begin)):
        return True
    found = _sound_bytes(gzip) if begin else 0
    if not found or declared == "gzip":
        return found > 0
    spans = sound_records(PlainStream(file), 0, _NOWHERE)
    inside = [bisect(spans, (at, _NOWHERE)) for at in end]
    outside = [
        at for at, past in zip(end, inside, strict=True) if not past or spans[past - 1][1] <= at
    ]
    if any(map(gzip.leads_on, outside)):
        return True
    return found > sum(stop - start for start, stop in spans)


def _sound_bytes(stream: ByteStream) -> int:
    """Number of bytes of the stream in sound records, including those after damage."""
    total = at = 0
    while True:
        total += sum(end - start for start, end in sound_records(stream, at, _NOWHERE))
        if stream.interruption is None or not stream.resume():
            return total
        at = stream.position

"""Reads a shard in one pass, in bounded memory, and verifies both checksums of every record.

:func:`scan` yields batches of sound records, and a fault for each damaged place, in the order of
the stream. Last, it yields the totals of the file. A single damaged byte gives a single fault, and
every other record is delivered.

If the file is in a store, damaged bytes are read a second time. If the second read gives the same
bytes, the fault says so. If the bytes differ, the scan raises a
:class:`~tfrecreg.core.values.errors.TransferError`, and the caller has to read the file again from
its beginning.
"""

from __future__ import annotations

import itertools
from array import array
from bisect import bisect
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

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
    data_holds,
    foreign_detail,
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
    sniff_compression,
)
from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.values.findings import TensorflowOutcome

SAME_BYTES = "a second read of the store gave the same bytes"
"""If a second read confirmed a fault, its detail ends with these words."""

BATCH_BYTES = 1 << 20
"""Bytes of the stream per read and per batch."""
HOLD_LIMIT = 64 << 20
"""A record above this size is never held in memory: its checksum is computed in pieces."""
_FIRST_BYTES = 1 << 12
"""Bytes of the first read after damage; later reads are larger."""
_MOST_FAULTS = 10_000
"""After this many faults in a shard, each further fault extends to the next sound record."""
_HEAD_BYTES = 64
"""The detail of a fault shows at most this many bytes of the damaged record."""

Event = RecordBatch | Fault | StreamEnd

Outcome = Generator[RecordBatch | Fault, None, bool]
"""Yields the events for one place; returns whether the stream continues after that place."""


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
        pending = None
        if file.end and declared is not None and declared != stream.compression:
            detail = f"compression should be `{declared}`, found `{stream.compression}`"
            outcome = of_misread(declared, file.read(0, SNIFF_BYTES))
            pending = Fault("CRC006", 0, None, None, detail, outcome)
        for event in _all(scanner, pending):
            if isinstance(event, Fault):
                event = _confirmed(event, reader, stream.compression)
            yield event
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


def _confirmed(fault: Fault, reader: Reader, compression: Compression) -> Fault:
    """The fault. If the file is in a store, the damaged bytes are read again and compared."""
    start, stop = 0, reader.size
    if compression == "none":  # in gzip, offsets are those of the decompressed stream
        length = fault.length if fault.length is not None else HEADER_BYTES
        start = fault.offset
        stop = min(stop, start + OVERHEAD + length)
    if not reader.confirm(start, stop):
        return fault
    return replace(fault, detail=f"{fault.detail}; {SAME_BYTES}")


def _all(scanner: _Scanner, pending: Fault | None) -> Iterator[RecordBatch | Fault]:
    """The batches and faults of a scan, and the `pending` fault, which concerns the whole file."""
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


class _Scanner:
    """The state of one scan: its position, and its results so far."""

    def __init__(
        self, stream: ByteStream, known: Offsets | None, batch_bytes: int, hold_limit: int
    ) -> None:
        self.records = 0
        self.payload_bytes = 0
        self.not_tfrecord: Fault | None = None
        """The only fault of a file that is not a TFRecord; None for other files."""
        self._stream = stream
        self._batch_bytes = batch_bytes
        self._hold_limit = hold_limit
        self._resync = Resync(() if known is None else known)
        self._at = 0
        self._number = 0
        self._walk = make_frame_scanner()
        self._searched = False
        self._faults = 0
        # The damaged gzip members that were reported. Each member is reported once,
        self._told: set[int] = set()
        self._gap = False  # and its lost records are not reported, up to the next sound record

    def events(self) -> Iterator[RecordBatch | Fault]:
        """Yield batches and faults until the stream ends."""
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
            elif not whole or (
                # The record's header tells the size. Without it the window may end where the last
                # record ends.
                walked.length is not None
                and stream.end is not None
                and self._at + walked.needs > stream.end
            ):
                going = yield from self._stopped(head, len(memory) - walked.end, walked.length)
            elif walked.length is not None and walked.length > self._hold_limit:
                going = yield from self._large(head, walked.length)
            else:
                want = max(want, walked.needs)
            if self._faults > faults:
                want = ahead = min(_FIRST_BYTES, self._batch_bytes)

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
        """Continue at `to`. Add `lost` to the record number, or more if the index shows more."""
        self._searched = self._searched or searched
        # An index with fewer records belongs to another file.
        self._number = max(self._number + lost, self._resync.number(to) or 0)
        self._at = to

    def _damaged(self, stream: ByteStream, head: bytes, walked: FrameScan) -> Outcome:
        """Handle a record with a wrong checksum. `stream` can be read from the record's start."""
        at, length = self._at, walked.length
        data = walked.stop is Stop.DATA and length is not None
        damage = stream.inspect(at, at + (walked.needs if data else HEADER_BYTES))
        if damage is not None and damage.member in self._told:
            self._gap = True
        elif damage is not None:
            # The rest of the record's gzip member cannot be trusted: a wrong back-reference can
            # copy whole records with their checksums.
            self._drain()
            return (yield from self._interrupted(self._stream.interruption or damage, lost=True))
        many = self._resync.after_many(stream, at) if self._faults >= _MOST_FAULTS else None
        if walked.stop is Stop.DATA and length is not None:
            found = many or self._resync.after_data(stream, at, length)
            detail = f"data checksum should be 0x{walked.crc:08x}, found 0x{walked.stored:08x}"
            detail += lost(at, found)
            yield from self._fault("CRC002", length, detail, exact=found.exact)
        elif walked.stop is Stop.HUGE and length is not None:
            found = many or self._resync.after_huge(stream, at, length)
            detail = huge_detail(length, found) + lost(at, found)
            outcome = TensorflowOutcome.READS
            if found.length != length:
                end = stream.end or 0  # known for plain files
                outcome = of_length(length, max(end - at - HEADER_BYTES, 0))
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

    def _no_more(self, head: bytes) -> Outcome:
        """Handle a damaged header if no other record follows before the stream stops."""
        at = self._at
        stop = self._drain()
        interrupted = self._stream.interruption is not None
        if at == 0 and not interrupted and not self._gap:
            self.not_tfrecord = Fault("CRC008", 0, None, stop, foreign_detail(head, stop))
        elif interrupted or self._resync.number(at) is not None:
            detail = header_detail(head, at, Resolution(None))
            yield from self._fault("CRC001", stop - at, detail)
        else:
            yield from self._fault("CRC004", stop - at, trailing_detail(head, stop - at))
        self._continue(stop, 1)
        return interrupted

    def _stopped(self, head: bytes, left: int, length: int | None) -> Outcome:
        """Handle a stream that stops inside a record, or right before a record."""
        stream = self._stream
        if stream.interruption is not None:
            return (yield from self._interrupted(stream.interruption))
        if length is not None:
            end = self._at + OVERHEAD + length
            detail = f"the record should end at byte {end}, but the stream ends at byte "
            yield from self._fault("CRC003", length, f"{detail}{self._drain()}")
        elif self._at == 0 and any(head[4:8]):
            # These are not even the first bytes of a header: the upper half of a length is zero.
            detail = foreign_detail(head, left)
            self.not_tfrecord = Fault("CRC008", 0, None, left, detail, of_rest(left))
        elif left:
            yield from self._fault("CRC004", left, trailing_detail(head, left), of_rest(left))
        return False

    def _drain(self) -> int:
        """Read up to the place where the stream stops, and return the offset of that place."""
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
            lost = False  # All lost bytes came after the last record of the member.
        elif going and behind > max(at, damage.stream):
            lost = True  # The trailer or the index shows that a member lost its header.
        if damage.member not in self._told:
            self._told.add(damage.member)
            known = going and (damage.lossless or behind != damage.stream)
            size = behind - at if lost and known else None
            offset, number = (at, self._number) if lost else (damage.stream, None)
            code, detail = "CRC009", damage.detail
            if not damage.misread:
                code = "CRC007"
                if not lost:
                    detail += "; no record is lost"
                elif not going:
                    detail += f"; the stream is lost from byte {at} on"
                elif known:
                    detail += f"; bytes {at} to {behind} of the stream are lost"
                    detail += " and count as one record"
                else:
                    detail += f"; an unknown part of the stream, from byte {at} on, is lost"
                    detail += " and counts as one record"
            yield Fault(code, offset, number, size, detail, outcome, exact=not lost)
        if going and (lost or not damage.lossless):
            self._gap = True
            self._continue(behind, 1 if lost else 0, searched=self._stream.guessed)
        return going

    def _large(self, head: bytes, length: int) -> Outcome:
        """Check a record piece by piece, because it is too large for memory."""
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
            nothing = array("q")
            walked = FrameScan(
                nothing, nothing, nothing, 0, 0, Stop.DATA, length, mask(crc), stored
            )
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
"""A file counts as plain if its first header states a record above this size that fills the file
exactly. The data may be damaged.
"""
_TRIED = 64
"""To detect gzip, at most this many possible members are tried at the beginning of the file, and as
many at its end.
"""


def open_stream(
    reader: Reader,
    *,
    digest: bool,
    sha256: bool = False,
    declared: Compression | None = None,
    members: Sequence[tuple[int, int]] = (),
    list_members: bool = False,
) -> tuple[ByteStream, HashedFile]:
    """Return the stream of an open file, and the file as a :class:`HashedFile`. The digest of the
    file is known once the whole file was read.
    """
    file = HashedFile(reader, digest=digest, sha256=sha256)
    head = file.read(0, SNIFF_BYTES)
    if sniff_compression(head, declared) == "gzip" or (
        # If the index has members, the file is gzip, even if nothing of the first member is left.
        head and not _begins_plain(file, head) and (len(members) or _is_headless(file, declared))
    ):
        from tfrecreg.core.records.gzip_reader import GzipStream

        stream = GzipStream(
            file, digest=digest, members=members, misread=True, list_members=list_members
        )
        return stream, file
    return ByteStream(file), file


def _begins_plain(file: HashedFile, head: bytes) -> bool:
    """Whether a file begins with a plain record. This is true if another header follows the record,
    if the record is large and ends with the file, or if the data checksum is correct.
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
    return following <= file.end and data_holds(ByteStream(file), 0, length)


def _is_headless(file: HashedFile, declared: Compression | None) -> bool:
    """Whether a file with a damaged beginning is gzip with records."""
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
    # Gzip in the payloads of a plain shard does not lead to the end of the file. A gzip file may
    # have blocks without compression, in which records can be found.
    if unknown and any(map(gzip.leads_on, begin)):
        return True
    found = _sound_bytes(gzip) if begin else 0
    if not found or declared == "gzip":
        return found > 0
    spans = sound_records(ByteStream(file), 0, _NOWHERE)
    inside = [bisect(spans, (at, _NOWHERE)) for at in end]
    outside = [
        at for at, past in zip(end, inside, strict=True) if not past or spans[past - 1][1] <= at
    ]
    if any(map(gzip.leads_on, outside)):
        return True
    return found > sum(stop - start for start, stop in spans)


def _sound_bytes(stream: ByteStream) -> int:
    """Total size in bytes of the sound records of the stream, including records after damage."""
    total = at = 0
    while True:
        total += sum(end - start for start, end in sound_records(stream, at, _NOWHERE))
        if stream.interruption is None or not stream.resume():
            return total
        at = stream.position

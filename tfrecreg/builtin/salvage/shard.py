"""Salvages one shard: turns the scanner's batches and faults into its kept, repaired and cut parts.

Writes a clean shard and a quarantine.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import NamedTuple

import google_crc32c

from tfrecreg.builtin.salvage.model import (
    Cut,
    HashingFile,
    Piece,
    ShardDamage,
    ShardResult,
    ShardStatus,
    StoredFile,
    What,
    joined,
    look,
)
from tfrecreg.builtin.salvage.original import IndexMatch, Original
from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.framing import (
    FOOTER_BYTES,
    HEADER_BYTES,
    MAX_LENGTH,
    OVERHEAD,
    frame_header,
    mask,
)
from tfrecreg.core.records.gzip_writer import Compression, GzipEncoder
from tfrecreg.core.records.hashing import record_digest
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reader import HOLD_LIMIT, Event, scan
from tfrecreg.core.storage.interface import Reader, Storage
from tfrecreg.core.values.errors import StorageError, TfrecregError

_NO_DAMAGE = frozenset({"CRC006", "CRC009"})
"""Codes for files that are valid, but that other readers misread. The clean shard is
recompressed."""
_HEADER_CODES = frozenset({"CRC001", "CRC005"})
"""Damage that may concern only a header."""

_DOUBT = (
    "the checksums are valid, but these records may come from inside the payload of a lost record"
)

_UNKNOWN = "its checksums match, but the index has no such record"

MOST_CUTS = 10_000
"""Maximum number of cuts listed per shard; every cut is counted and quarantined."""
QUARANTINE = ".quarantine"
"""Suffix of a shard's quarantine."""

DOUBTFUL = ".doubtful"
"""Suffix of the file with the doubtful records of a shard."""


def salvage_shard(shard: Shard, name: str, out: Storage) -> ShardResult:
    """Write the undamaged records of one shard, and the bytes that were cut out, into `out`."""
    index, reason = _read_index(shard)
    matches = IndexMatch(index) if index is not None else None
    clean, rest = HashingFile(out, name), HashingFile(out, name + QUARANTINE)
    apart = HashingFile(out, name + DOUBTFUL)
    try:
        with shard.storage.open(shard.path) as reader:
            hints, trusted, damage = _survey(shard, index, reader)
            if damage.refusal:
                return ShardResult(name=name, status="refused", reason=damage.refusal, exact=False)
            members = hints.members if hints is not None else ()
            original = Original(reader, declared=shard.declared, members=members)
            # The clean shard's compression follows its name, even if the original's did not.
            gzip = original.compression == "gzip" or (name.endswith(".gz") and reader.size > 0)
            kind: Compression = shard.declared or ("gzip" if gzip else "none")
            unchanged = not damage.damaged and kind == original.compression == "gzip"
            if unchanged:
                for piece in original.file(0, reader.size):
                    clean.write(piece)
            elif kind == "gzip":
                clean.gzip, apart.gzip = GzipEncoder(), GzipEncoder()
            work = _Salvage(
                shard,
                original,
                matches,
                clean,
                rest,
                apart,
                copied=unchanged,
                trusted=trusted,
                doubts=() if trusted else damage.doubts,
            )
            with closing(_scan(shard, hints, digest=True)) as events:
                end = work.run(events)
        return work.result(end, reason)
    except StorageError as error:
        if clean.failed or rest.failed or apart.failed:
            raise
        return ShardResult(name=name, status="unreadable", reason=error.message, exact=False)
    finally:
        for file in (clean, rest, apart):
            # Deletes unfinished files; the original error matters more than a cleanup error.
            with suppress(StorageError):
                file.abort()


def missing_shard(shard: Shard) -> ShardResult:
    """The result for a missing shard of a manifest; `shard` describes it as if it existed."""
    assert shard.entry is not None
    index, reason = _read_index(shard)
    return ShardResult(
        name=shard.path,
        status="missing",
        reason=reason,
        lost=shard.entry.records,
        lost_keys=tuple(index.keys()) if index is not None else None,
    )


def _read_index(shard: Shard) -> tuple[Index | None, str]:
    if shard.index is None:
        return None, ""
    try:
        return load_index(shard.storage, shard.index), ""
    except TfrecregError as error:
        return None, f"the index is not usable: {error.message}"


def _scan(shard: Shard, hints: Index | None, *, digest: bool) -> Generator[Event, None, None]:
    return scan(
        shard.storage,
        shard.path,
        declared=shard.declared,
        digest=digest,
        known_offsets=hints.offsets() if hints is not None else None,
        members=hints.members if hints is not None else (),
    )


def _survey(
    shard: Shard, index: Index | None, reader: Reader
) -> tuple[Index | None, bool, ShardDamage]:
    """The index if its offsets help, whether only records in the index belong to the shard, and
    the damage.

    An index knows where records begin, but not which bytes were since removed or inserted. So a
    damaged shard is scanned with and without it. The scan that finds more of its records counts.
    """
    if index is None:
        with closing(_scan(shard, None, digest=False)) as events:
            return None, False, look(events, reader)
    hints = None
    seen, damage = _look(shard, None, index, reader)
    if damage.damaged or damage.refusal:
        seen_with_it, damage_with_it = _look(shard, index, index, reader)
        more = seen_with_it.sure and seen_with_it.known > seen.known
        if more or damage.refusal:
            hints, seen, damage = index, seen_with_it, damage_with_it
    return hints, damage.damaged and seen.sure, damage


def _look(
    shard: Shard, hints: Index | None, index: Index, reader: Reader
) -> tuple[IndexMatch, ShardDamage]:
    seen = IndexMatch(index)
    with closing(_scan(shard, hints, digest=False)) as events:
        return seen, look(_matching(events, seen), reader)


def _matching(events: Iterable[Event], matches: IndexMatch) -> Iterator[Event]:
    """Yield each event after comparing its records with the index."""
    for event in events:
        if isinstance(event, RecordBatch) and event.whole:
            matches.unknown += int((~matches.match(event.first, event.payloads())).sum())
        yield event


class _Stretch(NamedTuple):
    """Bytes of the stream that belong to no valid record, and the fault that the scanner
    reported."""

    fault: Fault
    start: int
    stop: int


class _Salvage:
    """The salvage of one shard."""

    def __init__(
        self,
        shard: Shard,
        original: Original,
        matches: IndexMatch | None,
        clean: HashingFile,
        quarantine: HashingFile,
        apart: HashingFile,
        *,
        copied: bool,
        trusted: bool,
        doubts: Sequence[tuple[int, int]],
    ) -> None:
        self._kept = self._repaired = self._unproven = self._doubtful = 0
        self._cuts: list[Cut] = []  # the first `MOST_CUTS`, in order of the stream
        self._cuts_total = 0
        self._lost = 0  # in all cuts
        self._exact = True  # whether `_lost` is more than a lower bound
        self._shard = shard
        self._original = original
        self._matches = matches
        self._output = clean
        self._clean = None if copied else clean
        self._quarantine = quarantine
        self._apart = apart
        self._trusted = trusted
        self._doubts = deque(doubts)
        self._seen: set[bytes] = set()  # digests of the records of damaged gzip
        self._searched = 0  # byte of the stream up to which cut bytes were searched
        self._at = 0  # byte of the stream up to which everything is done
        self._pending: list[list[Fault]] = []  # the faults after that byte, a list per stretch
        self._last: Fault | None = None  # the last fault of all
        self._before: Fault | None = None  # the last fault before the pending ones

    def run(self, events: Iterable[Event]) -> StreamEnd:
        """Process all events of a scan. Return the last event, which is the end of the stream."""
        end = None
        for event in events:
            if isinstance(event, RecordBatch):
                self._cut_before(event.offsets[0])
                self._catch_up(event.offsets[0])
                for part in self._parts(event):
                    self._keep(part)
                self._at = _end(event)
            elif isinstance(event, StreamEnd):
                end = event
            elif event.code not in _NO_DAMAGE:
                self._add_fault(event)
        assert end is not None  # the last event of every scan
        self._cut_before(end.stream_bytes)
        return end

    def result(self, end: StreamEnd, reason: str) -> ShardResult:
        """Close the files."""
        quarantine = self._quarantine.close() if self._quarantine.bytes else None
        doubts = self._apart.close() if self._doubtful else None
        clean = self._output.close()
        shard, matches = self._shard, self._matches
        original = StoredFile(path=shard.name, bytes=end.file_bytes, blake3=end.blake3 or "")
        lost, exact = self._lost, self._exact
        keys: tuple[str, ...] | None = None
        here = self._kept + self._repaired
        if matches is not None and matches.fits:
            keys = matches.lost()
            lost, exact = len(keys), matches.unknown == 0
        elif shard.entry is not None and here <= shard.entry.records:
            lost, exact = shard.entry.records - here, True
        if matches is not None and not matches.fits:
            reason = f"the index belongs to another shard: it has {matches.known} of {here} records"
        sound = not self._cuts_total and not lost and exact and clean.blake3 == original.blake3
        status: ShardStatus = "sound" if sound else "salvaged"
        return ShardResult(
            name=clean.path,
            status=status,
            reason=reason,
            compression=end.compression,
            kept=self._kept,
            repaired=self._repaired,
            lost=lost,
            exact=exact,
            unproven=self._unproven,
            doubtful=self._doubtful,
            lost_keys=keys,
            original=original,
            clean=clean,
            quarantine=quarantine,
            doubts=doubts,
            cuts=tuple(self._cuts),
            cuts_total=self._cuts_total,
        )

    def _add(self, cut: Cut) -> None:
        self._cuts_total += 1
        self._lost += cut.lost
        self._exact = self._exact and cut.exact
        if len(self._cuts) < MOST_CUTS:
            self._cuts.append(cut)

    @property
    def _code(self) -> str:
        return "CRC007" if self._last is None else self._last.code

    def _add_fault(self, fault: Fault) -> None:
        # Gzip damage that costs no record does not show where the stretch before it ends.
        if fault.code == "CRC007" and fault.record is None and self._pending:
            self._pending[-1].append(fault)
        else:
            self._pending.append([fault])
        self._last = fault

    def _keep(self, batch: RecordBatch) -> None:
        """Write a batch to the clean shard, and doubtful records elsewhere. All checksums match."""
        start, stop = batch.offsets[0], _end(batch)
        gzip = self._clean is not None and self._original.compression == "gzip"
        unsound = gzip and self._original.unsound(start, stop)
        if self._in_doubt(start):
            first = batch.starts[0] - HEADER_BYTES
            held = [batch.memory[first : first + stop - start]]
            data = held if batch.whole else self._original.stream(start, stop)
            self._set_apart(start, stop, len(batch), data)
            return
        if not batch.whole:
            known = self._matches and self._matches.match_large(batch.first, batch.lengths[0])
            self._tick(int(known or 0), 1, unsound)
            self._kept += 1
            if self._clean is not None:
                self._copy(self._clean, start, batch.lengths[0])
            return
        refused = self._match_batch(batch, unsound)
        self._kept += len(batch) - len(refused)
        if self._clean is None:
            return
        if not gzip and not refused:
            first = batch.starts[0] - HEADER_BYTES
            self._clean.write(batch.memory[first : first + stop - start])
            return
        for place, begin in enumerate(batch.starts):
            length = batch.lengths[place]
            frame = batch.memory[begin - HEADER_BYTES : begin + length + FOOTER_BYTES]
            at = batch.offsets[place]
            if place not in refused:
                self._clean.write(frame)
                self._clean.end_record()
            elif not self._trusted:
                self._set_apart(at, at + len(frame), 1, [frame])
            else:
                pieces = self._quarantine.add([frame], "stream", at)
                where = (at, len(frame), batch.first + place)
                self._add(Cut(self._code, "unknown record", *where, 0, True, _UNKNOWN, pieces))

    def _match_batch(self, batch: RecordBatch, unsound: bool) -> frozenset[int]:
        """Match the batch with the index. Returns the positions of doubtful records."""
        if self._matches is not None:
            known = self._matches.match(batch.first, batch.payloads())
            if self._trusted:
                # Damaged gzip may repeat whole earlier records with their checksums. Where bytes
                # were lost or moved, a record from inside a payload may appear.
                return frozenset((~known).nonzero()[0].tolist())
        repeated = self._repeated(batch, unsound=unsound)
        ticked = 0 if self._matches is None else int(known.sum())
        self._tick(ticked, len(batch) - len(repeated), unsound)
        return repeated

    def _repeated(self, batch: RecordBatch, *, unsound: bool) -> frozenset[int]:
        """Positions of the records that damaged gzip may have repeated: the records come from a
        damaged gzip member and equal an earlier record.
        """
        if self._clean is None or self._original.compression == "none":
            return frozenset()
        found = set()
        for place, payload in enumerate(batch.payloads()):
            digest = record_digest(payload)
            if unsound and digest in self._seen:
                found.add(place)
            self._seen.add(digest)
        return frozenset(found)

    def _parts(self, batch: RecordBatch) -> Iterator[RecordBatch]:
        """Split a batch where a doubtful range of the stream begins or ends."""
        stop = _end(batch)
        near = itertools.takewhile(lambda doubt: doubt[0] < stop, self._doubts)
        marks = {mark for doubt in near for mark in doubt}
        cuts = sorted({0, len(batch), *(bisect_left(batch.offsets, mark) for mark in marks)})
        if len(cuts) == 2:
            yield batch
            return
        for start, end in itertools.pairwise(cuts):
            yield replace(
                batch,
                first=batch.first + start,
                offsets=batch.offsets[start:end],
                lengths=batch.lengths[start:end],
                starts=batch.starts[start:end],
            )

    def _in_doubt(self, start: int) -> bool:
        while self._doubts and self._doubts[0][1] <= start:
            self._doubts.popleft()
        return bool(self._doubts) and self._doubts[0][0] <= start

    def _set_apart(self, start: int, stop: int, records: int, data: Iterable[bytes]) -> None:
        """Write doubtful records both to the quarantine and to the file of doubtful records."""
        pieces = self._quarantine.add(self._copied(data), "stream", start)
        self._doubtful += records
        where = (start, stop - start, None)
        self._add(Cut(self._code, "doubtful records", *where, 0, False, _DOUBT, pieces))

    def _copied(self, data: Iterable[bytes]) -> Iterator[bytes]:
        for piece in data:
            self._apart.write(piece)
            yield piece
        self._apart.end_record()

    def _tick(self, known: int, of: int, unsound: bool) -> None:
        if self._matches is not None:
            self._matches.unknown += of - known
        if unsound:
            self._unproven += of - known

    def _cut_before(self, to: int) -> None:
        """Cut out the bytes before the offset `to`. A sound record starts there, or the stream
        ends.

        The first fault is the reason for the cut. A later fault is the reason only for the bytes
        from that fault on. The scanner reports gzip damage only once. So if the bytes before `to`
        have no fault of their own, the last gzip damage is the reason.
        """
        start, self._at = self._at, to
        self._catch_up(start)
        heard, self._pending = self._pending, []
        first = heard[0][0] if heard else None
        reason, self._before = self._before or first, self._last
        if reason is not None and start < to and (first is None or start < first.offset):
            heard.insert(0, [reason])
        run: list[_Stretch] = []
        for place, faults in enumerate(heard):
            stop = max(start, min(to, heard[place + 1][0].offset)) if heard[place + 1 :] else to
            if start < stop and self._repairs(faults[0], start, stop):
                self._cut_run(run)
                run = []
                self._repair(faults[0], start, stop)
            else:
                run.append(_Stretch(faults[0], start, max(start, stop)))
            start = max(start, stop)
            run += [_Stretch(fault, start, start) for fault in faults[1:]]
        self._cut_run(run)

    def _catch_up(self, start: int) -> None:
        """Copy into the quarantine the damaged gzip members that the scanner has already passed."""
        for begin, end in self._original.catch_up(start):
            pieces = self._quarantine.add(self._original.file(begin, end), "file", begin)
            detail = "" if self._last is None else self._last.detail
            self._add(Cut("CRC007", "gzip member", start, 0, None, 0, False, detail, pieces))

    def _repairs(self, fault: Fault, start: int, stop: int) -> bool:
        """Whether only the header of a record is damaged. If so, the record counts as found."""
        length = stop - start - OVERHEAD
        possible = fault.code in _HEADER_CODES and 0 <= length <= MAX_LENGTH
        if length == HEADER_BYTES - FOOTER_BYTES and not fault.exact:
            return False  # the data may be the next record's header, which has the same checksum
        if self._clean is None or not possible or self._in_doubt(start):
            return False
        if not self._original.holds(start, length):
            return False
        known = False
        if self._matches is not None and fault.record is not None:
            if length <= HOLD_LIMIT:
                payload = self._original.payload(start, length)
                known = bool(self._matches.match(fault.record, [payload])[0])
            else:
                known = self._matches.match_large(fault.record, length)
        if self._trusted and not known:
            return False
        self._tick(int(known), 1, False)
        return True

    def _repair(self, fault: Fault, start: int, stop: int) -> None:
        """Keep a record, give it a correct header, and put the damaged header into quarantine."""
        assert self._clean is not None
        length = stop - start - OVERHEAD
        header = self._original.stream(start, start + HEADER_BYTES)
        pieces = self._quarantine.add(header, "stream", start)
        self._copy(self._clean, start, length)
        self._repaired += 1
        where = (start, HEADER_BYTES, fault.record)
        self._add(Cut(fault.code, "header", *where, 0, True, fault.detail, pieces))

    def _cut_run(self, run: Sequence[_Stretch]) -> None:
        """Cut out consecutive ranges, but keep the valid records that a trusted index has. Without
        a trusted index, also copy valid records to the file of doubtful records.
        """
        left = deque(run)
        for at, frame in self._sound_in(run):
            if not self._trusted:
                self._doubtful += 1  # the bytes of the frame are in quarantine already
                for _ in self._copied([frame]):
                    pass
            elif self._clean is not None:
                end = at + len(frame)
                # For gzip, a damaged member is cut out of the file, not of the stream.
                whole = self._original.compression == "none"
                if whole and run[0].start <= at < run[-1].stop:
                    while left and left[0].stop <= at:
                        self._cut_out(*left.popleft())
                    if left and left[0].start < at:
                        self._cut_out(left[0].fault, left[0].start, at)
                    for _ in self._original.stream(at, end):
                        pass
                    while left and left[0].stop <= end:
                        left.popleft()
                    if left:
                        left[0] = left[0]._replace(start=max(end, left[0].start))
                self._clean.write(frame)
                self._clean.end_record()
                self._kept += 1
        for stretch in left:
            self._cut_out(*stretch)

    def _sound_in(self, run: Sequence[_Stretch]) -> Iterable[tuple[int, bytes]]:
        """Offset and frame of each valid record in the bytes that the clean shard will lack. If the
        index is trusted, records that are not in the index are left out.
        """
        # No record begins in trailing bytes, but the record before may end there.
        stretches = [each for each in run if each.fault.code != "CRC004"]
        if self._clean is None or not stretches:
            return ()
        start, stop = stretches[0].start, run[-1].stop
        reach = self._original.decoded(start, stop)
        # Skip bytes that were searched because damaged gzip decoded beyond a stretch. A record's
        # header may have been read as 8 bytes of data and their checksum.
        begin, self._searched = self._searched, max(self._searched, reach)
        found = self._original.sound(max(start - HEADER_BYTES, begin), reach)
        matches = self._matches
        if matches is None or not self._trusted:
            return found
        return (
            (at, frame)
            for at, frame in found
            if matches.match(None, [frame[HEADER_BYTES:-FOOTER_BYTES]])[0]
        )

    def _cut_out(self, fault: Fault, start: int, stop: int) -> None:
        """Put these bytes of the stream into quarantine; damaged gzip stays compressed."""
        pieces: tuple[Piece, ...] = ()
        gzip = fault.code == "CRC007"
        at = max(start, self._original.passed)
        look = max(stop, start + 1) if gzip else stop
        while at < look:
            damage = self._original.damage(at, look)
            if damage is not None and not gzip and stop <= damage.stream:
                damage = None  # these bytes can be read, and records may follow in the member
            sound = stop if damage is None else min(stop, max(at, damage.begin))
            pieces += self._quarantine.add(self._original.stream(at, sound), "stream", at)
            if damage is None:
                break
            mine = fault.detail.startswith(damage.detail)
            if start == stop and (damage.lossless or not mine):
                break  # damage that costs no byte of the stream is not cut out
            begin, end, behind = self._original.leave(damage)
            pieces += self._quarantine.add(self._original.file(begin, end), "file", begin)
            if behind is None or start == stop:
                break
            # This may lie before `at`: damage may decode to more bytes than the member had.
            at = behind
        what: What = "gzip member" if gzip else "stretch"
        # Bytes of the file that do not begin a member may have been a member.
        lost, exact = int(start < stop or (gzip and fault.record is not None)), not pieces
        if fault.code == "CRC004":
            what, lost = "trailing bytes", 0
        elif fault.length == stop - start - OVERHEAD and fault.code in {"CRC001", "CRC002"}:
            what, exact = "record", True
        where = (start, stop - start, fault.record)
        self._add(Cut(fault.code, what, *where, lost, exact, fault.detail, joined(pieces)))

    def _copy(self, clean: HashingFile, start: int, length: int) -> None:
        """Copy a record's payload into the clean shard in pieces, with correct checksums."""
        clean.write(frame_header(length))
        crc = 0
        end = start + HEADER_BYTES + length
        for piece in self._original.stream(start + HEADER_BYTES, end):
            crc = google_crc32c.extend(crc, piece)
            clean.write(piece)
        footer = b"".join(self._original.stream(end, end + FOOTER_BYTES))
        if mask(crc) != int.from_bytes(footer, "little"):
            raise StorageError(
                f"`{self._shard.name}` changed while it was read: the record at byte {start} now "
                "has other bytes"
            )
        clean.write(footer)
        clean.end_record()


def _end(batch: RecordBatch) -> int:
    """The offset in the stream at which the batch's last record ends."""
    return batch.offsets[-1] + OVERHEAD + batch.lengths[-1]

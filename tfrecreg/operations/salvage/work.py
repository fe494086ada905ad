"""From the scanner's batches and faults to what is kept, repaired and cut out of one shard."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import google_crc32c

from tfrecreg.digests import record_digest
from tfrecreg.errors import StorageError
from tfrecreg.operations.salvage.files import CleanShard, Quarantine
from tfrecreg.operations.salvage.model import Cut, Piece, What
from tfrecreg.operations.salvage.original import Original
from tfrecreg.operations.salvage.roll import Roll
from tfrecreg.progress import Progress
from tfrecreg.records import HOLD_LIMIT, MAX_LENGTH, OVERHEAD, Fault, RecordBatch, StreamEnd
from tfrecreg.records.framing import FOOTER_BYTES, HEADER_BYTES, frame_header, mask
from tfrecreg.records.reader import Event
from tfrecreg.text import safe

__all__ = ["MOST_CUTS", "Work"]

MOST_CUTS = 10_000
"""So many cuts of a shard are listed; all of them are counted and quarantined."""

_NO_DAMAGE = frozenset({"CRC006", "CRC009"})
"""The bytes are sound, and are misread by others: the clean shard is compressed anew."""
_HEADER_CODES = frozenset({"CRC001", "CRC005"})
"""Damage to nothing but a header, perhaps."""
_DOUBT = (
    "the checksums hold; whether these are records of the shard, or of the payload of one that is "
    "lost, nothing tells"
)


class Work:
    """One shard's salvage.

    Args:
        name: of the shard, for messages.
        original: the damaged file.
        clean: where sound records go; None to count only.
        quarantine: where all else goes.
        doubtful: where records go as well that may be none of the shard's; None to count only.
        roll: the records of its index, where there is one.
        trusted: behind damage, what the index does not know is no record of the shard.
        doubts: stretches of the stream, ascending, whose records may be those of the payload of
            a damaged one.
    """

    def __init__(
        self,
        name: str,
        original: Original,
        clean: CleanShard | None,
        quarantine: Quarantine,
        doubtful: CleanShard | None,
        roll: Roll | None,
        *,
        trusted: bool = False,
        doubts: Sequence[tuple[int, int]] = (),
    ) -> None:
        self.kept = self.repaired = self.unproven = self.doubtful = 0
        self.lost = 0
        """Records that were lost, counted by what was cut out."""
        self.exact = True
        """Whether that is the number, not the least."""
        self.cuts: list[Cut] = []
        self.cuts_total = 0
        self.stranger = ""
        """Why the file is no TFRecord; empty where it is one."""
        self._name = name
        self._original = original
        self._clean = clean
        self._quarantine = quarantine
        self._doubtful = doubtful
        self._roll = roll
        self._trusted = trusted
        self._doubts = deque(doubts)
        self._seen: set[bytes] = set()  # digests of what came from damaged members of gzip
        self._at = 0  # byte of the stream up to which all is settled
        self._pending: list[Fault] = []  # what was heard of the bytes from there on,
        self._last: Fault | None = None  # and the last that was ever heard

    def run(self, events: Iterable[Event], progress: Progress) -> StreamEnd | None:
        """Take in a whole scan; what it said at its end, None where the file is no TFRecord."""
        end = None
        for event in events:
            if isinstance(event, RecordBatch):
                self._settle(event.offsets[0])
                self._keep(event)
                self._at = _end(event)
                progress.advance(len(event), sum(event.lengths))
            elif isinstance(event, StreamEnd):
                end = event
            elif event.code == "CRC008":
                self.stranger = event.detail
            elif event.code not in _NO_DAMAGE:
                self._hear(event)
        if end is None or self.stranger:
            return None
        self._settle(end.stream_bytes)
        if self._clean is not None:
            self._clean.close()
        if self._doubtful is not None and self.doubtful:
            self._doubtful.close()
        return end

    def _hear(self, fault: Fault) -> None:
        # Damage to gzip that costs no record says nothing of where the one before ends.
        if fault.code != "CRC007" or fault.record is not None:
            self._settle(fault.offset)
        self._pending.append(fault)
        self._last = fault

    def _keep(self, batch: RecordBatch) -> None:
        """Records whose checksums hold."""
        start, stop = batch.offsets[0], _end(batch)
        gzip = self._clean is not None and self._original.compression == "gzip"
        unsound = gzip and self._original.unsound(start, stop)
        if self._in_doubt(start):
            self._set_apart(start, stop, len(batch), self._original.stream(start, stop))
            return
        if not batch.whole:
            self._tick(int(self._meet_large(batch.first, batch.lengths[0])), 1, unsound)
            self.kept += 1
            if self._clean is not None:
                self._copy(self._clean, start, batch.lengths[0])
            return
        refused = self._meet(batch, unsound)
        self.kept += len(batch) - len(refused)
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
            if place in refused and self._roll is None:
                self._set_apart(at, at + len(frame), 1, [frame])
            elif place in refused:
                self._refuse(at, batch.first + place, frame)
            else:
                self._clean.write(frame)
                self._clean.end_record()

    def _meet(self, batch: RecordBatch, unsound: bool) -> frozenset[int]:
        """Tick the batch off the roll; which of its records are none of the shard's, or may be."""
        if self._roll is None:
            repeated = self._repeated(batch) if unsound else frozenset()
            self._tick(0, len(batch) - len(repeated), unsound)
            return repeated
        known = self._roll.meet(batch.first, batch.payloads())
        if self._trusted and (unsound or self._last is not None):
            # Damaged gzip repeats what came before, whole records with their checksums among it;
            # and behind damage a record may turn up that lay in the payload of another.
            return frozenset((~known).nonzero()[0].tolist())
        self._tick(int(known.sum()), len(batch), unsound)
        return frozenset()

    def _repeated(self, batch: RecordBatch) -> frozenset[int]:
        """Records that came before: damaged gzip can repeat them whole."""
        found = set()
        for place, payload in enumerate(batch.payloads()):
            digest = record_digest(payload)
            if digest in self._seen:
                found.add(place)
            self._seen.add(digest)
        return frozenset(found)

    def _in_doubt(self, start: int) -> bool:
        while self._doubts and self._doubts[0][1] <= start:
            self._doubts.popleft()
        return bool(self._doubts) and self._doubts[0][0] <= start

    def _set_apart(self, start: int, stop: int, records: int, data: Iterable[bytes]) -> None:
        """Records that may be none of the shard's: into quarantine, and into a file of their own."""
        pieces = self._quarantine.add(self._copied(data), "stream", start)
        self.doubtful += records
        code = "CRC007" if self._last is None else self._last.code
        where = (start, stop - start)
        self._cut(code, "doubtful records", where, None, 0, False, _DOUBT, pieces)

    def _copied(self, data: Iterable[bytes]) -> Iterator[bytes]:
        for piece in data:
            if self._doubtful is not None:
                self._doubtful.write(piece)
            yield piece
        if self._doubtful is not None:
            self._doubtful.end_record()

    def _meet_large(self, number: int | None, length: int) -> bool:
        return (
            self._roll is not None and number is not None and self._roll.meet_large(number, length)
        )

    def _tick(self, known: int, of: int, unsound: bool) -> None:
        if self._roll is not None:
            self._roll.strangers += of - known
        if unsound:
            self.unproven += of - known

    def _refuse(self, offset: int, number: int, frame: bytes) -> None:
        pieces = self._quarantine.add([frame], "stream", offset)
        code = "CRC007" if self._last is None else self._last.code
        detail = "its checksums hold, and the index knows no such record"
        self._cut(code, "unknown record", (offset, len(frame)), number, 0, True, detail, pieces)

    def _settle(self, to: int) -> None:
        """Cut out what lies before `to`, where a sound record starts, or something else is wrong.

        What was heard first tells why, for more is only heard of bytes that follow. Where nothing
        was, the last damage to gzip reaches as far: the scanner does not repeat itself.
        """
        start, self._at = self._at, to
        faults, self._pending = self._pending, []
        if not faults and start < to and self._last is not None:
            faults = [self._last]
        for fault in faults:
            if start >= to or not self._repair(fault, start, to):
                start = self._rescue(fault, start, to)
                self._cut_out(fault, start, max(start, to))
            start = max(start, to)

    def _repair(self, fault: Fault, start: int, stop: int) -> bool:
        """Keep a record of which only the header is damaged; False where it is not so."""
        length = stop - start - OVERHEAD
        possible = fault.code in _HEADER_CODES and 0 <= length <= MAX_LENGTH
        if self._clean is None or not possible or not self._original.holds(start, length):
            return False
        known = False
        if self._roll is not None and fault.record is not None:
            if length <= HOLD_LIMIT:
                payload = self._original.payload(start, length)
                known = bool(self._roll.meet(fault.record, [payload])[0])
            else:
                known = self._meet_large(fault.record, length)
        if self._trusted and not known:
            return False
        self._tick(int(known), 1, False)
        header = self._original.stream(start, start + HEADER_BYTES)
        pieces = self._quarantine.add(header, "stream", start)
        self._copy(self._clean, start, length)
        self.repaired += 1
        where = (start, HEADER_BYTES)
        self._cut(fault.code, "header", where, fault.record, 0, True, fault.detail, pieces)
        return True

    def _rescue(self, fault: Fault, start: int, stop: int) -> int:
        """Take what is sound out of a stretch that is cut out: what the index knows is kept, and
        the rest set apart. Where the rest of the stretch starts.
        """
        if self._clean is None or fault.code == "CRC004":
            return start
        reach = self._original.decoded(start, stop)
        for at, frame in self._original.sound(start, reach):
            payload = frame[HEADER_BYTES:-FOOTER_BYTES]
            if not self._trusted or self._roll is None:
                self.doubtful += 1
                for _ in self._copied([frame]):
                    pass
            elif self._roll.meet_anywhere(payload):
                if at < stop:
                    self._cut_out(fault, start, at)
                    start = at + len(frame)
                    for _ in self._original.stream(at, start):
                        pass
                self._clean.write(frame)
                self._clean.end_record()
                self.kept += 1
        return start

    def _cut_out(self, fault: Fault, start: int, stop: int) -> None:
        """Put these bytes of the stream into quarantine, and damaged gzip as it lies."""
        pieces: list[Piece] = []
        gzip = fault.code == "CRC007"
        at = start
        look = max(stop, start + 1) if gzip else stop
        while at < look:
            damage = self._original.damage(at, look)
            sound = stop if damage is None else min(stop, max(at, damage.begin))
            pieces += self._quarantine.add(self._original.stream(at, sound), "stream", at)
            if damage is None:
                break
            mine = fault.detail.startswith(damage.detail)
            if start == stop and (damage.lossless or not mine):
                break  # nothing is to be cut out for what costs no byte of the stream
            begin, end, behind = self._original.leave(damage)
            pieces += self._quarantine.add(self._original.file(begin, end), "file", begin)
            if behind is None or start == stop:
                break
            # Not always further on: damage may have made more of a member than there was.
            at = behind
        what: What = "gzip member" if gzip else "stretch"
        # Bytes of the file that begin no member may have been one.
        lost, exact = int(start < stop or (gzip and fault.record is not None)), not pieces
        if fault.code == "CRC004":
            what, lost = "trailing bytes", 0
        elif fault.length == stop - start - OVERHEAD and fault.code in {"CRC001", "CRC002"}:
            what, exact = "record", True
        where = (start, stop - start)
        self._cut(fault.code, what, where, fault.record, lost, exact, fault.detail, pieces)

    def _cut(
        self,
        code: str,
        what: What,
        where: tuple[int, int],
        record: int | None,
        lost: int,
        exact: bool,
        detail: str,
        pieces: list[Piece],
    ) -> None:
        self.cuts_total += 1
        self.lost += lost
        self.exact = self.exact and exact
        if len(self.cuts) < MOST_CUTS:
            self.cuts.append(
                Cut(
                    code=code,
                    what=what,
                    offset=where[0],
                    length=where[1],
                    record=record,
                    lost=lost,
                    exact=exact,
                    detail=detail,
                    quarantined=tuple(_joined(pieces)),
                )
            )

    def _copy(self, clean: CleanShard, start: int, length: int) -> None:
        """A record's payload into the clean shard, a piece at a time, between right checksums."""
        clean.write(frame_header(length))
        crc = 0
        end = start + HEADER_BYTES + length
        for piece in self._original.stream(start + HEADER_BYTES, end):
            crc = google_crc32c.extend(crc, piece)
            clean.write(piece)
        footer = b"".join(self._original.stream(end, end + FOOTER_BYTES))
        if mask(crc) != int.from_bytes(footer, "little"):
            raise StorageError(
                f"`{safe(self._name)}` changed while it was read: the record at byte {start} is "
                "another one now",
                hint="let whatever writes it finish, then salvage again",
            )
        clean.write(footer)
        clean.end_record()


def _end(batch: RecordBatch) -> int:
    """The byte of the stream behind its last record."""
    return batch.offsets[-1] + OVERHEAD + batch.lengths[-1]


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Fewer pieces: those that follow each other in the original as in the quarantine are one."""
    found: list[Piece] = []
    for piece in pieces:
        before = found[-1] if found else None
        if before and before.of == piece.of and before.at + before.length == piece.at:
            length = before.length + piece.length
            found[-1] = Piece(offset=before.offset, length=length, of=piece.of, at=before.at)
        else:
            found.append(piece)
    return found

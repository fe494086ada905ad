"""One shard: read once by the scanner, and written as a clean shard and a quarantine."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from tfrecreg.errors import StorageError, TfrecregError
from tfrecreg.index import Index, read_index
from tfrecreg.operations.salvage.files import CleanShard, HashedFile, Quarantine
from tfrecreg.operations.salvage.model import ShardResult, ShardStatus, StoredFile
from tfrecreg.operations.salvage.original import Original
from tfrecreg.operations.salvage.roll import Roll
from tfrecreg.operations.salvage.work import Work
from tfrecreg.progress import Progress
from tfrecreg.records import OVERHEAD, Fault, RecordBatch, StreamEnd, scan
from tfrecreg.records.framing import HEADER_BYTES
from tfrecreg.records.gzip import Compression
from tfrecreg.records.reader import Event
from tfrecreg.records.scanner import count_headers
from tfrecreg.records.stream import SNIFF_BYTES, sniff
from tfrecreg.scan import Shard
from tfrecreg.storage import Reader, Storage
from tfrecreg.text import safe

__all__ = ["DOUBTFUL", "QUARANTINE", "missing_shard", "salvage_shard"]

QUARANTINE = ".quarantine"
"""What the name of a shard's quarantine ends in."""

DOUBTFUL = ".doubtful"
"""What the name of the file ends in that has the doubtful records of a shard."""


def salvage_shard(shard: Shard, name: str, out: Storage, progress: Progress) -> ShardResult:
    """Write what is left of one shard, and what was cut out of it, into `out`.

    Args:
        shard: the original, which is only read.
        name: of the clean file.
        out: the folder in the making.
        progress: told of each record.

    Raises:
        StorageError: `out` cannot be written. Where the original cannot be read, what is returned
            says so, and nothing of it is in `out`.
    """
    index, reason = _read_index(shard)
    roll = Roll(index) if index is not None else None
    clean, rest = HashedFile(out, name), HashedFile(out, name + QUARANTINE)
    apart = HashedFile(out, name + DOUBTFUL)
    try:
        with shard.storage.open(shard.path) as reader:
            intact, hints, trusted, doubts, stranger = _survey(shard, index, reader)
            if stranger:
                return ShardResult(name=name, status="refused", reason=stranger, exact=False)
            members = hints.members if hints is not None else ()
            original = Original(reader, declared=shard.declared, members=members)
            encoder: CleanShard | None = None
            doubtful: CleanShard | None = None
            if intact:
                for piece in original.file(0, reader.size):
                    clean.write(piece)
            else:
                # The clean shard is what its name says, whatever was found under it.
                gzip = original.compression == "gzip" or name.endswith(".gz")
                kind: Compression = shard.declared or ("gzip" if gzip else "none")
                encoder, doubtful = CleanShard(clean, kind), CleanShard(apart, kind)
            work = Work(
                shard.name,
                original,
                encoder,
                Quarantine(rest),
                doubtful,
                roll,
                trusted=trusted,
                doubts=doubts,
            )
            with closing(_scan(shard, hints, digest=True)) as events:
                end = work.run(events, progress)
        quarantine = rest.close() if rest.bytes else None
        doubted = apart.close() if work.doubtful else None
        return _result(shard, work, end, roll, reason, clean.close(), quarantine, doubted)
    except StorageError as error:
        if clean.failed or rest.failed or apart.failed:
            raise
        return ShardResult(name=name, status="unreadable", reason=error.message, exact=False)
    finally:
        for file in (clean, rest, apart):
            # Drops what was not closed; an error on its way out says more than one about cleaning.
            with suppress(StorageError):
                file.abort()


def missing_shard(name: str, records: int, shard: Shard) -> ShardResult:
    """A shard that its manifest lists and that is not there; `shard` as if it were."""
    index, reason = _read_index(shard)
    keys = tuple(index.keys()) if index is not None else None
    return ShardResult(name=name, status="missing", reason=reason, lost=records, lost_keys=keys)


def _read_index(shard: Shard) -> tuple[Index | None, str]:
    if shard.index is None:
        return None, ""
    try:
        return read_index(shard.storage.read(shard.index), safe(shard.index)), ""
    except TfrecregError as error:
        return None, f"the index is of no use: {error.message}"


def _scan(shard: Shard, hints: Index | None, *, digest: bool) -> Generator[Event, None, None]:
    return scan(
        shard.storage,
        shard.path,
        declared=shard.declared,
        digest=digest,
        known_offsets=hints.offsets() if hints is not None else None,
        members=hints.members if hints is not None else (),
    )


class _Survey(NamedTuple):
    """What is known of a shard before it is salvaged."""

    intact: bool
    """It is gzip without any damage: whoever compressed it, it stays as it is."""
    hints: Index | None
    """The index, if the places that it names help."""
    trusted: bool
    """The shard is damaged, and a record that the index does not know is none of its records."""
    doubts: Sequence[tuple[int, int]] = ()
    """Stretches of the stream whose records may be those of the payload of a lost one."""
    stranger: str = ""
    """Why the file is no TFRecord; empty where it is one."""


def _survey(shard: Shard, index: Index | None, reader: Reader) -> _Survey:
    """Look at a shard first, where there is anything to find out.

    An index says where records begin and knows nothing of bytes that were taken out or put in
    since. So both ways are tried, and the one that finds more of its records is the better one.
    """
    gzip = sniff(reader.read_at(0, SNIFF_BYTES), shard.declared) == "gzip"
    with closing(_scan(shard, index, digest=False)) as events:
        found = _look(events, reader)
    if found.stranger:
        return _Survey(False, None, False, (), found.stranger)
    if not found.damaged:
        return _Survey(gzip, index, False)
    if index is None:
        return _Survey(False, None, False, found.doubts)
    with_places = _met(shard, index, index, reader)[0]
    without, doubts = _met(shard, None, index, reader)
    if with_places.sure and with_places.met > without.met:
        return _Survey(False, index, True)
    return _Survey(False, None, without.sure, () if without.sure else doubts)


_LOST_BYTES = 1 << 20
"""So much of what is lost at one place is looked at for headers."""


class _Seen(NamedTuple):
    """What a scan says of a shard."""

    damaged: bool
    doubts: list[tuple[int, int]]
    """The stretches of its stream that are in doubt."""
    stranger: str
    """Why it is no TFRecord; empty where it is one."""


def _look(events: Iterable[Event], reader: Reader) -> _Seen:
    """Whether a shard is damaged, and the stretches of its stream that are in doubt.

    Records that were searched for behind damage may be those of the payload of a lost record. They
    are not where they lead to the end of the stream, or on to a record that is damaged and known
    to be one: those inside end before the checksum of what is around them. What ends where the lost
    record should, as its header says, may lie inside all the same: bytes of it may be lost.

    Where payloads do hold records, the header of a damaged record is not believed that much either;
    also those of the damaged ones, of a plain shard.
    """
    damaged, stranger = False, ""
    plain, nested = _Doubts(strict=False), _Doubts(strict=True)
    nests, lost = False, -1
    for event in events:
        if lost >= 0 and not isinstance(event, Fault):
            behind = event.offsets[0] if isinstance(event, RecordBatch) else event.file_bytes
            gap = reader.read_at(lost + 1, min(behind - lost - 1, _LOST_BYTES))
            nests, lost = nests or count_headers(gap) > 0, -1
        if isinstance(event, RecordBatch):
            if event.whole and not nests:
                begin = event.starts[0] - HEADER_BYTES
                end = event.starts[-1] + event.lengths[-1]
                nests = count_headers(event.memory[begin:end]) > len(event)
        elif isinstance(event, Fault):
            damaged = damaged or event.code != "CRC006"
            lost = event.offset if lost < 0 else lost
            stranger = stranger or (event.detail if event.code == "CRC008" else "")
        plain.take(event)
        nested.take(event)
    return _Seen(damaged, (nested if nests else plain).found, stranger)


class _Doubts:
    """The doubtful stretches of one scan.

    Args:
        strict: whether to believe less of what the header of a damaged record says.
    """

    def __init__(self, *, strict: bool) -> None:
        self.found: list[tuple[int, int]] = []
        self._strict = strict
        self._since = -1  # where the records begin that may turn out to be none of the shard's
        self._reached = 0  # where the last record ends,
        self._claimed = 0  # and where the damaged one before should
        self._opens = False
        self._searched = False  # whether they were searched for
        self._weak = False  # whether nothing but a mended header leads from those to the end

    def take(self, event: Event) -> None:
        """Take in the next event of the scan."""
        if isinstance(event, RecordBatch):
            self._take_batch(event)
        elif isinstance(event, Fault):
            self._take_fault(event)
        elif self._weak or event.stream_bytes > self._reached:
            self._close()

    def _take_batch(self, batch: RecordBatch) -> None:
        if batch.searched or self._opens:
            self._close()
            self._since = batch.offsets[0]
            self._searched = batch.searched
            self._opens = False
        if self._since >= 0 and self._claimed > self._reached:
            inside = _inside(batch, self._claimed)
            if inside > batch.offsets[0]:
                self.found.append((batch.offsets[0], inside))
            self._since = inside
        self._reached = batch.offsets[-1] + batch.lengths[-1] + OVERHEAD
        self._weak = False

    def _take_fault(self, fault: Fault) -> None:
        if not fault.exact:
            self._close()
            # Where a member begins, another tool may be in the middle of a record.
            self._opens = self._strict and fault.code == "CRC007"
            claims = fault.code == "CRC002" and fault.length is not None
            self._claimed = fault.offset + OVERHEAD + (fault.length or 0) if claims else 0
        elif fault.code in {"CRC001", "CRC002"} and fault.length is not None:
            if fault.code == "CRC001":
                # Its length, as it was mended, may be another's: what was searched for is not
                # proven by it.
                self._weak = self._searched
                if self._searched:
                    self._close()
                self._since = fault.offset if self._since < 0 else self._since
            else:
                self._opens = self._strict and self._since < 0
            self._reached = fault.offset + OVERHEAD + fault.length

    def _close(self) -> None:
        if self._since >= 0:
            self.found.append((self._since, self._reached))
        self._since, self._searched = -1, False


def _inside(batch: RecordBatch, claimed: int) -> int:
    """Where the records of a batch end that end no later than `claimed`."""
    inside = batch.offsets[0]
    for offset, length in zip(batch.offsets, batch.lengths, strict=True):
        if offset + OVERHEAD + length > claimed:
            break
        inside = offset + OVERHEAD + length
    return inside


def _met(
    shard: Shard, hints: Index | None, index: Index, reader: Reader
) -> tuple[Roll, list[tuple[int, int]]]:
    """How many records of the index a scan finds, and how many others; and what is in doubt."""
    roll = Roll(index)

    def meeting(events: Iterable[Event]) -> Iterator[Event]:
        for event in events:
            if isinstance(event, RecordBatch) and event.whole:
                roll.strangers += int((~roll.meet(event.first, event.payloads())).sum())
            yield event

    with closing(_scan(shard, hints, digest=False)) as events:
        return roll, _look(meeting(events), reader).doubts


def _result(
    shard: Shard,
    work: Work,
    end: StreamEnd,
    roll: Roll | None,
    reason: str,
    clean: StoredFile,
    quarantine: StoredFile | None,
    doubts: StoredFile | None,
) -> ShardResult:
    original = StoredFile(path=shard.name, bytes=end.file_bytes, blake3=end.blake3 or "")
    lost, exact = work.lost, work.exact
    keys: tuple[str, ...] | None = None
    here = work.kept + work.repaired
    if roll is not None and roll.fits:
        keys = roll.lost()
        lost, exact = len(keys), roll.strangers == 0
    elif shard.entry is not None and here <= shard.entry.records:
        lost, exact = shard.entry.records - here, True
    if roll is not None and not roll.fits:
        reason = f"the index is that of another shard: it knows {roll.met} of {here} records"
    sound = not work.cuts and not lost and exact and clean.blake3 == original.blake3
    status: ShardStatus = "sound" if sound else "salvaged"
    return ShardResult(
        name=clean.path,
        status=status,
        reason=reason,
        compression=end.compression,
        kept=work.kept,
        repaired=work.repaired,
        lost=lost,
        exact=exact,
        unproven=work.unproven,
        doubtful=work.doubtful,
        lost_keys=keys,
        original=original,
        clean=clean,
        quarantine=quarantine,
        doubts=doubts,
        cuts=tuple(work.cuts),
        cuts_total=work.cuts_total,
    )

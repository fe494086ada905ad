"""The result of a salvage: of each stretch that was cut out, of each shard; and the files of it.

Which records of a damaged shard may be none of its own.

Records that were searched for after damage may be those of the payload of a lost record. They are
not where they lead to the end of the stream, or on to a record that is damaged and whose place is
certain: those inside end before the checksum of the surrounding record. What ends where the lost
record should, as its header says, may lie inside all the same: bytes of it may be lost.

If payloads hold records, the header of a damaged record is trusted less. The payloads that are
lost count as well, in a plain shard. The first records may then be inside one as well, where no
record among them holds others and they lead to no record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from blake3 import blake3

from tfrecreg._version import __version__
from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.framing import FOOTER_BYTES, HEADER_BYTES, OVERHEAD, header_length
from tfrecreg.core.records.gzip_writer import GzipEncoder
from tfrecreg.core.records.reader import Event
from tfrecreg.core.records.scanner import count_headers
from tfrecreg.core.registry.manifest import SALVAGE_FORMAT, SALVAGE_KIND
from tfrecreg.core.storage.interface import Reader, Storage, Writer
from tfrecreg.core.values.errors import StorageError
from tfrecreg.core.values.text import ShortRepr

ShardStatus = Literal["sound", "salvaged", "refused", "missing", "unreadable"]
"""``sound``: nothing is wrong, the clean file has the same bytes. ``salvaged``: the clean file is
what was left. ``refused``: it is not a TFRecord. Of the last three there is no clean file."""

What = Literal[
    "header",
    "record",
    "stretch",
    "trailing bytes",
    "gzip member",
    "unknown record",
    "doubtful records",
]
"""``header``: the 12 bytes in front of a record that was repaired. ``record``: exactly one.
``stretch``: at least one record. ``gzip member``: damage to the compressed file. ``unknown
record``: after damage, and none of the shard's: a copy that damaged gzip made, or a record out of
the payload of another. ``doubtful records``: they may be of the payload of a lost one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Consecutive bytes of the quarantine, and where they were."""

    offset: int
    """Offset in the quarantine."""
    length: int
    of: Literal["stream", "file"]
    """Whether these are bytes of the decompressed stream, or of the compressed file as stored."""
    at: int
    """Offset in the original."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """One stretch of the original that is not in the clean shard as it was."""

    code: str
    """Code of the finding that `check` reports for it."""
    what: What
    offset: int
    """Byte of the decompressed stream where it starts."""
    length: int
    """Bytes of the decompressed stream; 0 where damaged gzip cost none."""
    record: int | None
    """Number of the record in its shard, from 0, where that is known."""
    lost: int
    """Number of records lost with it; 1 if unknown."""
    exact: bool
    """Whether `lost` is known."""
    detail: str
    """Expected against found."""
    quarantined: tuple[Piece, ...]
    """Pieces of the quarantine that hold its bytes, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file with size and digest."""

    path: str
    """Path of the original as the user would write it; for other files, relative to the new
    folder.
    """
    bytes: int
    blake3: str
    """Hex digest."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ShardResult(ShortRepr):
    """What became of one shard."""

    name: str
    """Its file name, and that of the clean shard."""
    status: ShardStatus
    reason: str = ""
    """Reason that there is no clean file, or that the index was not usable; else empty."""
    compression: str = ""
    """``none`` or ``gzip``; empty where it was not read."""
    kept: int = 0
    """Records that are in the clean shard byte for byte."""
    repaired: int = 0
    """Records whose length or its checksum was damaged and whose data checksum holds: in the
    clean shard with a right header."""
    lost: int = 0
    """Records that are not in the clean shard; each stretch of unknown content counts as one."""
    exact: bool = True
    """Whether that is the number of records."""
    unproven: int = 0
    """Number of kept records from damaged gzip that no index verifies."""
    doubtful: int = 0
    """Records with valid checksums that are in a file of their own, not in the clean shard: they
    may come from inside the payload of a lost record, or be repeated by damaged gzip."""
    lost_keys: tuple[str, ...] | None = None
    """Keys of the lost records, in order; None without an index."""
    original: StoredFile | None = None
    """None where it could not be read."""
    clean: StoredFile | None = None
    quarantine: StoredFile | None = None
    """None where nothing was cut out."""
    doubts: StoredFile | None = None
    """The file of the doubtful records; None without any."""
    cuts: tuple[Cut, ...] = ()
    """Cuts in order of the stream; the first 10,000."""
    cuts_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SalvageResult(ShortRepr):
    """What `tfrecreg salvage` did."""

    target: str
    """Target as the user named it."""
    output: str
    """The new folder, an absolute path; empty where there was nothing to salvage."""
    passed: int
    """Shards of references that match their manifest, which were not examined further."""
    shards: tuple[ShardResult, ...]

    @property
    def kept(self) -> int:
        """Records kept in all shards."""
        return sum(shard.kept for shard in self.shards)

    @property
    def repaired(self) -> int:
        """Records repaired in all shards."""
        return sum(shard.repaired for shard in self.shards)

    @property
    def lost(self) -> int:
        """Records lost in all shards, or the least number of them."""
        return sum(shard.lost for shard in self.shards)

    @property
    def exact(self) -> bool:
        """Whether `lost` is the number, not the least."""
        return all(shard.exact for shard in self.shards)

    @property
    def damaged(self) -> bool:
        """Whether anything was wrong: then the folder is marked, and the gate refuses it."""
        return any(shard.status != "sound" for shard in self.shards)

    @property
    def exit_code(self) -> int:
        """0: written; 1: a shard is not a TFRecord; 3: a shard could not be read."""
        found = {shard.status for shard in self.shards}
        return 3 if "unreadable" in found else 1 if "refused" in found else 0

    def report(self) -> dict[str, Any]:
        """The document that is written as ``salvage.json``; the same wherever the folder is."""
        return {
            "kind": SALVAGE_KIND,
            "format_version": SALVAGE_FORMAT,
            "tfrecreg": __version__,
            "target": self.target,
            "damaged": self.damaged,
            "summary": {
                "shards": len(self.shards),
                "kept": self.kept,
                "repaired": self.repaired,
                "lost": self.lost,
                "exact": self.exact,
            },
            "shards": [asdict(shard) for shard in self.shards],
        }

    def to_json(self) -> dict[str, Any]:
        """The report, with its path and the skipped shards."""
        return {**self.report(), "output": self.output, "passed": self.passed}


MOST_CUTS = 10_000
"""Maximum number of cuts listed per shard; all of them are counted and quarantined."""


class Cuts:
    """Cuts so far."""

    def __init__(self) -> None:
        self.listed: list[Cut] = []
        """The first :data:`MOST_CUTS`, in order of the stream."""
        self.total = 0
        """Total number of cuts."""
        self.lost = 0
        """Number of lost records, counted from the cuts."""
        self.exact = True
        """Whether that is the number, not the least."""

    def add(
        self,
        code: str,
        what: What,
        where: tuple[int, int],
        record: int | None,
        lost: int,
        exact: bool,
        detail: str,
        pieces: Sequence[Piece],
    ) -> None:
        """Add one. The arguments are the fields of a :class:`Cut`; `where`: offset and length."""
        self.total += 1
        self.lost += lost
        self.exact = self.exact and exact
        if len(self.listed) < MOST_CUTS:
            self.listed.append(
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


def _joined(pieces: Sequence[Piece]) -> list[Piece]:
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


_LOST_BYTES = 1 << 20
"""Maximum number of lost bytes at one place that are searched for headers."""


class ShardDamage(NamedTuple):
    """The result of a scan of a shard."""

    damaged: bool
    doubts: list[tuple[int, int]]
    """The doubtful stretches of its stream."""
    refusal: str
    """Reason that the file is not a TFRecord; empty if it is one."""


def look(events: Iterable[Event], reader: Reader) -> ShardDamage:
    """Whether a shard is damaged, and the doubtful stretches of its stream."""
    damaged, refusal = False, ""
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
            if nests:
                nested.begins_inside = False
            damaged = damaged or event.code != "CRC006"
            lost = event.offset if lost < 0 else lost
            refusal = refusal or (event.detail if event.code == "CRC008" else "")
        plain.take(event)
        nested.take(event)
    return ShardDamage(damaged, (nested if nests else plain).found, refusal)


class _Doubts:
    """The doubtful stretches of one scan."""

    def __init__(self, *, strict: bool) -> None:
        self.found: list[tuple[int, int]] = []
        self.begins_inside = strict
        """Whether the first records may be inside one whose beginning is lost."""
        self._strict = strict
        self._since = -1  # starts of records that may not belong to the shard
        self._reached = 0  # where the last record ends,
        self._claimed = 0  # and where the damaged one before should
        self._last = (0, False)  # where the last record begins, and whether it may be a header
        self._opens = False
        self._searched = False  # whether they were searched for
        self._weak = False  # whether only a repaired header leads from those to the end

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
        start = batch.starts[-1]
        header = batch.whole and _is_header(
            batch.memory[start : start + HEADER_BYTES], batch.lengths[-1]
        )
        self._last = (batch.offsets[-1], header)
        self._weak = False

    def _take_fault(self, fault: Fault) -> None:
        start, header = self._last
        if header and fault.code == "CRC001" and fault.offset == self._reached and self._since < 0:
            # Its data may be the header of the record that is damaged here.
            self.found.append((start, self._reached))
        if self.begins_inside and not fault.exact and fault.code != "CRC007":
            # A record inside another one leads to bytes that are not a record.
            self._since = 0
        self.begins_inside = False
        if not fault.exact:
            self._close()
            # Where a member begins, another tool may be in the middle of a record.
            self._opens = self._strict and fault.code == "CRC007"
            claims = fault.code == "CRC002" and fault.length is not None
            self._claimed = fault.offset + OVERHEAD + (fault.length or 0) if claims else 0
        elif fault.code in {"CRC001", "CRC002"} and fault.length is not None:
            if fault.code == "CRC001":
                # Its length, as repaired, may be another's: what was searched for is not proven by
                # it.
                self._weak = self._searched
                if self._searched:
                    self._close()
                self._since = fault.offset if self._since < 0 else self._since
            else:
                if self._strict and self._searched:
                    # Headers inside a payload may lead from one to the next, and to its end.
                    self._close()
                self._opens = self._strict and self._since < 0
            self._reached = fault.offset + OVERHEAD + fault.length

    def _close(self) -> None:
        if self._since >= 0:
            self.found.append((self._since, self._reached))
        self._since, self._searched = -1, False


def _is_header(data: bytes, length: int) -> bool:
    """Whether a payload of 8 bytes and its checksum may be another record's header."""
    return length == HEADER_BYTES - FOOTER_BYTES and header_length(data) is not None


def _inside(batch: RecordBatch, claimed: int) -> int:
    """The ends of the batch's records that end no later than `claimed`."""
    inside = batch.offsets[0]
    for offset, length in zip(batch.offsets, batch.lengths, strict=True):
        if offset + OVERHEAD + length > claimed:
            break
        inside = offset + OVERHEAD + length
    return inside


class HashingFile:
    """A file, written sequentially. It is created at the first byte, or when closed."""

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._hasher = blake3()
        self._file: Writer | None = None
        self.bytes = 0
        """Number of bytes written so far."""
        self.failed = False
        """Whether the file system refused it."""

    def write(self, data: bytes) -> None:
        """Append `data`."""
        with self._noting_failure():
            if self._file is None:
                self._file = self._storage.create(self._path)
            self._file.write(data)
        self._hasher.update(data)
        self.bytes += len(data)

    def close(self) -> StoredFile:
        """Let it appear, synced."""
        self.write(b"")
        with self._noting_failure():
            if self._file is not None:
                self._file.close()
        return StoredFile(path=self._path, bytes=self.bytes, blake3=self._hasher.hexdigest())

    @contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except StorageError:
            self.failed = True
            raise

    def abort(self) -> None:
        """Drop it."""
        if self._file is not None:
            self._file.abort()


class CleanShard:
    """The clean shard: sound records only, compressed as the original was."""

    def __init__(self, file: HashingFile, compression: str) -> None:
        self._file = file
        self._gzip = GzipEncoder() if compression == "gzip" else None

    def write(self, data: bytes) -> None:
        """Append bytes of the stream: records, frames and all, or pieces of one."""
        self._file.write(data if self._gzip is None else self._gzip.feed(data))

    def end_record(self) -> None:
        """Note that the bytes written so far end with a record."""
        if self._gzip is not None:
            self._file.write(self._gzip.end_record())

    def close(self) -> None:
        """Flush the encoder. The caller closes the file."""
        if self._gzip is not None:
            self._file.write(self._gzip.close())


class Quarantine:
    """The bytes that were cut out of a shard, in order."""

    def __init__(self, file: HashingFile) -> None:
        self._file = file

    def add(self, data: Iterable[bytes], of: Literal["stream", "file"], at: int) -> list[Piece]:
        """Append consecutive bytes of the original."""
        offset = self._file.bytes
        for piece in data:
            self._file.write(piece)
        length = self._file.bytes - offset
        return [Piece(offset=offset, length=length, of=of, at=at)] if length else []

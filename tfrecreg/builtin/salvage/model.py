"""The result of a salvage for each cut and each shard, and the files that a salvage writes.

In a damaged shard, the module also finds doubtful records, which may not belong to the shard.

A search for the next record after damaged bytes may find records inside the payload of a lost
record. Such records end before the checksum of the lost record. So records from a search belong to
the shard itself if they end at the end of the stream, or end at the start of a damaged record whose
place is certain. Records within the length that the lost record's header states stay doubtful.

The module looks for records inside payloads. In a plain shard, it also looks inside lost payloads.
If it finds records there, the header of a damaged record proves less than in other shards, and the
first records of the shard may lie inside a lost record. The first records do not lie inside a lost
record if one of their payloads contains records, or if a record, even a damaged one, directly
follows the first records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
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
"""``sound``: the shard is undamaged, and the clean file has its bytes. ``salvaged``: the clean file
has the undamaged records. ``refused``: the shard is not a TFRecord. A shard that is refused,
missing or unreadable has no clean file."""

What = Literal[
    "header",
    "record",
    "stretch",
    "trailing bytes",
    "gzip member",
    "unknown record",
    "doubtful records",
]
"""``header``: the 12 bytes in front of a repaired record. ``record``: one record. ``stretch``: at
least one record. ``gzip member``: damage to the compressed file. ``unknown record``: a record that
the shard did not have, for example a copy that damaged gzip made, or a record inside the payload of
another. ``doubtful records``: they may come from the payload of a lost record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Consecutive bytes of the quarantine, and their place in the original."""

    offset: int
    """Offset in the quarantine."""
    length: int
    of: Literal["stream", "file"]
    """Origin of the bytes: the decompressed stream, or the compressed file as stored."""
    at: int
    """Offset in the original."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A range of bytes of the original that is missing from the clean shard, or changed there."""

    code: str
    """Code of the finding that `check` reports for it."""
    what: What
    offset: int
    """Byte of the decompressed stream where the cut starts."""
    length: int
    """Number of bytes of the decompressed stream; 0 if damaged gzip lost no bytes."""
    record: int | None
    """Number of the record in its shard, from 0; None if unknown."""
    lost: int
    """Number of records lost in this range; 1 if the number is unknown."""
    exact: bool
    """Whether `lost` is known."""
    detail: str
    """What was expected, and what was found."""
    quarantined: tuple[Piece, ...]
    """Pieces of the quarantine, in ascending order. Together they hold the bytes that were cut
    out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file with size and digest."""

    path: str
    """Path of the file: for the original, as the user would write it; for all other files, relative
    to the new folder.
    """
    bytes: int
    blake3: str
    """Hex digest."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ShardResult(ShortRepr):
    """The outcome for one shard."""

    name: str
    """File name of the shard and of its clean copy."""
    status: ShardStatus
    reason: str = ""
    """Why there is no clean file, or why the index was not usable; else empty."""
    compression: str = ""
    """``none`` or ``gzip``; empty if the shard was not read."""
    kept: int = 0
    """Number of records copied unchanged into the clean shard."""
    repaired: int = 0
    """Records whose header was damaged and whose data checksum holds. The clean shard has them with
    a correct header."""
    lost: int = 0
    """Number of records missing from the clean shard. Lost bytes of unknown content count as one
    record."""
    exact: bool = True
    """Whether `lost` is exact; if not, more records may be lost."""
    unproven: int = 0
    """Number of kept records that come from damaged gzip and that no index verifies."""
    doubtful: int = 0
    """Number of records with valid checksums that are in a separate file, not in the clean shard.
    Such records may come from the payload of a lost record, or damaged gzip may have repeated
    them."""
    lost_keys: tuple[str, ...] | None = None
    """Keys of the lost records, in order; None without an index."""
    original: StoredFile | None = None
    """The original; None if it could not be read."""
    clean: StoredFile | None = None
    quarantine: StoredFile | None = None
    """The file with the bytes that were cut out; None if there are none."""
    doubts: StoredFile | None = None
    """The file of the doubtful records; None if there are none."""
    cuts: tuple[Cut, ...] = ()
    """The first 10,000 cuts, in the order of the stream."""
    cuts_total: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SalvageResult(ShortRepr):
    """The result of `tfrecreg salvage`."""

    target: str
    """Target as the user named it."""
    output: str
    """Absolute path of the new folder; empty if there was nothing to salvage."""
    passed: int
    """Number of shards that match their manifest and were not examined further."""
    shards: tuple[ShardResult, ...]

    @property
    def kept(self) -> int:
        """Total number of kept records."""
        return sum(shard.kept for shard in self.shards)

    @property
    def repaired(self) -> int:
        """Total number of repaired records."""
        return sum(shard.repaired for shard in self.shards)

    @property
    def lost(self) -> int:
        """Total number of lost records, or a lower bound if :attr:`exact` is false."""
        return sum(shard.lost for shard in self.shards)

    @property
    def exact(self) -> bool:
        """False if `lost` is only a lower bound."""
        return all(shard.exact for shard in self.shards)

    @property
    def damaged(self) -> bool:
        """Whether anything was wrong. If so, the folder is marked and the gate refuses it."""
        return any(shard.status != "sound" for shard in self.shards)

    @property
    def exit_code(self) -> int:
        """3 if a shard could not be read, else 1 if a shard is not a TFRecord, else 0."""
        found = {shard.status for shard in self.shards}
        return 3 if "unreadable" in found else 1 if "refused" in found else 0

    def report(self) -> dict[str, Any]:
        """The content of ``salvage.json``; it does not depend on the place of the folder."""
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
        """The report, with the path of the folder and the number of skipped shards."""
        return {**self.report(), "output": self.output, "passed": self.passed}


def joined(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Join pieces that follow each other both in the original and in the quarantine."""
    found: list[Piece] = []
    for piece in pieces:
        before = found[-1] if found else None
        if before and before.of == piece.of and before.at + before.length == piece.at:
            found[-1] = replace(before, length=before.length + piece.length)
        else:
            found.append(piece)
    return tuple(found)


_LOST_BYTES = 1 << 20
"""Maximum number of lost bytes that are searched for headers, per damaged place."""


class ShardDamage(NamedTuple):
    """The result of a scan of a shard."""

    damaged: bool
    doubts: list[tuple[int, int]]
    """Ranges of the stream, as start and end. Records in them may not belong to the shard."""
    refusal: str
    """Why the file is not a TFRecord; empty if it is a TFRecord."""


def look(events: Iterable[Event], reader: Reader) -> ShardDamage:
    """Find out whether a shard is damaged, and which stretches of its stream are doubtful."""
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
    doubts = (nested if nests else plain).found if damaged else []
    return ShardDamage(damaged, doubts, refusal)


class _Doubts:
    """The doubtful stretches of one scan."""

    def __init__(self, *, strict: bool) -> None:
        self.found: list[tuple[int, int]] = []
        self.begins_inside = strict
        """Whether the first records may lie inside a record whose beginning is lost."""
        self._strict = strict
        self._since = -1  # starts of records that may not belong to the shard
        self._reached = 0  # where the last record ends
        self._claimed = 0  # where the damaged record before should end, as its header says
        self._last = 0, False  # where the last record begins, and whether its data may be a header
        self._opens = False
        self._searched = False  # whether a search found these records

    def take(self, event: Event) -> None:
        """Process the next event of the scan."""
        if isinstance(event, RecordBatch):
            if event.searched or self._opens:
                self._close()
                self._since, self._searched = event.offsets[0], event.searched
                self._opens = False
            if self._since >= 0 and self._claimed > self._reached:
                inside = _end_inside(event, self._claimed)
                if inside > event.offsets[0]:
                    self.found.append((event.offsets[0], inside))
                self._since = inside
            self._reached = event.offsets[-1] + event.lengths[-1] + OVERHEAD
            start = event.starts[-1]
            # A payload of 8 bytes and its checksum may be another record's header.
            header = (
                event.whole
                and event.lengths[-1] == HEADER_BYTES - FOOTER_BYTES
                and header_length(event.memory[start : start + HEADER_BYTES]) is not None
            )
            self._last = (event.offsets[-1], header)
        elif isinstance(event, Fault):
            self._take_fault(event)
        elif event.stream_bytes > self._reached:
            self._close()

    def _take_fault(self, fault: Fault) -> None:
        start, header = self._last
        if header and fault.code == "CRC001" and fault.offset == self._reached and self._since < 0:
            # The last record's data may be the header of the record that is damaged here.
            self.found.append((start, self._reached))
        if self.begins_inside and not fault.exact and fault.code != "CRC007":
            # A record inside another record leads to bytes that are not a record.
            self._since = 0
        self.begins_inside = False
        if not fault.exact:
            self._close()
            self._opens = False
            claims = fault.code == "CRC002"
            self._claimed = fault.offset + OVERHEAD + (fault.length or 0) if claims else 0
        elif fault.code in {"CRC001", "CRC002"} and fault.length is not None:
            if self._searched and (fault.code == "CRC001" or self._strict):
                # A repaired length proves nothing about records found by a search, and headers
                # inside a payload may lead from one to the next, and to its end.
                self._close()
            if fault.code == "CRC001":
                self._since = fault.offset if self._since < 0 else self._since
            else:
                self._opens = self._strict and self._since < 0
            self._reached = fault.offset + OVERHEAD + fault.length

    def _close(self) -> None:
        if self._since >= 0:
            self.found.append((self._since, self._reached))
        self._since, self._searched = -1, False


def _end_inside(batch: RecordBatch, claimed: int) -> int:
    """Where the last of the batch's first records ends that ends no later than `claimed`."""
    ends = (at + OVERHEAD + size for at, size in zip(batch.offsets, batch.lengths, strict=True))
    return max(takewhile(lambda end: end <= claimed, ends), default=batch.offsets[0])


class HashingFile:
    """A file that is written sequentially. The first write creates the file. If nothing was
    written, `close` creates the file.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        self._storage = storage
        self._path = path
        self._hasher = blake3()
        self._file: Writer | None = None
        self.gzip: GzipEncoder | None = None
        """Compresses what is written; None to write it unchanged."""
        self.bytes = 0
        """Number of bytes written so far."""
        self.failed = False
        """Whether the file system refused a write."""

    def write(self, data: bytes) -> None:
        """Append `data`."""
        self._append(data if self.gzip is None else self.gzip.feed(data))

    def end_record(self) -> None:
        """Mark the end of a record after the bytes written so far."""
        if self.gzip is not None:
            self._append(self.gzip.end_record())

    def _append(self, data: bytes) -> None:
        with self._noting_failure():
            if self._file is None:
                self._file = self._storage.create(self._path)
            self._file.write(data)
        self._hasher.update(data)
        self.bytes += len(data)

    def add(
        self, data: Iterable[bytes], of: Literal["stream", "file"], at: int
    ) -> tuple[Piece, ...]:
        """Append consecutive bytes of the original."""
        offset = self.bytes
        for piece in data:
            self.write(piece)
        length = self.bytes - offset
        return (Piece(offset=offset, length=length, of=of, at=at),) if length else ()

    def close(self) -> StoredFile:
        self._append(b"" if self.gzip is None else self.gzip.close())
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
        """Delete the file."""
        if self._file is not None:
            self._file.abort()

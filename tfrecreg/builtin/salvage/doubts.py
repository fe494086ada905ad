"""Which records of a damaged shard may be none of its own.

Records that were searched for after damage may be those of the payload of a lost record. They are
not where they lead to the end of the stream, or on to a record that is damaged and whose place is
certain: those inside end before the checksum of the surrounding record. What ends where the lost
record should, as its header says, may lie inside all the same: bytes of it may be lost.

If payloads hold records, the header of a damaged record is trusted less. The payloads that are
lost count as well, in a plain shard. The first records may then be inside one as well, where no
record among them holds others and they lead to no record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.framing import FOOTER_BYTES, HEADER_BYTES, OVERHEAD, header_length
from tfrecreg.core.records.reader import Event
from tfrecreg.core.records.scanner import count_headers
from tfrecreg.core.storage.interface import Reader

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

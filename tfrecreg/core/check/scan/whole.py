"""Reading every record of a target, for results that are only valid for complete data.

Records that a scan does not hold in memory, read once more where their bytes are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tfrecreg.core.check.scan.interface import Shard, Target, Validator
from tfrecreg.core.check.scan.run import ScanResult, run_scan
from tfrecreg.core.records.framing import HEADER_BYTES
from tfrecreg.core.records.gzip.random_access import DamagedGzipError, Inflater
from tfrecreg.core.records.stream import sniff_compression
from tfrecreg.core.storage.interface import Reader
from tfrecreg.core.values.errors import FailureError, RefusedError, UsageError
from tfrecreg.core.values.progress import Progress
from tfrecreg.core.values.text import safe, si_bytes
from tfrecreg.core.workers.interface import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """Damage that was skipped while the undamaged records were read. Strings are escaped."""

    shard: str
    record: int | None
    """Number of the first damaged record, if known."""
    offset: int
    """Offset in the stream where it starts."""
    reason: str
    """``CRC002: …``."""
    count: int = 1
    """Damaged places in the shard, as far as it was read."""


def passed_over(name: str, damage: Sequence[PassedOver]) -> RefusedError:
    """The error for a result without the damaged records of a target."""
    first, total = damage[0], sum(each.count for each in damage)
    where = "" if first.record is None else f"record {first.record} of "
    places = "1 damaged place was" if total == 1 else f"{total} damaged places were"
    return RefusedError(
        f"{places} skipped, the first is {where}`{first.shard}`, at byte {first.offset}: "
        f"{first.reason}",
        hint=f"tfrecreg check {name}",
    )


def read_whole(
    target: Target,
    validators: Sequence[Validator],
    engine: Engine,
    progress: Progress,
    *,
    doing: str,
    otherwise: str,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> ScanResult:
    """Scan all shards of `target`."""
    result = run_scan(
        target,
        validators,
        engine,
        options=options,
        label=f"{doing} {target.name}",
        progress=progress,
    )
    if not result.complete:
        lost = [f"`{safe(each.shard)}`: {each.reason}" for each in result.unreadable]
        lost += [each.reason for each in result.crashes]
        raise FailureError(
            f"`{target.name}` was not read completely: {lost[0]}",
            hint=f"{otherwise}: fix that first",
        )
    return result


LARGE_LIMIT = 1 << 30
"""Maximum size of a record in bytes: its digest needs it in memory."""

_SNIFF_BYTES = 1 << 16


class LargeRecords:
    """Reads payloads of one shard by their offsets, in ascending order."""

    def __init__(self, shard: Shard, verb: Literal["adopt", "check", "export"] = "adopt") -> None:
        self._shard = shard
        self._done = f"{verb}ed"
        self._verb = verb
        self._reader: Reader | None = None
        self._inflater: Inflater | None = None

    def payload(self, record: int, offset: int, length: int) -> bytes:
        """The payload of a record whose checksums were verified before."""
        name = safe(self._shard.name, limit=1000)
        if length > LARGE_LIMIT:
            raise UsageError(
                f"record {record} of `{name}` has {si_bytes(length)}, at most "
                f"{si_bytes(LARGE_LIMIT)} can be {self._done}",
                hint="let the tool that wrote it split its records",
            )
        start = offset + HEADER_BYTES
        if self._reader is None:
            self._reader = self._shard.storage.open(self._shard.path)
            if sniff_compression(self._reader.read_at(0, _SNIFF_BYTES)) == "gzip":
                self._inflater = Inflater(self._reader, 0, 0)
        data = b""
        if self._inflater is None:
            data = self._reader.read_at(start, length)
        else:
            try:
                self._inflater.go(start)
                data = self._inflater.exactly(length)
            except DamagedGzipError:
                data = b""
        if len(data) != length:
            raise UsageError(
                f"`{name}` changed while it was read",
                hint=f"{self._verb} it when no other process writes to it",
            )
        return data

    def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader.close()

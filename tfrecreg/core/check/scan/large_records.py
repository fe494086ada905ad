"""Records that a scan does not hold in memory, read once more where their bytes are needed."""

from __future__ import annotations

from typing import Literal

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.framing import HEADER_BYTES
from tfrecreg.core.records.gzip.random_access import DamagedGzipError, Inflater
from tfrecreg.core.records.stream import sniff_compression
from tfrecreg.core.storage.interface import Reader
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe, si_bytes

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

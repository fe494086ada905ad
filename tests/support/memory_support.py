"""Files in memory; the peak memory of a process."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.reader import scan
from tfrecreg.core.storage.interface import Reader

PRINT_PEAK = """
import re
from pathlib import Path
print(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""
"""The end of a program: it prints the peak of its memory in KiB.

`ru_maxrss` does not serve: on Linux it begins with the peak of the parent process.
"""

on_linux = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc"
)


class MemoryReader(Reader):
    """A file in memory that notes the size of the largest read."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.size = len(data)
        self.most = 0
        self.closed = False

    def read_at(self, start: int, length: int) -> bytes:
        self.most = max(self.most, length)
        return self.data[start : start + length]

    def close(self) -> None:
        self.closed = True


class MemoryFolder:
    """As much of a storage as reading and writing files takes."""

    def __init__(self, files: dict[str, Any]) -> None:
        self.files = files
        """Files by path: bytes, or a reader to look at afterwards."""

    def open(self, path: str) -> MemoryReader:
        found = self.files[path]
        return found if isinstance(found, MemoryReader) else MemoryReader(found)

    def read(self, path: str, *, limit: int) -> bytes:
        found: bytes = self.files[path][:limit]
        return found

    def create(self, path: str) -> _Writer:
        return _Writer(self.files, path)


class _Writer(BytesIO):
    """A file that appears in its folder when it is closed."""

    def __init__(self, files: dict[str, Any], path: str) -> None:
        super().__init__()
        self._place = files, path

    def close(self) -> None:
        files, path = self._place
        files[path] = self.getvalue()

    def abort(self) -> None:
        pass


@dataclass
class Seen:
    records: list[tuple[int, int, bytes | None]]
    """Number, offset and payload (None where it was too large to be held)."""
    faults: list[Fault]
    end: StreamEnd

    @property
    def codes(self) -> list[str]:
        return [fault.code for fault in self.faults]


def see(data: bytes | bytearray | MemoryReader, **options: Any) -> Seen:
    """Scan bytes and collect everything; exactly one StreamEnd comes, at the end."""
    reader = data if isinstance(data, MemoryReader) else MemoryReader(bytes(data))
    records: list[tuple[int, int, bytes | None]] = []
    faults: list[Fault] = []
    end: StreamEnd | None = None
    for event in scan(MemoryFolder({"x": reader}), "x", **options):  # type: ignore[arg-type]
        assert end is None, "something came behind the end"
        if isinstance(event, RecordBatch):
            assert len(event) > 0
            payloads = list(event.payloads()) if event.whole else [None]
            lengths = [event.lengths[0] if each is None else len(each) for each in payloads]
            assert lengths == list(event.lengths)
            numbers = range(event.first, event.first + len(event))
            records += zip(numbers, event.offsets, payloads, strict=True)
        elif isinstance(event, Fault):
            faults.append(event)
        else:
            end = event
    assert end is not None
    assert end.records == len(records)
    assert reader.closed
    return Seen(records, faults, end)

"""Files in memory; the peak memory of a process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from tfrecreg.core.records.batch import Fault, RecordBatch, StreamEnd
from tfrecreg.core.records.reader import scan

PRINT_PEAK = """
import re
from pathlib import Path
print(re.search(r"VmHWM:\\s*([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""
"""The end of a program: it prints the most memory that it had, in KiB.

Not `ru_maxrss`: Linux has a process begin with the most that the one it was started from had.
"""

on_linux = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the memory of a process is read from /proc"
)


class MemoryReader:
    """The bytes of a file, and the size of the largest read."""

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

    def __enter__(self) -> MemoryReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class MemoryStorage:
    """As much of a storage as reading takes: every path is the same file."""

    def __init__(self, reader: MemoryReader) -> None:
        self.reader = reader

    def open(self, path: str) -> MemoryReader:
        return self.reader


class MemoryWriter:
    """A file that appears in a folder in memory when it is closed."""

    def __init__(self, files: dict[str, bytes], path: str) -> None:
        self._files = files
        self._path = path
        self._data = bytearray()

    def write(self, data: bytes | memoryview) -> None:
        self._data += data

    def close(self) -> None:
        self._files[self._path] = bytes(self._data)

    def abort(self) -> None:
        self._data.clear()


class MemoryFolder:
    """As much of a storage as reading and writing files takes."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files

    def open(self, path: str) -> MemoryReader:
        return MemoryReader(self.files[path])

    def read(self, path: str, *, limit: int) -> bytes:
        return self.files[path][:limit]

    def create(self, path: str) -> MemoryWriter:
        return MemoryWriter(self.files, path)


@dataclass
class Seen:
    """The result of scanning a file."""

    records: list[tuple[int, int, bytes | None]]
    """Number, offset and payload (None where it was too large to be held)."""
    faults: list[Fault]
    end: StreamEnd
    most_read: int

    @property
    def codes(self) -> list[str]:
        return [fault.code for fault in self.faults]


def see(data: bytes | bytearray | MemoryReader, **options: Any) -> Seen:
    """Scan bytes and collect everything; exactly one StreamEnd comes, at the end."""
    reader = data if isinstance(data, MemoryReader) else MemoryReader(bytes(data))
    records: list[tuple[int, int, bytes | None]] = []
    faults: list[Fault] = []
    end: StreamEnd | None = None
    for event in scan(MemoryStorage(reader), "x", **options):  # type: ignore[arg-type]
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
    return Seen(records, faults, end, reader.most)

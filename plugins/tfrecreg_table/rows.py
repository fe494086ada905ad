"""What a reader of a table gives: batches of rows in the first pass, and any row afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from tfrecreg.api import RawDataError, Reader, safe

BATCH = 4096
"""Rows of a batch."""
MAX_ROW = 1 << 24
"""Bytes of a row. A quote that is never closed makes a row of all that follows."""
MAX_COLUMNS = 10_000
MAX_DEPTH = 16
"""Levels of nested objects; their names are joined by `/`."""
MISSING = None


class RowPlace(NamedTuple):
    """Where a row is."""

    number: int
    """Of the row, from 1."""
    line: int
    """The number of its first line, from 1; that of the row where a table has no lines."""
    start: int
    """Its first byte; its position where a table has no lines."""
    length: int
    """In bytes."""


class BadRow(NamedTuple):
    """A row that cannot be read."""

    line: int
    code: str
    detail: str


@dataclass
class RowBatch:
    """Rows that follow each other."""

    places: list[RowPlace]
    columns: Mapping[str, Sequence[Any]]
    """A value for each place; None for a missing one."""
    bad: list[BadRow] = field(default_factory=list)


class RowError(Exception):
    """A row can no longer be read; the message says why."""


class RowReader(Protocol):
    """One table."""

    unit: str
    """What its rows are counted in: ``line`` or ``row``."""

    def batches(self) -> Iterator[RowBatch]:
        """All rows, in their order."""

    def row(self, start: int, length: int) -> Mapping[str, Any]:
        """The values of one row by column, without those that are missing."""


class Lines:
    """The lines of a file in UTF-8, and the number of bytes read so far."""

    def __init__(self, file: Reader, name: str, start: int) -> None:
        self._file = file
        self._name = name
        self.start = start
        """The first byte of the row that is being read; the caller sets it."""
        self.end = start
        """The first byte behind the lines handed out."""
        self.count = 0
        """Lines handed out."""

    def __iter__(self) -> Iterator[str]:
        at, rest = self.start, b""
        while piece := self._file.read_at(at, 1 << 20):
            at += len(piece)
            block = rest + piece
            cut = block.rfind(b"\n") + 1
            if not cut and len(block) > MAX_ROW:
                raise self.too_long(self.count + 1)
            rest = block[cut:]
            yield from self._split(block[:cut])
        for line in self._split(rest + b"\n" if rest else b""):
            self.end -= 1  # the line feed that is not there
            yield line

    def _split(self, block: bytes) -> Iterator[str]:
        if b"\0" in block:
            number = self.count + block.count(b"\n", 0, block.index(b"\0")) + 1
            raise RawDataError(
                f"`{safe(self._name)}`, line {number}: a NUL byte, which no text has",
                hint="is it another format, or a file that was not written to its end?",
            )
        try:
            text = block.decode()
        except UnicodeDecodeError as error:
            number = self.count + block.count(b"\n", 0, error.start) + 1
            raise RawDataError(
                f"`{safe(self._name)}`, line {number}: not UTF-8 ({error.reason} "
                f"0x{block[error.start]:02x})",
                hint=f"convert it: `iconv -f latin1 -t utf-8 {safe(self._name)}`",
            ) from error
        lines = text.split("\n")
        lines.pop()
        if text.isascii():
            for line in lines:
                self.count += 1
                self.end += len(line) + 1
                yield line + "\n"
        else:
            for line in lines:
                self.count += 1
                self.end += len(line.encode()) + 1
                yield line + "\n"

    def too_long(self, line: int) -> RawDataError:
        """The error about a row above the limit."""
        return RawDataError(
            f"`{safe(self._name)}`, line {line}: a row of more than {MAX_ROW >> 20} MiB",
            hint="a quote that is never closed takes all lines behind it: look at this line",
        )


def text_start(file: Reader, name: str) -> int:
    """The first byte of a text behind its byte order mark."""
    head = file.read_at(0, 4)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff") or head == b"\0\0\xfe\xff":
        raise RawDataError(
            f"`{safe(name)}` is in UTF-16 or UTF-32, expected UTF-8",
            hint=f"convert it: `iconv -f utf-16 -t utf-8 {safe(name)}`",
        )
    if head[:2] in (b"\x1f\x8b", b"PK") or head == b"\x28\xb5\x2f\xfd":
        raise RawDataError(
            f"`{safe(name)}` is compressed, so its rows cannot be read in any order",
            hint=f"decompress it: `gunzip -k {safe(name)}` or `unzip {safe(name)}`",
        )
    return 3 if head[:3] == b"\xef\xbb\xbf" else 0


def flatten(value: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an object by name, without missing ones; names of inner objects follow `/`."""
    found: dict[str, Any] = {}
    _flatten(value, "", found, MAX_DEPTH)
    return found


def _flatten(value: Mapping[str, Any], above: str, found: dict[str, Any], depth: int) -> None:
    if not depth:
        raise RowError(f"objects nested more than {MAX_DEPTH} deep")
    for name, each in value.items():
        path = above + name
        if isinstance(each, dict):
            _flatten(each, f"{path}/", found, depth - 1)
        elif each is not None:
            if path in found:
                raise RowError(f"two values are called `{safe(path, limit=60)}`")
            found[path] = each
    if len(found) > MAX_COLUMNS:
        raise RowError(f"more than {MAX_COLUMNS} values")

"""The rows of tables: batches of them in the first pass, and any row afterwards.

CSV and JSON Lines are parsed by the standard library, line by line. It reports each row that it
cannot parse, keeps integers and texts as they are written, and reads one row from its place.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tfrecreg.api import (
    ParquetReader,
    ParquetRows,
    RawDataError,
    Storage,
    no_duplicates,
    open_local,
    safe,
)
from tfrecreg.api import ReadingFile as Reading
from tfrecreg_table.table_options import TableOptions

_BATCH = 4096
_LONGEST_CELL = 1 << 24
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Place(NamedTuple):
    """Where a row is."""

    number: int
    """Of the row, from 1."""
    line: int
    """Its first line, from 1; the number of the row where a table has no lines."""
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
class Batch:
    """Rows that follow each other."""

    places: list[Place] = field(default_factory=list)
    columns: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    """A value for each place; None for a missing one."""
    bad: list[BadRow] = field(default_factory=list)


class RowError(Exception):
    """A row cannot be read; the message says why."""


class Rows(ABC):
    """One table."""

    unit = "line"
    """What its rows are counted in."""

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """All rows, in their order."""

    @abstractmethod
    def row(self, start: int, length: int) -> Mapping[str, Any]:
        """The values of one row by column, without those that are missing."""


def open_rows(
    raw: Storage, path: str, options: TableOptions, wanted: Sequence[str] | None = None
) -> Rows:
    """The rows of a table; those of a Parquet file have the wanted columns."""
    suffix = suffix_of(path)
    if suffix == "parquet":
        return _Parquet(raw, path, wanted)
    kind = _JsonLines if suffix in ("jsonl", "ndjson", "json") else _Csv
    return kind(raw, path, options)


def suffix_of(path: str) -> str:
    """The suffix of a file, in lower case, without the dot."""
    return path.rpartition("/")[2].rpartition(".")[2].lower()


class _Text(Rows):
    """A table whose rows are lines of text in UTF-8."""

    def __init__(self, raw: Storage, path: str, options: TableOptions) -> None:
        self._path, self._options = path, options
        self._file = open_local(raw, path)
        self._start = 3 if self._file.read_at(0, 3) == _BYTE_ORDER_MARK else 0
        self._end = self._line = 0

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def _lines(self) -> Iterator[str]:
        """The lines. They set the number of the last one, and the first byte behind it."""
        self._end, self._line = self._start, 0
        file = io.BufferedReader(Reading(self._file), 1 << 20)
        file.seek(self._start)
        for line in file:
            self._end += len(line)
            self._line += 1
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise self._unreadable(self._line, error) from error
            yield text

    def _unreadable(self, line: int, error: Exception) -> RawDataError:
        return RawDataError(
            f"`{safe(self._path)}`, line {line}: {safe(str(error), limit=200)}",
            hint="a table is text in UTF-8, neither compressed nor cut short; "
            "`iconv -f latin1 -t utf-8` converts another encoding",
        )


class _Csv(_Text):
    def __init__(self, raw: Storage, path: str, options: TableOptions) -> None:
        super().__init__(raw, path, options)
        self._missing = frozenset(each.strip() for each in options.missing)
        # The limit is one of the process: it is raised for long texts, and never lowered.
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
        delimiter = "\t" if options.delimiter == "tab" else options.delimiter
        self._delimiter = delimiter or self._usual_delimiter()
        self._names = self._read_names()

    def batches(self) -> Iterator[Batch]:
        reader = csv.reader(self._lines(), delimiter=self._delimiter, strict=True)
        width, number = len(self._names), 0
        batch, rows = Batch(), list[list[str]]()
        is_header = self._options.header
        start, line = self._start, 1
        while True:
            try:
                for cells in reader:
                    length = self._end - start
                    if is_header:
                        is_header = False
                    elif len(cells) == width:
                        number += 1
                        rows.append(cells)
                        batch.places.append(Place(number, line, start, length))
                        if len(rows) == _BATCH:
                            yield self._filled(batch, rows)
                            batch, rows = Batch(), []
                    elif cells:
                        number += 1
                        some = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
                        detail = f"{some}, and the table has {width} columns"
                        batch.bad.append(BadRow(line, "SRC050", detail))
                    start, line = self._end, self._line + 1
                break
            except csv.Error as error:
                number += 1
                batch.bad.append(BadRow(line, "SRC051", self._problem(line, error)))
                start, line = self._end, self._line + 1
        yield self._filled(batch, rows)

    def row(self, start: int, length: int) -> Mapping[str, Any]:
        text = self._file.read_at(start, length).decode()
        try:
            (cells,) = csv.reader((text,), delimiter=self._delimiter, strict=True)
            pairs = list(zip(self._names, cells, strict=True))
        except (csv.Error, ValueError) as error:
            raise RowError("it changed during the build") from error
        return {name: cell for name, cell in pairs if not self._is_missing(cell)}

    def _filled(self, batch: Batch, rows: Sequence[Sequence[str]]) -> Batch:
        columns: dict[str, Sequence[str | None]] = {}
        for name, cells in zip(self._names, zip(*rows, strict=True), strict=False):
            if not self._missing and "" not in cells:
                columns[name] = cells
            else:
                columns[name] = [None if self._is_missing(cell) else cell for cell in cells]
        batch.columns = columns
        return batch

    def _is_missing(self, cell: str) -> bool:
        return not cell or (bool(self._missing) and cell.strip() in self._missing)

    def _usual_delimiter(self) -> str:
        if suffix_of(self._path) in ("tsv", "tab"):
            return "\t"
        bare = re.sub(r'"[^"]*"', "", next(self._lines(), ""))
        return next((each for each in ",\t;" if each in bare), ",")

    def _read_names(self) -> list[str]:
        reader = csv.reader(self._lines(), delimiter=self._delimiter, strict=True)
        try:
            cells = next(reader, [])
        except csv.Error as error:
            raise self._unreadable(1, error) from error
        if not self._options.header:
            return [str(number) for number in range(1, len(cells) + 1)]
        # pandas writes its index as a first column without a name.
        names = [cell.strip() or f"column{number}" for number, cell in enumerate(cells, start=1)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None or not names:
            what = "no first line" if twice is None else f"two columns `{safe(twice, limit=60)}`"
            raise RawDataError(
                f"`{safe(self._path)}` has {what}",
                hint="the first line names the columns; a table without names takes "
                "`--option header=no`",
            )
        return names

    def _problem(self, line: int, error: csv.Error) -> str:
        text = str(error)
        if "end of data" in text or "field limit" in text:  # the row takes all rows behind it
            raise self._unreadable(line, error) from error
        return safe(text)


class _JsonLines(_Text):
    def batches(self) -> Iterator[Batch]:
        rows: list[Mapping[str, Any]] = []
        batch, number, start = Batch(), 0, self._start
        for line in self._lines():
            length, at = self._end - start, start
            start = self._end
            if line.isspace():
                continue
            if not number and line.lstrip().startswith("["):
                raise RawDataError(
                    f"`{safe(self._path)}` begins with `[`: it is an array, not JSON Lines",
                    hint=f"write an object per line: `jq -c '.[]' {safe(self._path)}`",
                )
            number += 1
            try:
                rows.append(_parse(line))
            except RowError as error:
                batch.bad.append(BadRow(self._line, "SRC051", str(error)))
                continue
            batch.places.append(Place(number, self._line, at, length))
            if len(rows) == _BATCH:
                yield _by_column(batch, rows)
                batch, rows = Batch(), []
        yield _by_column(batch, rows)

    def row(self, start: int, length: int) -> Mapping[str, Any]:
        return _parse(self._file.read_at(start, length).decode())


class _Parquet(Rows):
    unit = "row"

    def __init__(self, raw: Storage, path: str, wanted: Sequence[str] | None) -> None:
        self._raw, self._path = raw, path
        with raw.open(path) as reader, ParquetReader(reader, path) as file:
            names: list[str] = file.schema.names
            self._is_nested = any(str(each.type).startswith("struct<") for each in file.schema)
        tops = {each.partition("/")[0] for each in wanted or ()}
        self._columns = [name for name in names if wanted is None or name in tops or name in wanted]
        self._rows: ParquetRows | None = None

    def batches(self) -> Iterator[Batch]:
        at = 0
        with self._raw.open(self._path) as reader, ParquetReader(reader, self._path) as file:
            for group, count in enumerate(file.rows()):
                for found in file.batches(group, self._columns) if count else ():
                    numbers = range(at, at + found.num_rows)
                    batch = Batch([Place(n + 1, n + 1, n, 1) for n in numbers])
                    at += found.num_rows
                    if self._is_nested:
                        yield _by_column(batch, [flatten(row) for row in found.to_pylist()])
                        continue
                    names = found.schema.names
                    batch.columns = {
                        name: column.to_pylist()
                        for name, column in zip(names, found.columns, strict=True)
                    }
                    yield batch

    def row(self, start: int, length: int) -> Mapping[str, Any]:  # noqa: ARG002 - rows are numbered
        if self._rows is None:
            self._rows = ParquetRows(self._raw, self._path, self._columns)
        columns, at = self._rows.row(start)
        return flatten({name: column[at].as_py() for name, column in columns.items()})


def flatten(value: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an object by name, without missing ones; names of inner objects follow `/`."""
    found: dict[str, Any] = {}
    _flatten(value, "", found)
    return found


def _flatten(value: Mapping[str, Any], above: str, found: dict[str, Any]) -> None:
    for name, each in value.items():
        path = above + name
        if isinstance(each, dict):
            _flatten(each, f"{path}/", found)
        elif path in found:
            raise RowError(f"two values are called `{safe(path, limit=60)}`")
        elif each is not None:
            found[path] = each


def _by_column(batch: Batch, rows: Sequence[Mapping[str, Any]]) -> Batch:
    names = dict.fromkeys(name for row in rows for name in row)
    batch.columns = {name: [row.get(name) for row in rows] for name in names}
    return batch


def _parse(text: str) -> Mapping[str, Any]:
    try:
        value = _DECODER.decode(text)
        if not isinstance(value, dict):
            raise RowError("expected a JSON object")
        return flatten(value)
    except (ValueError, RecursionError) as error:
        raise RowError(f"not JSON: {safe(str(error), limit=120)}") from error


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"`{text}` is beyond float64")
    return number


def _constant(text: str) -> float:
    raise ValueError(f"`{text}` is not a number of JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=no_duplicates, parse_float=_finite, parse_constant=_constant
)

"""The rows of tables: batches of them in the first pass, and any row afterwards.

CSV and JSON Lines are parsed by the standard library, line by line. It reports each row that it
cannot parse, keeps integers and texts as they are written, and reads one row from its place.
"""

from __future__ import annotations

import csv
import io
import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tfrecreg.api import (
    ParquetReader,
    ParquetRows,
    RawDataError,
    ReadingFile,
    Storage,
    no_duplicates,
    open_local,
    safe,
)
from tfrecreg_table.tables import JSON_SUFFIXES, TableOptions, suffix_of

_BATCH = 4096
_LONGEST_CELL = 1 << 24


class Place(NamedTuple):
    """Where a row is. Parquet files have numbers of rows in place of lines and bytes."""

    number: int
    line: int
    start: int
    length: int


class RowError(Exception):
    """A row cannot be used; the message says why."""

    def __init__(self, why: str, code: str = "SRC051") -> None:
        super().__init__(why)
        self.code = code


class Batch(NamedTuple):
    """Rows that follow each other."""

    places: Sequence[Place]
    columns: Mapping[str, Sequence[Any]]
    """A value for each place; None for a missing one."""
    bad: Sequence[tuple[int, RowError]] = ()
    """The lines of rows that cannot be read, and why."""


def open_rows(
    raw: Storage, path: str, options: TableOptions, wanted: Sequence[str] | None = None
) -> TextRows | ParquetTable:
    """The rows of a table; those of a Parquet file have the wanted columns."""
    suffix = suffix_of(path)
    if suffix == "parquet":
        return ParquetTable(raw, path, wanted)
    return (_JsonLines if suffix in JSON_SUFFIXES else _Csv)(raw, path, options)


class TextRows:
    """A table whose rows are lines of text in UTF-8."""

    unit = "line"
    """What its rows are counted in."""

    def __init__(self, raw: Storage, path: str, options: TableOptions) -> None:
        self._path, self._options = path, options
        self._file = open_local(raw, path)
        self._start = 3 if self._file.read_at(0, 3) == b"\xef\xbb\xbf" else 0  # byte order mark
        self._end = self._line = 0
        """The first byte behind the lines that were read, and their number."""

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def batches(self) -> Iterator[Batch]:
        """All rows, in their order."""
        rows, places, bad = list[Any](), list[Place](), list[tuple[int, RowError]]()
        for number, (line, start, row) in enumerate(self._parsed(), start=1):
            if isinstance(row, RowError):
                bad.append((line, row))
                continue
            rows.append(row)
            places.append(Place(number, line, start, self._end - start))
            if len(rows) == _BATCH:
                yield Batch(places, self._by_column(rows), bad)
                rows, places, bad = [], [], []
        yield Batch(places, self._by_column(rows), bad)

    @abstractmethod
    def _parsed(self) -> Iterator[tuple[int, int, Any]]:
        """Line, first byte and values of each row, or why it has none. It ends at `_end`."""

    @abstractmethod
    def _by_column(self, rows: Sequence[Any]) -> Mapping[str, Sequence[Any]]: ...

    @abstractmethod
    def row(self, start: int, length: int) -> Mapping[str, Any]:
        """The values of one row by column, without those that are missing."""

    def _lines(self) -> Iterator[str]:
        self._end, self._line = self._start, 0
        file = io.BufferedReader(ReadingFile(self._file), 1 << 20)
        file.seek(self._start)
        for line in file:
            self._end += len(line)
            self._line += 1
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise self._unreadable(self._line, str(error)) from error
            yield text

    def _unreadable(self, line: int, why: str) -> RawDataError:
        return RawDataError(
            f"`{safe(self._path)}`, line {line}: {safe(why, limit=200)}",
            hint="a table is text in UTF-8, neither compressed nor cut short; "
            "`iconv -f latin1 -t utf-8` converts another encoding",
        )


class _Csv(TextRows):
    def __init__(self, raw: Storage, path: str, options: TableOptions) -> None:
        super().__init__(raw, path, options)
        self._missing = frozenset(each.strip() for each in options.missing)
        # The limit is one of the process: it is raised for long texts, and never lowered.
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
        delimiter = options.delimiter
        if not delimiter:
            bare = re.sub(r'"[^"]*"', "", next(self._lines(), ""))
            is_tabs = suffix_of(path) in ("tsv", "tab")
            delimiter = "tab" if is_tabs else next((each for each in ",\t;" if each in bare), ",")
        self._delimiter = "\t" if delimiter == "tab" else delimiter
        self._names = self._read_names()

    def _read_names(self) -> list[str]:
        try:
            cells = next(csv.reader(self._lines(), delimiter=self._delimiter, strict=True), [])
        except csv.Error as error:
            raise self._unreadable(1, str(error)) from error
        if not self._options.header:
            return [str(number) for number in range(1, len(cells) + 1)]
        # pandas writes its index as a first column without a name.
        names = [cell.strip() or f"column{number}" for number, cell in enumerate(cells, start=1)]
        if not names or len({*names}) < len(names):
            what = "two columns with the same name" if names else "no first line"
            raise RawDataError(
                f"`{safe(self._path)}` has {what}",
                hint="the first line names the columns; `--option header=no`: it does not",
            )
        return names

    def _parsed(self) -> Iterator[tuple[int, int, list[str] | RowError]]:
        reader = csv.reader(self._lines(), delimiter=self._delimiter, strict=True)
        width = len(self._names)
        self._end, self._line = self._start, 0
        if self._options.header:
            next(reader)
        while True:
            start, line = self._end, self._line + 1
            try:
                cells = next(reader, None)
            except csv.Error as error:
                why = str(error)
                if "end of data" in why or "field limit" in why:  # it takes all rows behind it
                    raise self._unreadable(line, why) from error
                yield line, start, RowError(safe(why))
                continue
            if cells is None:
                return
            if len(cells) == width:
                yield line, start, cells
            elif cells:
                why = f"expected {width} cells, found {len(cells)}"
                yield line, start, RowError(why, "SRC050")

    def _by_column(self, rows: Sequence[Sequence[str]]) -> Mapping[str, Sequence[str | None]]:
        columns: dict[str, Sequence[str | None]] = {}
        for name, cells in zip(self._names, zip(*rows, strict=True), strict=False):
            columns[name] = cells
            if "" in cells or self._missing:
                columns[name] = [None if self._is_missing(cell) else cell for cell in cells]
        return columns

    def _is_missing(self, cell: str) -> bool:
        return not cell or (bool(self._missing) and cell.strip() in self._missing)

    def row(self, start: int, length: int) -> Mapping[str, Any]:
        text = self._file.read_at(start, length).decode()
        try:
            (cells,) = csv.reader((text,), delimiter=self._delimiter, strict=True)
            pairs = list(zip(self._names, cells, strict=True))
        except (csv.Error, ValueError) as error:
            raise RowError("it changed during the build") from error
        return {name: cell for name, cell in pairs if not self._is_missing(cell)}


class _JsonLines(TextRows):
    def _parsed(self) -> Iterator[tuple[int, int, Mapping[str, Any] | RowError]]:
        end = self._start
        for line in self._lines():
            start, end = end, self._end
            if not line.isspace():
                try:
                    yield self._line, start, _parse(line)
                except RowError as error:
                    yield self._line, start, error

    def _by_column(self, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[Any]]:
        return _columns_of(rows)

    def row(self, start: int, length: int) -> Mapping[str, Any]:
        return _parse(self._file.read_at(start, length).decode())


class ParquetTable:
    """A table that keeps its types."""

    unit = "row"

    def __init__(self, raw: Storage, path: str, wanted: Sequence[str] | None) -> None:
        self._raw, self._path = raw, path
        with raw.open(path) as reader, ParquetReader(reader, path) as file:
            names: list[str] = file.schema.names
        tops = {part for each in wanted or () for part in (each, each.partition("/")[0])}
        self._names = [name for name in names if wanted is None or name in tops]
        self._rows: ParquetRows | None = None

    def batches(self) -> Iterator[Batch]:
        """All rows, in their order."""
        at = 0
        with self._raw.open(self._path) as reader, ParquetReader(reader, self._path) as file:
            for group, count in enumerate(file.rows()):
                for found in file.batches(group, self._names) if count else ():
                    numbers = range(at, at + found.num_rows)
                    at += found.num_rows
                    if any(str(each.type).startswith("struct<") for each in found.schema):
                        columns = _columns_of([flatten(row) for row in found.to_pylist()])
                    else:
                        columns = found.to_pydict()
                    yield Batch([Place(n + 1, n + 1, n, 1) for n in numbers], columns)

    def row(self, start: int, length: int) -> Mapping[str, Any]:  # noqa: ARG002 - rows are numbered
        """The values of one row by column, without those that are missing."""
        if self._rows is None:
            self._rows = ParquetRows(self._raw, self._path, self._names)
        columns, at = self._rows.row(start)
        return flatten({name: column[at].as_py() for name, column in columns.items()})


def flatten(
    value: Mapping[str, Any], above: str = "", into: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The values of an object by name, without missing ones; names of inner objects follow `/`."""
    found: dict[str, Any] = {} if into is None else into
    for name, each in value.items():
        path = above + name
        if isinstance(each, dict):
            flatten(each, f"{path}/", found)
        elif path in found:
            raise RowError(f"two values are called `{safe(path, limit=60)}`")
        elif each is not None:
            found[path] = each
    return found


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _parse(text: str) -> Mapping[str, Any]:
    try:
        value = _DECODER.decode(text)
        if not isinstance(value, dict):
            raise RowError("expected a JSON object per line, as `jq -c '.[]'` writes them")
        return flatten(value)
    except (ValueError, RecursionError) as error:
        raise RowError(f"not JSON: {safe(str(error), limit=120)}") from error


def _constant(text: str) -> float:
    raise ValueError(f"`{text}` is not a number of JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=no_duplicates, parse_constant=_constant)

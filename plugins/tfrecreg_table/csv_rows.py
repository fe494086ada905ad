"""The rows of CSV and TSV files.

They are parsed by the module `csv` of the standard library and not by pyarrow: it reads one row
from any byte of the file, which says where a row is, and what is wrong with it. pyarrow reads
blocks into columns of inferred types, and its error ends the reading.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tfrecreg.api import RawDataError, Reader, safe
from tfrecreg_table.rows import (
    BATCH,
    MAX_COLUMNS,
    MAX_ROW,
    BadRow,
    Lines,
    RowBatch,
    RowError,
    RowPlace,
    text_start,
)


class CsvRows:
    """A CSV or TSV. See :class:`~tfrecreg_table.rows.RowReader`."""

    unit = "line"

    def __init__(
        self, file: Reader, name: str, delimiter: str, header: bool, missing: Sequence[str]
    ) -> None:
        self._file, self._name, self._has_header = file, name, header
        self._missing = frozenset(each.strip() for each in missing)
        self._start = text_start(file, name)
        # The limit is one of the process: it is raised for long texts, and never lowered.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_ROW))
        self._line = 1  # the first of the row that is being read
        self.delimiter = delimiter or self._find_delimiter()
        self.names = self._read_names()

    def batches(self) -> Iterator[RowBatch]:
        lines = Lines(self._file, self._name, self._start)
        reader = csv.reader(self._checked(lines), delimiter=self.delimiter, strict=True)
        width, rows, batch = len(self.names), list[list[str]](), RowBatch([], {})
        start, number = lines.end, 0
        skip = self._has_header
        self._line = 1
        while True:
            try:
                for cells in reader:
                    end = lines.end
                    if skip:
                        skip = False
                    elif len(cells) == width:
                        number += 1
                        rows.append(cells)
                        batch.places.append(RowPlace(number, self._line, start, end - start))
                        if len(rows) == BATCH:
                            yield self._filled(batch, rows)
                            rows, batch = [], RowBatch([], {})
                    elif cells:
                        number += 1
                        some = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
                        detail = f"{some}, and the table has {width} columns"
                        batch.bad.append(BadRow(self._line, "SRC050", detail))
                    start = lines.start = end
                    self._line = lines.count + 1
                break
            except csv.Error as error:
                if "unexpected end of data" in str(error):
                    raise RawDataError(
                        f"`{safe(self._name)}`, line {self._line}: a quote that is never closed",
                        hint="a quote in a cell is written twice, and the cell in quotes",
                    ) from error
                if "field limit" in str(error):
                    raise lines.too_long(self._line) from error
                number += 1
                batch.bad.append(BadRow(self._line, "SRC051", _problem(error)))
                start = lines.start = lines.end
                self._line = lines.count + 1
        yield self._filled(batch, rows)

    def row(self, start: int, length: int) -> Mapping[str, Any]:
        data = self._file.read_at(start, length)
        try:
            (cells,) = csv.reader((data.decode(),), delimiter=self.delimiter, strict=True)
        except (ValueError, csv.Error) as error:
            raise RowError(str(error)) from error
        if len(cells) != len(self.names) or len(data) != length:
            raise RowError("it changed during the build")
        return {
            name: cell
            for name, cell in zip(self.names, cells, strict=True)
            if not self._is_missing(cell)
        }

    def _is_missing(self, cell: str) -> bool:
        return not cell or (bool(self._missing) and cell.strip() in self._missing)

    def _filled(self, batch: RowBatch, rows: Sequence[Sequence[str]]) -> RowBatch:
        columns: dict[str, Sequence[str | None]] = {}
        for name, cells in zip(self.names, zip(*rows, strict=True), strict=False):
            if not self._missing and "" not in cells:
                columns[name] = cells
            else:
                columns[name] = [None if self._is_missing(cell) else cell for cell in cells]
        batch.columns = columns
        return batch

    def _checked(self, lines: Lines) -> Iterator[str]:
        """The lines; refuses rows above the limits before they are parsed."""
        for line in lines:
            if lines.end - lines.start > MAX_ROW:
                raise lines.too_long(self._line)
            if len(line) > 1 << 16 and line.count(self.delimiter) > MAX_COLUMNS * 10:
                raise RawDataError(
                    f"`{safe(self._name)}`, line {lines.count}: more than {MAX_COLUMNS * 10} cells",
                    hint="is it a CSV, and is `delimiter` right?",
                )
            yield line

    def _find_delimiter(self) -> str:
        if self._name.lower().endswith((".tsv", ".tab")):
            return "\t"
        line = next(iter(Lines(self._file, self._name, self._start)), "")
        bare = re.sub(r'"[^"]*"', "", line)
        return next((each for each in ",\t;" if each in bare), ",")

    def _read_names(self) -> list[str]:
        lines = Lines(self._file, self._name, self._start)
        reader = csv.reader(self._checked(lines), delimiter=self.delimiter, strict=True)
        try:
            cells = next(reader, [])
        except csv.Error as error:
            raise RawDataError(
                f"`{safe(self._name)}`, line 1: {_problem(error)}",
                hint="the first line names the columns",
            ) from error
        if not cells:
            raise RawDataError(
                f"`{safe(self._name)}` has no first line", hint="expected the names of the columns"
            )
        if len(cells) > MAX_COLUMNS:
            raise RawDataError(
                f"`{safe(self._name)}` has {len(cells)} columns, at most {MAX_COLUMNS} are read",
                hint="is it a CSV, and is `delimiter` right?",
            )
        if not self._has_header:
            return [str(number) for number in range(1, len(cells) + 1)]
        names = [cell.strip() for cell in cells]
        for number, name in enumerate(names, start=1):
            if names.index(name) != number - 1:
                raise RawDataError(
                    f"`{safe(self._name)}` has two columns `{safe(name, limit=60)}`: "
                    f"{names.index(name) + 1} and {number}",
                    hint="rename one of them; a table without names takes `--option header=no`",
                )
        # pandas writes its index as a first column without a name.
        return [name or f"column{number}" for number, name in enumerate(names, start=1)]


def _problem(error: csv.Error) -> str:
    text = str(error)
    if "new-line character" in text:
        return "lines end with CR alone, or a cell without quotes holds one"
    if "expected after" in text:
        return "text behind the quote that ends a cell"
    return safe(text)

"""The rows of Parquet files, read by pyarrow.

Rows of a build are read in another order than they are stored, and a page of Parquet can only be
decompressed as a whole. So a process that makes records writes the columns it needs into a
temporary Arrow file, without compression, and maps it into memory: any row can be read at once, and
the system can reclaim the memory.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from tfrecreg.api import ParquetReader, RawDataError, Reader, StorageError, safe
from tfrecreg_table.rows import BATCH, MAX_COLUMNS, RowBatch, RowError, RowPlace, flatten

_SPOOLED = 1 << 14
"""Rows of a batch in the temporary file."""


class ParquetRows:
    """A Parquet file. See :class:`~tfrecreg_table.rows.RowReader`."""

    unit = "row"

    def __init__(self, file: Reader, name: str, wanted: Sequence[str] | None = None) -> None:
        self._name = name
        self._file = ParquetReader(file, name)
        self._groups = self._file.groups()
        names = self._file.schema.names
        if len(names) > MAX_COLUMNS or len(set(names)) != len(names):
            raise RawDataError(
                f"`{safe(name)}` has {len(names)} columns, {len(set(names))} different names",
                hint=f"at most {MAX_COLUMNS} are read, and each needs a name of its own",
            )
        tops = names if wanted is None else {each.partition("/")[0] for each in wanted}
        self._columns = [each for each in names if each in tops or wanted is None or each in wanted]
        kinds = [self._file.schema.field(each).type for each in self._columns]
        self._nested = any(_arrow().types.is_struct(kind) for kind in kinds)
        self._spool: _Spool | None = None

    def batches(self) -> Iterator[RowBatch]:
        at = 0
        for found in self._read(BATCH):
            rows = found.num_rows
            places = [RowPlace(at + n + 1, at + n + 1, at + n, 1) for n in range(rows)]
            if self._nested:
                try:
                    flat = [flatten(row) for row in found.to_pylist()]
                except RowError as error:
                    raise RawDataError(
                        f"`{safe(self._name)}`: {error}",
                        hint="name the columns to take: --option columns=",
                    ) from error
                names = dict.fromkeys(name for row in flat for name in row)
                columns = {name: [row.get(name) for row in flat] for name in names}
            else:
                columns = {
                    name: found.column(number).to_pylist()
                    for number, name in enumerate(found.schema.names)
                }
            yield RowBatch(places, columns)
            at += rows

    def row(self, start: int, length: int) -> Mapping[str, Any]:  # noqa: ARG002 - rows are numbered
        if self._spool is None:
            self._spool = self._write_spool()
        return flatten(self._spool.row(start))

    def _read(self, size: int) -> Iterator[Any]:
        for group in range(len(self._groups)):
            yield from self._file.batches(group, self._columns, size)

    def _write_spool(self) -> _Spool:
        """The columns in a temporary file, whose name goes as soon as it is mapped."""
        arrow = _arrow()
        try:
            with tempfile.NamedTemporaryFile(prefix="tfrecreg-") as file:
                batches = self._read(_SPOOLED)
                first = next(batches, None)
                if first is None:
                    raise RowError("the table has no rows any more")
                with arrow.ipc.new_file(file, first.schema) as writer:
                    writer.write_batch(first)
                    for each in batches:
                        writer.write_batch(each)
                file.flush()
                return _Spool(arrow.ipc.open_file(arrow.memory_map(file.name)))
        except OSError as error:
            raise StorageError(
                f"cannot write the rows of `{safe(self._name)}` into a temporary file: "
                f"{error.strerror or error}",
                hint="set TMPDIR to a folder with room for the decompressed table",
            ) from error


class _Spool:
    """Rows in memory that is mapped from a file."""

    def __init__(self, reader: Any) -> None:
        self._batches = [reader.get_batch(n) for n in range(reader.num_record_batches)]
        self._names = reader.schema.names
        self._ends = list(accumulate(each.num_rows for each in self._batches))
        self._columns = [each.columns for each in self._batches]

    def row(self, number: int) -> dict[str, Any]:
        """The values of a row by column."""
        batch = bisect_right(self._ends, number)
        if batch == len(self._ends):
            raise RowError("the row is not there any more")
        at = number - (self._ends[batch - 1] if batch else 0)
        columns = zip(self._names, self._columns[batch], strict=True)
        return {name: column[at].as_py() for name, column in columns}


def _arrow() -> Any:
    import pyarrow

    return pyarrow

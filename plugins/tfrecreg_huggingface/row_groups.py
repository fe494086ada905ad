"""Row groups for rows in any order, each decoded once.

A build makes its records in an order of its own, so a worker comes back to a row group many times.
Decoded row groups stay in memory while all of them together are small. Otherwise they go into a
temporary file without a name, in Arrow's format, of which the rows are mapped into memory: it takes
as much room in `TMPDIR` as the decoded data, and goes with the process.
"""

from __future__ import annotations

import mmap
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

from tfrecreg.api import ParquetReader, RawDataError, Reader, Storage, StorageError, safe
from tfrecreg_huggingface.arrow import arrow

MEMORY_BYTES = 256 << 20
"""Decoded bytes of all files up to which they stay in memory."""
_OPEN_FILES = 8
_OPEN_GROUPS = 64
_BATCH_ROWS = 64
"""Rows that are decoded at once: a row group that is larger than its footer says is noticed."""
_KEYS = 4096
"""The same where only keys are read."""


class RowGroups:
    """The rows of some files. Each process has its own."""

    def __init__(
        self, raw: Storage, paths: Sequence[str], columns: Sequence[str], in_memory: bool
    ) -> None:
        self._raw = raw
        self._paths = paths
        self._columns = list(columns)
        self._in_memory = in_memory
        self._files: OrderedDict[int, tuple[Reader, ParquetReader]] = OrderedDict()
        self._groups: OrderedDict[tuple[int, int], Any] = OrderedDict()
        self._places: dict[tuple[int, int], tuple[int, int]] = {}
        self._spool: list[Any] = []
        weakref.finalize(self, _close, self._files, self._spool)

    def row(self, file: int, group: int, row: int, rows: int) -> dict[str, Any]:
        """The cells of a row by column: arrays of length 1."""
        table = self._group(file, group, rows)
        return {name: table.column(name).slice(row, 1).combine_chunks() for name in self._columns}

    def _group(self, file: int, group: int, rows: int) -> Any:
        place = file, group
        table = self._groups.get(place)
        if table is not None:
            self._groups.move_to_end(place)
            return table
        if place in self._places:
            table = self._mapped(*self._places[place])
        else:
            table = self._decoded(file, group, rows)
            if not self._in_memory:
                self._places[place] = self._spooled(table)
                table = self._mapped(*self._places[place])
        self._groups[place] = table
        if not self._in_memory and len(self._groups) > _OPEN_GROUPS:
            self._groups.popitem(last=False)
        return table

    def _decoded(self, file: int, group: int, rows: int) -> Any:
        batches = list(self._file(file).batches(group, self._columns, _BATCH_ROWS))
        found = sum(batch.num_rows for batch in batches)
        if found != rows:
            raise RawDataError(
                f"row group {group} of `{safe(self._paths[file])}` should have {rows} rows, found "
                f"{found}",
                hint="build again when no other process writes to the raw data",
            )
        return arrow().Table.from_batches(batches).select(self._columns)

    def _file(self, number: int) -> ParquetReader:
        found = self._files.get(number)
        if found is not None:
            self._files.move_to_end(number)
            return found[1]
        if len(self._files) >= _OPEN_FILES:
            reader, parquet = self._files.popitem(last=False)[1]
            parquet.close()
            reader.close()
        path = self._paths[number]
        reader = self._raw.open(path)
        try:
            parquet = ParquetReader(reader, path)
        except BaseException:
            reader.close()
            raise
        self._files[number] = reader, parquet
        return parquet

    def _spooled(self, table: Any) -> tuple[int, int]:
        """Put a table into the temporary file; where it is."""
        pa = arrow()

        try:
            if not self._spool:
                file = tempfile.TemporaryFile(prefix="tfrecreg-")  # noqa: SIM115 - closed with this
                self._spool.append(file)
            (file,) = self._spool
            start = -(-file.seek(0, 2) // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
            file.seek(start)
            with pa.ipc.new_stream(file, table.schema) as writer:
                writer.write_table(table)
            file.flush()
            return start, file.tell() - start
        except OSError as error:
            raise StorageError(
                f"cannot keep decoded rows in a temporary file: {safe(str(error), limit=200)}",
                hint="set TMPDIR to a folder with room for the decoded data of each worker, or use "
                "fewer: `--jobs 1`",
            ) from error

    def _mapped(self, start: int, length: int) -> Any:
        pa = arrow()

        (file,) = self._spool
        memory = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ, offset=start)
        return pa.ipc.open_stream(pa.py_buffer(memory)).read_all()


def read_keys(raw: Storage, path: str, column: str) -> Iterator[list[Any]]:
    """The values of a column in each row group."""
    pa = arrow()

    with raw.open(path) as reader, ParquetReader(reader, path) as parquet:
        if column not in parquet.schema.names:
            raise RawDataError(
                f"there is no column `{safe(column)}`, which the option `key` names",
                hint="the columns are "
                + ", ".join(f"`{safe(name)}`" for name in parquet.schema.names[:20]),
            )
        kind = parquet.schema.field(column).type
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if not (is_text or pa.types.is_integer(kind)):
            raise RawDataError(
                f"the column `{safe(column)}` of `{safe(path)}` is {kind}, and keys are texts or "
                "integers",
                hint="name another one: `--option key=NAME`",
            )
        for number in range(parquet.metadata.num_row_groups):
            batches = parquet.batches(number, [column], _KEYS)
            yield [key for batch in batches for key in batch.column(0).to_pylist()]


def _close(files: OrderedDict[int, tuple[Reader, ParquetReader]], spool: list[Any]) -> None:
    while files:
        reader, parquet = files.popitem()[1]
        parquet.close()
        reader.close()
    while spool:
        spool.pop().close()

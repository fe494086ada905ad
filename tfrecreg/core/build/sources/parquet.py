"""Reads third-party Parquet files with pyarrow: all rows in order, or single rows in any order."""

from __future__ import annotations

import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from inspect import signature
from itertools import accumulate
from typing import Any

from tfrecreg.core.storage.interface import Readable, Reader
from tfrecreg.core.storage.remote_reader import ReadingFile
from tfrecreg.core.values.errors import MissingExtraError, RawDataError, StorageError
from tfrecreg.core.values.text import safe

_LEAST_ROWS, _MOST_ROWS, _BATCH_BYTES = 64, 4096, 1 << 26
"""Minimum and maximum rows of a batch, and its maximum size in bytes."""


class ParquetReader:
    """A Parquet file, read by pyarrow. Close it, or use it as a context manager.

    Args:
        reader: reads its bytes.
        path: the path for error messages.

    Raises:
        RawDataError: it is not Parquet.
        MissingExtraError: pyarrow is not installed.
    """

    def __init__(self, reader: Reader, path: str) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError as error:
            raise MissingExtraError("reading Parquet", "parquet") from error
        self._unreadable = (pyarrow.ArrowException, OSError, ValueError, KeyError, MemoryError)
        self._path = path
        name = "page_checksum_verification"  # unknown to older pyarrow
        known = signature(pyarrow.parquet.ParquetFile).parameters
        options = {name: True} if name in known else {}
        try:
            self._file: Any = pyarrow.parquet.ParquetFile(ReadingFile(reader), **options)
            self.schema: Any = self._file.schema_arrow
            self.metadata: Any = self._file.metadata
        except self._unreadable as error:
            raise self._refusal(str(error)) from None

    def __enter__(self) -> ParquetReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close pyarrow's file, but not the reader of the bytes."""
        self._file.close()

    def rows(self) -> list[int]:
        """The number of rows of each row group."""
        groups = map(self.metadata.row_group, range(self.metadata.num_row_groups))
        return [group.num_rows for group in groups]

    def batches(self, group: int, columns: Sequence[str]) -> Iterator[Any]:
        """The rows of a row group, as record batches of Arrow.

        Args:
            columns: their names. The result may also have columns named `NAME.…`.

        Raises:
            RawDataError: the row group cannot be decoded, or has more or fewer rows than stated.
        """
        metadata = self.metadata.row_group(group)
        expected, size = metadata.num_rows, max(metadata.total_byte_size, 1)
        most = max(_LEAST_ROWS, min(_MOST_ROWS, expected * _BATCH_BYTES // size))
        rows = 0
        try:
            for batch in self._file.iter_batches(
                batch_size=most, row_groups=[group], columns=list(columns), use_threads=False
            ):
                rows += batch.num_rows
                yield batch
        except self._unreadable as error:
            raise self._refusal(str(error)) from None
        if rows != expected:
            raise self._refusal(f"row group {group} should have {expected} rows, found {rows}")

    def _refusal(self, why: str) -> RawDataError:
        why = safe(" ".join(why.split()), limit=200)
        return RawDataError(f"`{self._path}` cannot be read as Parquet: {why}")


class ParquetRows:
    """Reads rows of a Parquet file in the order that the caller wants.

    A page of Parquet can only be decompressed as a whole. So when a row is needed, its whole row
    group is decoded into a temporary file. The file is mapped into memory.
    """

    def __init__(self, storage: Readable, path: str, columns: Sequence[str]) -> None:
        self._storage, self._path, self._columns = storage, path, columns
        self._groups: dict[int, tuple[list[int], list[dict[str, Any]]]] = {}
        with storage.open(path) as reader, ParquetReader(reader, path) as file:
            self._ends = list(accumulate(file.rows()))

    def row(self, number: int) -> tuple[dict[str, Any], int]:
        """The Arrow arrays that contain the row, by column, and the row's position in every array.

        Raises:
            RawDataError: its row group cannot be decoded.
            StorageError: the temporary file cannot be written.
        """
        group = bisect_right(self._ends, number)
        if group not in self._groups:
            self._groups[group] = self._decoded(group)
        ends, batches = self._groups[group]
        at = number - (self._ends[group - 1] if group else 0)
        batch = bisect_right(ends, at)
        return batches[batch], at - (ends[batch - 1] if batch else 0)

    def _decoded(self, group: int) -> tuple[list[int], list[dict[str, Any]]]:
        import pyarrow as pa

        try:
            with (
                tempfile.NamedTemporaryFile(prefix="tfrecreg-") as spool,
                self._storage.open(self._path) as reader,
                ParquetReader(reader, self._path) as file,
            ):
                batches = file.batches(group, self._columns)
                first = next(batches)
                with pa.ipc.new_stream(spool, first.schema) as writer:
                    writer.write_batch(first)
                    for batch in batches:
                        writer.write_batch(batch)
                spool.flush()
                found = list(pa.ipc.open_stream(pa.memory_map(spool.name)))
        except OSError as error:
            raise StorageError(
                f"cannot write rows of `{self._path}` into a temporary file: "
                f"{error.strerror or error}"
            ) from error
        ends = list(accumulate(batch.num_rows for batch in found))
        return ends, [dict(zip(batch.schema.names, batch.columns, strict=True)) for batch in found]

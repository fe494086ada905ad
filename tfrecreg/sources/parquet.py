"""Parquet files of third parties, read by pyarrow.

Their footers are held against the size of the file, and a row group that grows out of proportion is
refused while it is decoded. Checksums of pages are verified where a file has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import signature
from typing import Any, NamedTuple

from tfrecreg.errors import MissingExtraError, RawDataError
from tfrecreg.storage.file_object import ReadingFile
from tfrecreg.storage.interface import Reader
from tfrecreg.text import safe

_MAX_FOOTER = 1 << 28
_MAX_RATIO = 1000
"""Most rows for each byte of a file: a column of equal values takes next to nothing."""
_MAX_BATCH = 1 << 28
"""Bytes of the values of one column in a batch, where a dictionary has them; but"""
_LEAST_ROWS = 64
"""rows are not too many for any."""
_MAX_GROWTH = 64
"""How many times larger than its pages a row group may be when it is decoded, and"""
_GROWN = 2 << 30
"""by how many bytes at most; but"""
_ANY_SIZE = 1 << 30
"""bytes are not too many for any."""
_MAGIC = b"PAR1"
_TAIL = 8


class GroupSize(NamedTuple):
    """What a footer says of a row group."""

    rows: int
    bytes: int
    """Decompressed."""


class ParquetReader:
    """A Parquet file, read by pyarrow. Close it, or use it as a context manager.

    Args:
        reader: of its bytes.
        path: for errors.

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
        self._reader, self._path = reader, path
        size = reader.size
        tail = reader.read_at(max(size - _TAIL, 0), _TAIL)
        footer = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or reader.read_at(0, 4) != _MAGIC:
            raise self._refusal(f"it does not begin and end with `{_MAGIC.decode()}`")
        if footer > min(size - _TAIL - 4, _MAX_FOOTER):
            raise self._refusal(f"its footer should have {footer} bytes, the file has {size}")
        try:
            self._file: Any = pyarrow.parquet.ParquetFile(
                ReadingFile(reader),
                thrift_string_size_limit=_MAX_FOOTER,
                thrift_container_size_limit=10_000_000,
                **_checksums(pyarrow.parquet.ParquetFile),
            )
            self.schema: Any = self._file.schema_arrow
            self.metadata: Any = self._file.metadata
        except self._unreadable as error:
            raise self._refusal(str(error)) from None

    def __enter__(self) -> ParquetReader:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close what pyarrow has open; not the reader of the bytes."""
        self._file.close()

    def groups(self) -> list[GroupSize]:
        """The sizes of the row groups.

        Raises:
            RawDataError: they cannot be true.
        """
        return [self._group(number) for number in range(self.metadata.num_row_groups)]

    def batches(self, group: int, columns: Sequence[str], most: int) -> Iterator[Any]:
        """The rows of a row group, some at a time, as Arrow's record batches.

        Args:
            columns: their names, in the order of the file.
            most: rows of a batch; it has fewer where a dictionary may be large.

        Raises:
            RawDataError: the row group cannot be decoded, or is not what its footer says.
        """
        expected = self._group(group)
        if not expected.rows:  # its columns have no pages
            return
        limit = max(_ANY_SIZE, expected.bytes + min(_MAX_GROWTH * expected.bytes, _GROWN))
        rows = size = 0
        try:
            for batch in self._file.iter_batches(
                batch_size=min(most, max(_LEAST_ROWS, _MAX_BATCH // self._dictionary(group))),
                row_groups=[group],
                columns=list(columns),
                use_threads=False,
            ):
                rows += batch.num_rows
                size += batch.nbytes
                if rows > expected.rows or size > limit:
                    break
                yield batch
        except self._unreadable as error:
            raise self._refusal(str(error)) from None
        if size > limit:
            raise self._refusal(
                f"row group {group} of {expected.bytes} bytes has more than {limit} when decoded"
            )
        if rows != expected.rows:
            found = "more" if rows > expected.rows else str(rows)
            raise self._refusal(
                f"row group {group} should have {expected.rows} rows, found {found}"
            )

    def _group(self, number: int) -> GroupSize:
        group = self.metadata.row_group(number)
        rows, size = group.num_rows, group.total_byte_size
        if not 0 <= rows <= _MAX_RATIO * self._reader.size:
            what = f"row group {number} of {self._reader.size} bytes has {rows} rows"
            raise self._refusal(what)
        for position in range(group.num_columns):
            size = max(size, group.column(position).total_uncompressed_size)
        if size < 0:
            raise self._refusal(f"row group {number} has {size} bytes")
        return GroupSize(rows, size)

    def _dictionary(self, number: int) -> int:
        """The bytes that the largest dictionary of texts in a row group has at most."""
        group = self.metadata.row_group(number)
        chunks = map(group.column, range(group.num_columns))
        return max(
            each.total_uncompressed_size
            if each.has_dictionary_page and "BYTE_ARRAY" in each.physical_type
            else 1
            for each in chunks
        )

    def _refusal(self, why: str) -> RawDataError:
        return RawDataError(
            f"`{safe(self._path)}` cannot be read as Parquet: "
            f"{safe(' '.join(why.split()), limit=200)}",
            hint="fetch it again: one that was not written to its end has no footer, and a clone "
            "without git-lfs has pointers in place of files",
        )


def _checksums(kind: type) -> dict[str, bool]:
    """The option by which pyarrow verifies the checksums of pages; older ones do not have it."""
    name = "page_checksum_verification"
    return {name: True} if name in signature(kind).parameters else {}

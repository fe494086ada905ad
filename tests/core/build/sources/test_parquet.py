"""Parquet files of strangers: read in their order or in any, damage in one line."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfrecreg.core.build.sources.parquet import ParquetReader, ParquetRows
from tfrecreg.core.example.model import varint
from tfrecreg.core.storage.local import LocalStorage
from tfrecreg.core.values.errors import RawDataError

ROWS = 5000
START = "`x.parquet` cannot be read as Parquet: "


def write(folder: Path, columns: dict[str, Any], **options: Any) -> Path:
    path = folder / "x.parquet"
    pq.write_table(pa.table(columns), path, **options)
    return path


def with_rows(path: Path, rows: int) -> None:
    """Let the footer, whose numbers of rows are :data:`ROWS`, say another one."""
    data = path.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8].replace(varint(2 * ROWS), varint(2 * rows))
    path.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def read(path: Path) -> list[Any]:
    with (
        LocalStorage(path.parent).open(path.name) as reader,
        ParquetReader(reader, path.name) as file,
    ):
        names = file.schema.names
        groups = range(len(file.rows()))
        return [batch for group in groups for batch in file.batches(group, names)]


def refusal(function: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(RawDataError) as caught:
        function(*arguments)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    return caught.value.message


def test_values_that_repeat_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, {"t": ["a long label" * 100, "b"] * 5000, "n": range(10_000)})
    batches = read(path)
    assert pa.Table.from_batches(batches).to_pydict()["t"][-2:] == ["a long label" * 100, "b"]
    assert len(batches) == 3


def test_other_rows_than_the_footer_says_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"n": range(ROWS)}, use_dictionary=False)
    with_rows(path, 8000)
    assert refusal(read, path) == f"{START}row group 0 should have 8000 rows, found {ROWS}"


def test_rows_are_read_in_any_order(tmp_path: Path) -> None:
    values = [f"{number}" if number % 5 else None for number in range(ROWS)]
    column = pa.array(values).dictionary_encode()
    write(tmp_path, {"t": column, "a.b": range(ROWS), "a": range(ROWS)}, row_group_size=700)
    rows = ParquetRows(LocalStorage(tmp_path), "x.parquet", ["t", "a"])
    for number in (4999, 0, 700, 699, 2345, 4900):
        columns, at = rows.row(number)
        assert [columns[name][at].as_py() for name in ("t", "a")] == [values[number], number]


@pytest.mark.skipif(
    "page_checksum_verification" not in signature(pq.ParquetFile).parameters,
    reason="this pyarrow does not verify checksums",
)
def test_a_page_with_another_checksum_is_refused(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"a": list(range(ROWS))},
        write_page_checksum=True,
        use_dictionary=False,
        compression="none",
    )
    data = bytearray(path.read_bytes())
    assert len(read(path)) == 2
    data[data.index((77).to_bytes(8, "little"))] ^= 1
    path.write_bytes(data)
    assert "CRC" in refusal(read, path)

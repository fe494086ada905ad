"""Parquet files of strangers: what would take memory out of proportion is one line."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfrecreg.errors import RawDataError
from tfrecreg.example.wire import varint
from tfrecreg.sources import parquet
from tfrecreg.sources.parquet import ParquetReader
from tfrecreg.storage.raw import RawFolder

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


def read(path: Path, *, most: int = 4096) -> list[Any]:
    with RawFolder(path.parent).open(path.name) as reader, ParquetReader(reader, path.name) as file:
        names = file.schema.names
        groups = range(len(file.groups()))
        return [batch for group in groups for batch in file.batches(group, names, most)]


def refusal(function: Callable[..., Any], *arguments: Any) -> str:
    with pytest.raises(RawDataError) as caught:
        function(*arguments)
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.message
    return caught.value.message


def repeated(folder: Path, kind: str, size: int, rows: int = 1000) -> Path:
    """A small file in which each row has the same large value."""
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * size]))
    column = {"text": text, "struct": pa.StructArray.from_arrays([text], ["inner"])}[kind]
    path = write(folder, {"a.b": column}, compression="zstd", dictionary_pagesize_limit=1 << 30)
    assert path.stat().st_size < 10_000
    return path


@pytest.mark.parametrize("kind", ["text", "struct"])
def test_a_dictionary_of_large_values_makes_small_batches(tmp_path: Path, kind: str) -> None:
    path = repeated(tmp_path, kind, 1 << 20)
    with (
        RawFolder(tmp_path).open("x.parquet") as reader,
        ParquetReader(reader, "x.parquet") as file,
    ):
        first = next(file.batches(0, ["a.b"], 4096))
    assert first.num_rows == 255  # 256 MiB, but for the length of the value
    assert path.stat().st_size < 10_000


def test_a_group_that_explodes_is_refused_while_it_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_ANY_SIZE", 1 << 24)
    path = repeated(tmp_path, "text", 1 << 19)
    sizes: list[int] = []

    def taken() -> None:
        with (
            RawFolder(tmp_path).open(path.name) as reader,
            ParquetReader(reader, path.name) as file,
        ):
            sizes.extend(batch.nbytes for batch in file.batches(0, ["a.b"], 8))

    message = refusal(taken)
    declared = pq.read_metadata(path).row_group(0).total_byte_size
    assert message == (
        f"{START}row group 0 of {declared} bytes has more than {65 * declared} when decoded"
    )
    assert max(sizes) <= 1 << 22
    assert sum(sizes) <= 35 << 20


def test_values_that_repeat_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, {"t": ["a long label" * 100, "b"] * 5000, "n": range(10_000)})
    batches = read(path)
    assert pa.Table.from_batches(batches).to_pydict()["t"][-2:] == ["a long label" * 100, "b"]
    assert len(batches) == 3


@pytest.mark.parametrize("options", [{"use_dictionary": False}, {"data_page_version": "2.0"}])
def test_files_of_other_forms_are_read(tmp_path: Path, options: dict[str, Any]) -> None:
    path = write(tmp_path, {"t": ["a", None] * 50, "d": [b"x"] * 100}, row_group_size=30, **options)
    assert pa.Table.from_batches(read(path)).num_rows == 100


def test_other_rows_than_the_footer_says_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, {"n": range(ROWS)}, use_dictionary=False)
    with_rows(path, 8000)
    assert refusal(read, path) == f"{START}row group 0 should have 8000 rows, found {ROWS}"


def test_billions_of_rows_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, {"n": range(ROWS)}, use_dictionary=False)
    with_rows(path, 1 << 38)
    size = path.stat().st_size
    assert refusal(read, path) == f"{START}row group 0 of {size} bytes has 274877906944 rows"


def test_the_pages_of_a_column_end_where_it_ends(tmp_path: Path) -> None:
    values = [None if number % 7 == 0 else f"{number:05}" * 20 for number in range(ROWS)]
    path = write(tmp_path, {"t": values}, data_page_size=1000)
    assert pa.Table.from_batches(read(path)).to_pydict() == {"t": values}


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

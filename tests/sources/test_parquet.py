"""Parquet files of strangers: what would take memory out of proportion is one line."""

from __future__ import annotations

import random
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tfrecreg.errors import RawDataError
from tfrecreg.example.wire import varint
from tfrecreg.sources import parquet, parquet_pages
from tfrecreg.sources.parquet import ParquetReader
from tfrecreg.sources.parquet_pages import DICTIONARY_PAGE, PageSize, page_sizes
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
    monkeypatch.setattr(parquet, "_MAX_BATCH", 1 << 22)
    path = repeated(tmp_path, "text", 1 << 19)
    sizes: list[int] = []

    def taken() -> None:
        with (
            RawFolder(tmp_path).open(path.name) as reader,
            ParquetReader(reader, path.name) as file,
        ):
            sizes.extend(batch.nbytes for batch in file.batches(0, ["a.b"], 4096))

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


def column(path: Path) -> tuple[int, int, list[PageSize]]:
    """Start, end and pages of the only column."""
    chunk = pq.read_metadata(path).row_group(0).column(0)
    start = min(chunk.dictionary_page_offset or chunk.data_page_offset, chunk.data_page_offset)
    end = start + chunk.total_compressed_size
    with RawFolder(path.parent).open(path.name) as reader:
        return start, end, [*page_sizes(reader, start, end)]


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("page", [0, 1])
def test_a_page_that_claims_too_much_is_refused_before_it_is_read(
    tmp_path: Path, compression: str, version: str, page: int
) -> None:
    values = [random.Random(number).randbytes(1_200_000) for number in range(2)]
    path = write(
        tmp_path,
        {"d": values},
        compression=compression,
        data_page_version=version,
        use_dictionary=False,
        data_page_size=1,
        write_batch_size=1,
    )
    assert pa.Table.from_batches(read(path)).to_pydict() == {"d": values}
    start, _, pages = column(path)
    said = pages[page]
    claimed = (1 << 27) - 1  # written in as many bytes
    kind = b"\x15" + varint(2 * said.kind) + b"\x15"
    data = path.read_bytes()
    at = start
    for _ in range(page + 1):
        at = data.index(kind + varint(2 * said.decompressed), at) + len(kind)
    path.write_bytes(data[:at] + varint(2 * claimed) + data[at + 4 :])
    assert path.stat().st_size == len(data)
    assert refusal(read, path) == (
        f"{START}a page of {said.stored} bytes in row group 0 should have {claimed} when "
        "decompressed"
    )


@pytest.mark.medium
def test_a_page_that_explodes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, {"d": [bytes(70 << 20)]}, compression="zstd", use_dictionary=False)
    assert path.stat().st_size < 20_000
    assert "bytes in row group 0 should have 73400" in refusal(read, path)


def test_the_pages_of_a_column_end_where_it_ends(tmp_path: Path) -> None:
    values = [None if number % 7 == 0 else f"{number:05}" * 20 for number in range(ROWS)]
    path = write(tmp_path, {"t": values}, data_page_size=1000)
    _, _, pages = column(path)
    assert pages[0].kind == DICTIONARY_PAGE
    assert len(pages) > 1
    assert pa.Table.from_batches(read(path)).to_pydict() == {"t": values}


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b"\x15\x00\x15\x02", "the header of the page at 4 has no end"),
        (b"\x00", "the header of the page at 4 has no sizes"),
        (b"\x15\x00\x15\x01\x15\x02\x00", "the header of the page at 4 has no sizes"),
        (b"\x19\x00", "the header of a page has a field of the type 9"),
        (b"\x1c" * 20, "the header of a page has a field of the type 12"),
        (b"\x15" + b"\xff" * 12, "the header of a page has a number of more than 64 bits"),
    ],
    ids=range(6),
)
def test_a_header_that_is_none_is_refused(tmp_path: Path, header: bytes, why: str) -> None:
    path = write(tmp_path, {"n": [1, 2, 3]}, use_dictionary=False, compression="none")
    start, end, _ = column(path)
    assert start == 4
    data = path.read_bytes()
    path.write_bytes(data[:start] + header + bytes(end - start - len(header)) + data[end:])
    if why.endswith("no end"):
        path.write_bytes(data[:start] + header + b"\x15\x02\x18\xff\xff\x7f" + data[start + 10 :])
    assert refusal(read, path) == f"{START}{why}"


def test_pages_without_number_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_pages, "_MAX_PAGES", 3)
    path = write(tmp_path, {"n": range(ROWS)}, use_dictionary=False, data_page_size=1000)
    assert refusal(read, path) == f"{START}a column has more than 3 pages in a row group"


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

"""Writes an answer in any format, piece by piece, so memory never holds the whole answer.

A spreadsheet evaluates text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a return. In CSV,
an apostrophe precedes such text.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from tfrecreg._version import JSON_VERSION
from tfrecreg.builtin.query.catalog import arrow_module, parquet
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import json_data, safe

SHOWN_ROWS = 1000
"""Maximum number of rows of a printed table. CSV, JSON and Parquet have all rows."""
_CELL = 200
"""Maximum number of characters of a printed cell."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def answer_rows(batches: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of record batches, as Python values."""
    for batch in batches:
        try:
            columns = [column.to_pylist() for column in batch.columns]
        except (ValueError, OverflowError) as error:  # such as a date beyond the year 9999
            raise UsageError(
                f"Python cannot hold the answer: {error}; use CAST(.. AS VARCHAR)"
            ) from None
        yield from zip(*columns, strict=True)


def plain_value(value: Any) -> Any:
    """A value for JSON: bytes as hex, times in ISO 8601, whole decimals as integers."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain_value(each) for key, each in value.items()}
    return json_data(value)


def cell(value: Any) -> str:
    """A value as printed, escaped."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return safe(value, limit=_CELL)
    if isinstance(value, bool | list | dict | tuple):
        return safe(json.dumps(plain_value(value), ensure_ascii=False), limit=_CELL)
    return safe(str(plain_value(value)), limit=_CELL)


def as_csv(names: Sequence[str], batches: Iterable[Any]) -> Iterator[bytes]:
    """The rows as CSV (RFC 4180) with line feeds. A null becomes an empty cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain([names], answer_rows(batches)):
        writer.writerow(map(_csv_cell, row))
        yield buffer.getvalue().encode("utf-8", "surrogatepass")
        buffer.seek(0)
        buffer.truncate()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if isinstance(value, bool | list | dict | tuple):
        return json.dumps(plain_value(value))
    return "" if value is None else plain_value(value) if not isinstance(value, float) else value


def as_jsonl(names: Sequence[str], batches: Iterable[Any]) -> Iterator[bytes]:
    """One object per line, in ASCII."""
    for row in answer_rows(batches):
        yield _json_row(names, row) + b"\n"


def as_json(
    names: Sequence[str], types: Sequence[str], batches: Iterable[Any], head: dict[str, Any]
) -> Iterator[bytes]:
    """One JSON document with `head`, the columns, and an object per row."""
    columns = [{"name": name, "type": kind} for name, kind in zip(names, types, strict=True)]
    start = json.dumps(
        {"format_version": JSON_VERSION, **head, "columns": columns}, ensure_ascii=True, indent=2
    )
    yield start.removesuffix("\n}").encode() + b',\n  "rows": ['
    between = b"\n    "
    for row in answer_rows(batches):
        yield between + _json_row(names, row)
        between = b",\n    "
    yield b"]\n}\n" if between == b"\n    " else b"\n  ]\n}\n"


def _json_row(names: Sequence[str], row: Sequence[Any]) -> bytes:
    named = zip(names, map(plain_value, row), strict=True)
    return json.dumps(dict(named), ensure_ascii=True).encode()


def as_markdown(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """The rows as a table."""
    shown = [safe(name, limit=_CELL) for name in names]
    yield _markdown_row(shown) + _markdown_row(["---"] * len(names))
    for row in rows:
        yield _markdown_row(map(cell, row))


def _markdown_row(cells: Iterable[str]) -> bytes:
    escaped = (each.replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`") for each in cells)
    return f"| {' | '.join(escaped)} |\n".encode()


def as_parquet(schema: Any, batches: Iterable[Any]) -> Iterator[bytes]:
    """A Parquet file with several batches per row group."""
    pa, pq = arrow_module(), parquet()
    with tempfile.TemporaryFile() as file:
        try:
            with pq.ParquetWriter(file, schema, version="2.6") as writer:
                waiting = iter(batches)
                while group := list(islice(waiting, 10)):
                    writer.write_table(pa.Table.from_batches(group, schema))
        except pa.ArrowException as error:
            raise UsageError(
                f"Parquet cannot hold the answer: {error!s}; use CAST(.. AS VARCHAR)"
            ) from None
        file.seek(0)
        while piece := file.read(1 << 20):
            yield piece

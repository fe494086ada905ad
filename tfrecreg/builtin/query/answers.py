"""The formats of an answer: bytes in pieces, so that no answer is in memory as a whole.

A spreadsheet takes a text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a return for a
formula and runs it. In CSV such a text gets an apostrophe before it; numbers stay as they are.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import Any

from tfrecreg._version import JSON_VERSION
from tfrecreg.builtin.query.packages import arrow_module, parquet
from tfrecreg.json_data import json_data
from tfrecreg.text import safe

SHOWN_ROWS = 1000
"""Rows that a table for people has at most; CSV, JSON and Parquet have all."""
_CELL = 200
"""Characters of a cell for people."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def answer_rows(batches: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of record batches, of values of Python."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        yield from zip(*columns, strict=True)


def plain_value(value: Any) -> Any:
    """A value as JSON has it: bytes in hex, times by ISO 8601, whole decimals as integers."""
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
    """A value for people, escaped."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return safe(value, limit=_CELL)
    if isinstance(value, list | dict | tuple):
        return safe(json.dumps(plain_value(value), ensure_ascii=False), limit=_CELL)
    return safe(str(plain_value(value)), limit=_CELL)


def as_csv(names: Sequence[str], batches: Iterable[Any]) -> Iterator[bytes]:
    """RFC 4180 with line feeds; null is empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain([names], answer_rows(batches)):
        writer.writerow(map(_csv_cell, row))
        yield _taken(buffer)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if isinstance(value, list | dict | tuple):
        return json.dumps(plain_value(value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else plain_value(value) if not isinstance(value, float) else value


def as_jsonl(names: Sequence[str], batches: Iterable[Any]) -> Iterator[bytes]:
    """An object a line, in ASCII."""
    for row in answer_rows(batches):
        yield _json_row(names, row) + b"\n"


def as_json(
    names: Sequence[str], types: Sequence[str], batches: Iterable[Any], head: dict[str, Any]
) -> Iterator[bytes]:
    """One document: `head`, the columns, and an object a row."""
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


def as_markdown(
    names: Sequence[str], batches: Iterable[Any], beyond: Callable[[], None]
) -> Iterator[bytes]:
    """A table, of :data:`SHOWN_ROWS` rows at most."""
    shown = [safe(name, limit=_CELL) for name in names]
    yield _markdown_row(shown) + _markdown_row(["---"] * len(names))
    for row in some(answer_rows(batches), beyond):
        yield _markdown_row(map(cell, row))


def _markdown_row(cells: Iterable[str]) -> bytes:
    escaped = (each.replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`") for each in cells)
    return f"| {' | '.join(escaped)} |\n".encode()


def some(rows: Iterator[tuple[Any, ...]], beyond: Callable[[], None]) -> Iterator[tuple[Any, ...]]:
    """The first :data:`SHOWN_ROWS` rows; calls `beyond` if there are more."""
    yield from islice(rows, SHOWN_ROWS)
    if next(rows, None) is not None:
        beyond()


def as_parquet(schema: Any, batches: Iterable[Any]) -> Iterator[bytes]:
    """A Parquet file, with a row group for some batches."""
    pa, pq = arrow_module(), parquet()
    out = _Pieces()
    with pq.ParquetWriter(pa.PythonFile(out, mode="w"), schema) as writer:
        waiting = iter(batches)
        while group := list(islice(waiting, 10)):
            writer.write_table(pa.Table.from_batches(group, schema))
            yield out.taken()
    yield out.taken()


class _Pieces(io.RawIOBase):
    """A file that is taken away while it is written."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._pieces.append(piece)
        self._at += len(piece)
        return len(piece)

    def taken(self) -> bytes:
        """What was written since."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def _taken(buffer: io.StringIO) -> bytes:
    data = buffer.getvalue().encode("utf-8", "surrogatepass")
    buffer.seek(0)
    buffer.truncate()
    return data

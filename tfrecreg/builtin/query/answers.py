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
from tfrecreg.builtin.query.cells import arrow_module, parquet
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import json_data, safe

SHOWN_ROWS = 1000
"""Rows that a table for people has at most; CSV, JSON and Parquet have all."""
_CELL = 200
"""Characters of a cell for people."""
_UNITS = {"da": 1, "s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Parts of a day or a second, by the beginning of the unit of an Arrow type."""
_DAY = 86400
_ERA = 146_097
"""Days of 400 years."""
_PYTHON_DAYS = range(
    1 - datetime.date(1970, 1, 1).toordinal(),
    datetime.date.max.toordinal() + 1 - datetime.date(1970, 1, 1).toordinal(),
)
"""The days since 1970 that Python has."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def answer_rows(batches: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of record batches, of values of Python."""
    for batch in batches:
        yield from zip(*map(python_values, batch.columns), strict=True)


def python_values(column: Any) -> list[Any]:
    """The values of an Arrow array. Dates and times that Python cannot hold are texts, as DuckDB
    prints them: those beyond the year 9999, infinity, 24:00:00, and nanoseconds.
    """
    types, kind = arrow_module().types, column.type
    if not any(word in str(kind) for word in ("date", "time")):
        found: list[Any] = column.to_pylist()
        return found
    if types.is_struct(kind):
        fields = {each.name: python_values(column.field(at)) for at, each in enumerate(kind)}
        rows = zip(column.is_valid().to_pylist(), *fields.values(), strict=True)
        return [
            dict(zip(fields, row, strict=True)) if is_valid else None for is_valid, *row in rows
        ]
    if types.is_union(kind):
        arms = [python_values(column.field(at)) for at in range(kind.num_fields)]
        return [arms[arm][row] for row, arm in enumerate(column.type_codes.to_pylist())]
    if types.is_nested(kind) or types.is_fixed_size_list(kind):
        lists = [python_values(row.values) if row.is_valid else None for row in column]
        if types.is_map(kind):
            return [row and [tuple(pair.values()) for pair in row] for row in lists]
        return lists
    return _times(column)


def _times(column: Any) -> list[Any]:
    """The values of an array of dates or times."""
    pa, kind = arrow_module(), column.type
    is_date = pa.types.is_date32(kind)
    integer = pa.int32() if is_date else pa.int64()
    unit = _UNITS[str(kind).partition("[")[2][:2].rstrip(",]")]
    exact = 1000 if unit > 10**6 else 1
    days = range(1) if pa.types.is_time(kind) else _PYTHON_DAYS
    day = unit if is_date else _DAY * unit
    fits = range(days.start * day, days.stop * day, exact)
    numbers = column.view(integer).to_pylist()
    plain = [None if number is None or number not in fits else number for number in numbers]
    values = pa.array(plain, integer).view(kind).to_pylist()
    return [
        _time_text(number, kind, day, unit) if number is not None and value is None else value
        for number, value in zip(numbers, values, strict=True)
    ]


def _time_text(number: int, kind: Any, day: int, unit: int) -> str:
    """A date or a time as DuckDB prints it, which counts its parts since 1970."""
    types = arrow_module().types
    if abs(number) == (1 << kind.bit_width - 1) - 1:
        return "infinity" if number > 0 else "-infinity"
    days, rest = (0, number) if types.is_time(kind) else divmod(number, day)
    seconds, fraction = divmod(rest, unit)
    digits = f".{fraction:0{len(str(unit)) - 1}}".rstrip("0") if fraction else ""
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{digits}"
    if types.is_time(kind):
        return clock
    # The calendar repeats after 400 years.
    eras, since = divmod(days - _PYTHON_DAYS.start, _ERA)
    within = datetime.date.fromordinal(since + 1)
    year = within.year + 400 * eras
    date = f"{year if year > 0 else 1 - year:04}-{within:%m-%d}{'' if year > 0 else ' (BC)'}"
    zone = "+00" if getattr(kind, "tz", None) else ""
    return date if types.is_date(kind) else f"{date} {clock}{zone}"


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
    try:
        with pq.ParquetWriter(pa.PythonFile(out, mode="w"), schema, version="2.6") as writer:
            waiting = iter(batches)
            while group := list(islice(waiting, 10)):
                writer.write_table(pa.Table.from_batches(group, schema))
                yield out.taken()
    except pa.ArrowException as error:
        raise UsageError(
            f"Parquet cannot hold the answer: {safe(str(error), limit=300)}",
            hint="CAST(.. AS VARCHAR) in the question makes it a text",
        ) from None
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

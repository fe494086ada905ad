"""The rows of JSON Lines: one object per line.

They are parsed by the module `json`, which tells numbers apart by their text, so that no integer is
rounded, and lets names that occur twice be seen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from tfrecreg.api import RawDataError, Reader, no_duplicates, safe
from tfrecreg_table.rows import (
    BATCH,
    MAX_COLUMNS,
    BadRow,
    Lines,
    RowBatch,
    RowError,
    RowPlace,
    flatten,
    text_start,
)

_MAX_DIGITS = 400


class JsonRows:
    """A file of JSON Lines. See :class:`~tfrecreg_table.rows.RowReader`."""

    unit = "line"

    def __init__(self, file: Reader, name: str) -> None:
        self._file, self._name = file, name
        self._start = text_start(file, name)

    def batches(self) -> Iterator[RowBatch]:
        lines = Lines(self._file, self._name, self._start)
        rows: list[Mapping[str, Any]] = []
        batch, number = RowBatch([], {}), 0
        for line in lines:
            start, lines.start = lines.start, lines.end
            if line.isspace():
                continue
            if not number and line.lstrip().startswith("["):
                raise RawDataError(
                    f"`{safe(self._name)}` begins with `[`: it is an array, not JSON Lines",
                    hint=f"write an object per line: `jq -c '.[]' {safe(self._name)}`",
                )
            number += 1
            try:
                rows.append(_parse(line))
            except RowError as error:
                batch.bad.append(BadRow(lines.count, "SRC051", str(error)))
                continue
            batch.places.append(RowPlace(number, lines.count, start, lines.end - start))
            if len(rows) == BATCH:
                yield self._filled(batch, rows)
                rows, batch = [], RowBatch([], {})
        yield self._filled(batch, rows)

    def row(self, start: int, length: int) -> Mapping[str, Any]:
        try:
            return _parse(self._file.read_at(start, length).decode())
        except UnicodeDecodeError as error:
            raise RowError(f"not UTF-8: {error.reason}") from error

    def _filled(self, batch: RowBatch, rows: list[Mapping[str, Any]]) -> RowBatch:
        names = dict.fromkeys(name for row in rows for name in row)
        if len(names) > MAX_COLUMNS:
            raise RawDataError(
                f"`{safe(self._name)}` has more than {MAX_COLUMNS} names in its objects",
                hint='put names that are data into lists: `{"name": …, "value": …}`',
            )
        batch.columns = {name: [row.get(name) for row in rows] for name in names}
        return batch


def _parse(text: str) -> Mapping[str, Any]:
    try:
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        deep = isinstance(error, RecursionError)
        problem = "nested too deeply" if deep else _problem(error)
        raise RowError(f"not JSON: {problem}") from error
    if not isinstance(value, dict):
        raise RowError(f"expected a JSON object, found {_json_type(value)}")
    return flatten(value)


def _problem(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at character {error.pos + 1}"
    return safe(str(error), limit=120)


def _json_type(value: object) -> str:
    return "an array" if isinstance(value, list) else f"`{safe(str(value), limit=30)}`"


def _int(text: str) -> int:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number `{safe(text, limit=30)}` is beyond float64")
    return number


def _constant(text: str) -> float:
    raise ValueError(f"`{text}` is not a number of JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=no_duplicates, parse_float=_float, parse_int=_int, parse_constant=_constant
)

"""The tables of a raw folder: the options, the files and their splits, and the rows of a file.

The standard library parses CSV and JSON Lines line by line. So each row can be read again at its
place, integers and texts stay as they are written, and a bad row does not affect other rows.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from tfrecreg.api import (
    ParquetReader,
    ParquetRows,
    RawDataError,
    RawPreview,
    ReadingFile,
    SkipImage,
    Storage,
    UsageError,
    listed,
    media_kind,
    no_duplicates,
    open_local,
    safe,
    usual_split,
)

FILE_KINDS = ("file", "image", "audio", "video")
"""Types of columns that name files."""
COLUMN_KINDS = ("int64", "float", "text", "bytes", "label", *FILE_KINDS, "skip")
FOUND_SUFFIXES = ("csv", "tsv", "jsonl", "ndjson", "parquet")
"""Suffixes of tables that are found even if no option names them."""
JSON_SUFFIXES = ("jsonl", "ndjson", "json")
FILE_NAME = "file_name"
"""The column that names the files in Hugging Face's folders of images, sounds or videos."""
DEFAULT_SPLIT = "train"
_COLUMN = re.compile(
    r"(?P<name>.+?)(?::(?P<kind>[a-z0-9]+)(?:\((?P<pattern>[^()]*)\))?(?:=(?P<feature>.+))?)?",
    re.DOTALL,
)
_BATCH = 4096
_LONGEST_CELL = 1 << 24


class Mapped(NamedTuple):
    """An entry of the option `columns`. If a field is empty, the column's values decide it."""

    name: str
    """``*`` for all columns that are not named."""
    kind: str = ""
    pattern: str = ""
    """The path of a file, with ``{}`` for the value."""
    feature: str = ""
    """The name of the feature, or the prefix of several names."""

    def path(self, value: str, folder: str) -> str:
        """The path of a file, from the value of a cell and the folder of the table."""
        return folder + self.pattern.replace("{}", value).removeprefix("./")


@dataclass(frozen=True)
class TableOptions:
    """Options of the source `table`."""

    file: tuple[str, ...] = ()
    """The paths of the tables below the raw folder, such as `train.csv,test.csv`. Default:
    top-level tables that are named after splits, or the only table."""
    columns: tuple[str, ...] = ()
    """The columns to take, as `NAME:TYPE=FEATURE`: `id:int64,breed:label,id:file(images/{}.jpg)`.
    The type is `int64`, `float`, `text`, `bytes`, `label`, `file`, `image`, `audio`, `video` or
    `skip`. Without a type, the values decide. `*` means all other columns. Default: all columns.
    """
    key: str | None = None
    """The column that has the keys. Default: the only column that names files. Without such a
    column, keys are numbers of rows."""
    split_column: str | None = None
    """The column that has the splits. Default: the name of each file gives the split."""
    delimiter: str | None = None
    """The character between the cells of a CSV, or `tab`. Default: a tab in files named `.tsv`,
    else the first comma, tab or semicolon in the first line."""
    header: bool = True
    """Whether the first line of a CSV names the columns. Without a header they are `1`, `2`, …"""
    decimals: Literal["exact", "round"] = "exact"
    """Handling of fractions that float32 cannot hold, in columns without a type. `exact` keeps them
    as text (CSV) or fails (JSON, Parquet). `round` takes the nearest float32. Integers are never
    rounded."""
    missing: tuple[str, ...] = ()
    """Texts that mark missing values in a CSV, such as `NA,null`. Empty cells are always
    missing."""

    def __post_init__(self) -> None:
        if self.delimiter and not re.fullmatch(r'tab|[^"\r\n\t\v\f]', self.delimiter):
            raise UsageError(
                f"the option `delimiter` is `{self.delimiter}`, expected one character or `tab`"
            )
        self.mapping()

    def mapping(self) -> list[Mapped]:
        return [_parse_column(text) for text in self.columns]


def _parse_column(text: str) -> Mapped:
    match = _COLUMN.fullmatch(text.strip())
    found = Mapped(*(each or "" for each in match.groups())) if match else Mapped("")
    is_file = found.kind in FILE_KINDS
    if is_file:
        found = found._replace(pattern=found.pattern or "{}")
        is_open = found.kind == "file" and not found.pattern.endswith("{}")
        found = found._replace(kind=media_kind(found.pattern)) if is_open else found
    if (
        not found.name
        or found.kind not in ("", *COLUMN_KINDS)
        or (is_file and (found.pattern.count("{}") != 1 or unsafe_path(found.pattern)))
        or (found.pattern and not is_file)
        or (found.name == "*" and (found.kind not in ("", "text") or found.feature))
    ):
        raise UsageError(
            f"the option `columns` has `{text}`, expected `NAME`, `NAME:TYPE`, "
            f"`NAME:TYPE=FEATURE`, `*` or `*:text`; types: {listed(COLUMN_KINDS, most=20)}; "
            "`file`, `image`, `audio` and `video` may have a path with one `{}`, as in "
            "`id:file(images/{}.jpg)`"
        )
    return found


def unsafe_path(path: str) -> bool:
    """Whether a path is absolute or might leave the raw folder, on at least one system."""
    parts = re.split(r"[/\\]", path)
    return not parts[0] or ".." in parts or "\0" in path or bool(re.match(r"[A-Za-z]:", path))


def suffix_of(path: str) -> str:
    """The suffix of a file, in lower case, without the dot."""
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def is_table(name: str) -> bool:
    """Whether a file at the top of the raw folder is a table, even if no option names it."""
    return suffix_of(name) in FOUND_SUFFIXES and not name.startswith(".")


def split_of(path: str) -> str:
    """The usual split that a file name begins with: `train` for `train-1.csv`, `validation` for
    `val.csv`; empty if there is none.
    """
    match = re.match(r"([A-Za-z]+)(?:[-_.0-9].*)?\.", path.rpartition("/")[2], re.DOTALL)
    return usual_split(match[1]) if match else ""


def file_size(raw: Storage, path: str) -> int | None:
    """The size of a file, after following links. None if there is no file."""
    seen = raw.stat(path, follow="all")
    return None if seen is None or seen.kind != "file" else seen.size


def metadata_tables(preview: RawPreview) -> tuple[list[str], list[str]]:
    """The tables of metadata, and the media in the folders of these tables."""
    tables, media = [], []
    below = [path for path in preview.below() if media_kind(path) != "file"]
    for top in ("", *(f"{each}/" for each in preview.folders() if usual_split(each))):
        beside = [path for path in below if path.startswith(top)]
        for path in (f"{top}metadata.{each}" for each in ("csv", "jsonl", "parquet") if beside):
            is_parquet = path.endswith("parquet")
            data = preview.end(path) if is_parquet else preview.start(path).partition(b"\n")[0]
            if re.search(rb"\bfile_name\b", data):
                tables.append(path)
                media += beside
                break
    return [each for each in tables if "/" in each] or tables, media


class TableFile(NamedTuple):
    path: str
    split: str
    """The split according to its path. The default split if a column contains the splits."""
    size: int
    folder: str
    """The folder that is added before each path in its rows."""


def find_tables(raw: Storage, options: TableOptions) -> tuple[list[TableFile], list[str], bool]:
    """The tables that the options name, or else tables of metadata, tables that are named after
    splits, or all tables. The second result lists the tables that are not read. The third result
    says whether tables of metadata are read. Their rows have paths of files in the table's folder.
    """
    by_name = options.split_column is None
    naming: list[str] = []
    found = taken = [path.removeprefix("./") for path in options.file]
    if not options.file:
        found = sorted(entry.path for entry in raw.list("", recursive=False))
        found = [path for path in found if is_table(path) and file_size(raw, path) is not None]
        naming = metadata_tables(RawPreview(raw))[0] if by_name else []
        named = [path for path in found if split_of(path)] if by_name and len(found) > 1 else []
        taken = naming or named or found
    files = []
    for path in taken or [""]:
        size = None if unsafe_path(path) else file_size(raw, path)
        if size is None or suffix_of(path) not in (*FOUND_SUFFIXES, "tab", "txt", "json"):
            kinds = ", ".join(f".{each}" for each in FOUND_SUFFIXES)
            what = f"no table `{path}`" if path else "no table"
            raise RawDataError(
                f"`{raw.root}` holds {what}: expected {kinds}; select other tables with `file`"
            )
        folder = path[: path.rfind("/") + 1] if path in naming else ""
        split = split_of(f"{folder[:-1]}." if path in naming else path) if by_name else ""
        if by_name and not split and len(taken) > 1:
            raise RawDataError(
                f"`{path}` is one of {len(taken)} tables, so its name has to begin with a split: "
                "train, validation or test",
                hint="select tables with --option file=train.csv, or take the splits from a column "
                "with --option split_column=NAME",
            )
        files.append(TableFile(path, split or DEFAULT_SPLIT, size, folder))
    return files, [path for path in found if path not in taken], bool(naming)


class Place(NamedTuple):
    """The place of a row. For Parquet files, `line`, `start` and `length` count rows."""

    number: int
    line: int
    start: int
    length: int


class Batch(NamedTuple):
    """Consecutive rows."""

    places: Sequence[Place]
    columns: Mapping[str, Sequence[Any]]
    """A value for each place; None for a missing value."""
    bad: Sequence[tuple[int, SkipImage]] = ()
    """The line number and the error of each row that cannot be read."""


class TextTable:
    """A table whose rows are lines of text in UTF-8: JSON Lines, or CSV."""

    unit = "line"
    """The unit in which its rows are counted."""

    def __init__(self, raw: Storage, path: str, options: TableOptions) -> None:
        self._path, self._options = path, options
        self._file = open_local(raw, path)
        self._start = 3 if self._file.read_at(0, 3) == b"\xef\xbb\xbf" else 0  # byte order mark
        self._is_json = suffix_of(path) in JSON_SUFFIXES
        self._missing = frozenset(each.strip() for each in options.missing)
        self._names = [] if self._is_json else self._read_names()
        self._end, self._line = self._start, 0
        """The offset after the lines that were read, and the number of these lines."""

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()

    def batches(self) -> Iterator[Batch]:
        """All rows, in their order."""
        rows, places, bad = list[Any](), list[Place](), list[tuple[int, SkipImage]]()
        parsed, number = self._parsed(), 0
        while True:
            start, line = self._end, self._line + 1
            try:
                row = next(parsed)
            except StopIteration:
                break
            except csv.Error as error:
                if re.search("end of data|field limit", str(error)):  # it swallows all later rows
                    raise self._unreadable(line, error) from error
                row = SkipImage("SRC110", safe(str(error)))
            except SkipImage as error:
                row = error
            if row is None:  # a blank line
                continue
            number += 1
            if isinstance(row, SkipImage):
                bad.append((line, row))
                continue
            rows.append(row)
            places.append(Place(number, line, start, self._end - start))
            if len(rows) == _BATCH:
                yield Batch(places, self._by_column(rows), bad)
                rows, places, bad = [], [], []
        yield Batch(places, self._by_column(rows), bad)

    def row(self, start: int, length: int) -> Mapping[str, Any]:
        """The values of one row by column, without missing values."""
        text = self._file.read_at(start, length).decode()
        if self._is_json:
            return _parse_json(text) or {}
        (cells,) = self._cells((text,))
        pairs = zip(self._names, cells, strict=True)
        return {name: cell for name, cell in pairs if not self._is_missing(cell)}

    def _read_names(self) -> list[str]:
        """Find the delimiter of a CSV and the names of its columns."""
        # The limit applies to the whole process: it is raised for long texts, and never lowered.
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))
        found = self._options.delimiter or (
            "tab" if suffix_of(self._path) in ("tsv", "tab") else ""
        )
        if not found:
            bare = re.sub(r'"[^"]*"', "", next(self._lines(), ""))
            found = next((each for each in ",\t;" if each in bare), ",")
        self._delimiter = "\t" if found == "tab" else found
        try:
            cells = next(self._cells(self._lines()), [])
        except csv.Error as error:
            raise self._unreadable(1, error) from error
        if not self._options.header:
            return [str(number) for number in range(1, len(cells) + 1)]
        # pandas writes its index as a first column without a name.
        names = [cell.strip() or f"column{number}" for number, cell in enumerate(cells, start=1)]
        if not names or len({*names}) < len(names):
            what = "two columns with the same name" if names else "no first line"
            raise RawDataError(f"`{self._path}` has {what}; with `header=no` all lines are rows")
        return names

    def _parsed(self) -> Iterator[Any]:
        """Each row; None for a blank line."""
        lines = self._lines()
        if self._is_json:
            return map(_parse_json, lines)
        rows = self._cells(lines)
        if self._options.header:
            next(rows)
        return map(self._checked, rows)

    def _cells(self, lines: Iterable[str]) -> Iterator[list[str]]:
        return csv.reader(lines, delimiter=self._delimiter, strict=True)

    def _checked(self, cells: list[str]) -> list[str] | None:
        if cells and len(cells) != len(self._names):
            raise SkipImage("SRC113", f"expected {len(self._names)} cells, found {len(cells)}")
        return cells or None

    def _by_column(self, rows: Sequence[Any]) -> Mapping[str, Sequence[Any]]:
        if self._is_json:
            return _columns_of(rows)
        columns: dict[str, Sequence[str | None]] = {}
        for name, cells in zip(self._names, zip(*rows, strict=True), strict=False):
            columns[name] = cells
            if "" in cells or self._missing:
                columns[name] = [None if self._is_missing(cell) else cell for cell in cells]
        return columns

    def _is_missing(self, cell: str) -> bool:
        return not cell or (bool(self._missing) and cell.strip() in self._missing)

    def _lines(self) -> Iterator[str]:
        """All lines of the file, from the first one."""
        file = io.BufferedReader(ReadingFile(self._file), 1 << 20)
        self._end, self._line = file.seek(self._start), 0
        for line in file:
            self._end += len(line)
            self._line += 1
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                raise self._unreadable(self._line, error) from error
            yield text

    def _unreadable(self, line: int, error: Exception) -> RawDataError:
        return RawDataError(
            f"`{self._path}`, line {line}: {error}",
            hint="a table is text in UTF-8; `iconv -f latin1 -t utf-8` converts another encoding",
        )


def _parse_json(text: str) -> Mapping[str, Any] | None:
    """The values of a line of JSON by name; None for a blank line."""
    if text.isspace():
        return None
    try:
        value = _DECODER.decode(text)
        if not isinstance(value, dict):
            raise SkipImage(
                "SRC110", "expected one JSON object per line, as in the output of `jq -c '.[]'`"
            )
        return _flatten(value, "", {})
    except (ValueError, RecursionError) as error:
        raise SkipImage("SRC110", f"not JSON: {safe(str(error), limit=120)}") from error


def _constant(text: str) -> float:
    raise ValueError(f"`{text}` is not a JSON number")


def _float(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _constant(text)


_DECODER = json.JSONDecoder(
    object_pairs_hook=no_duplicates, parse_constant=_constant, parse_float=_float
)


class ParquetTable:
    """A Parquet file, whose columns have types."""

    unit = "row"

    def __init__(self, raw: Storage, path: str, wanted: Sequence[str] | None) -> None:
        self._raw, self._path = raw, path
        with raw.open(path) as reader, ParquetReader(reader, path) as file:
            names: list[str] = file.schema.names
        if len({*names}) < len(names):
            raise RawDataError(f"`{path}` has two columns with the same name")
        tops = {part for each in wanted or () for part in (each, each.partition("/")[0])}
        self._names = [name for name in names if wanted is None or name in tops]
        self._rows: ParquetRows | None = None

    def batches(self) -> Iterator[Batch]:
        at = 0
        with self._raw.open(self._path) as reader, ParquetReader(reader, self._path) as file:
            for group, count in enumerate(file.rows()):
                for found in file.batches(group, self._names) if count else ():
                    places = [Place(n + 1, n + 1, n, 1) for n in range(at, at + found.num_rows)]
                    at += found.num_rows
                    columns: Mapping[str, Sequence[Any]] = found.to_pydict()
                    if any(str(each.type).startswith("struct<") for each in found.schema):
                        try:
                            rows = [_flatten(row, "", {}) for row in found.to_pylist()]
                        except SkipImage as error:
                            raise RawDataError(f"`{self._path}`: {error.detail}") from None
                        columns = _columns_of(rows)
                    yield Batch(places, columns)

    def row(self, start: int, length: int) -> Mapping[str, Any]:  # noqa: ARG002 - rows are numbered
        if self._rows is None:
            self._rows = ParquetRows(self._raw, self._path, self._names)
        columns, at = self._rows.row(start)
        return _flatten({name: column[at].as_py() for name, column in columns.items()}, "", {})


def _flatten(value: Mapping[str, Any], above: str, found: dict[str, Any]) -> dict[str, Any]:
    """Add the values of an object to `found`, except missing ones. The name of an inner value
    contains the outer names: `a/b`.
    """
    for name, each in value.items():
        path = above + name
        if isinstance(each, dict):
            _flatten(each, f"{path}/", found)
        elif path in found:
            raise SkipImage("SRC110", f"two values are called `{safe(path, limit=60)}`")
        elif each is not None:
            found[path] = each
    return found


def _columns_of(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Sequence[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}

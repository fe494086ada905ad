"""The first pass over all tables: rows, keys and splits, and what the columns are."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from struct import Struct
from typing import Any

from tfrecreg.api import (
    Item,
    RawDataError,
    RawFile,
    Remark,
    Skipped,
    Storage,
    UsageError,
    did_you_mean,
    is_split_name,
    media_kind,
    missing_files,
    normal_splits,
    safe,
)
from tfrecreg_table.rows import RowBatch, RowReader
from tfrecreg_table.survey import ColumnSurvey
from tfrecreg_table.table_files import (
    FILE_NAME,
    UNNAMED_SPLIT,
    TableFile,
    find_tables,
    is_split_folder,
    open_rows,
)
from tfrecreg_table.table_options import FILE_KINDS, Mapped, TableOptions, unsafe_path
from tfrecreg_table.values import CellError, TableColumn, text_of, ticked

ROW_STATE = Struct("<HQII")
"""The state of an item: the number of its table, first byte, length, line."""
_NUMBERS = ("int64", "float")
_MAX_SPLITS = 100
_MAX_KEY = 4096


@dataclass
class _Rows:
    """The good rows of one table. A list has one entry a row, or none if it is not needed."""

    file: TableFile
    starts: array[int] = field(default_factory=lambda: array("Q"))
    lengths: array[int] = field(default_factory=lambda: array("Q"))
    lines: array[int] = field(default_factory=lambda: array("Q"))
    numbers: array[int] = field(default_factory=lambda: array("Q"))
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    """Bytes of the files that a row names."""
    splits: array[int] = field(default_factory=lambda: array("H"))
    keys: list[str] = field(default_factory=list)


class TableListing:
    """All rows of the tables, and what the columns become."""

    def __init__(self, raw: Storage, options: TableOptions) -> None:
        self._raw, self._options = raw, options
        self.files, self._left_tables = find_tables(raw, options)
        self._names_files = any(each.names_files for each in self.files)
        self._mapping = options.mapping
        if self._names_files and not any(each.name == FILE_NAME for each in self._mapping):
            star = () if self._mapping else (Mapped("*", "", "", ""),)
            self._mapping = (*star, *self._mapping, Mapped(FILE_NAME, "file", "{}", ""))
        self._by_name: dict[str, list[Mapped]] = {}
        for each in self._mapping:
            self._by_name.setdefault(each.name, []).append(each)
        self._star = next((each for each in self._mapping if each.name == "*"), None)
        self._naming = [each for each in self._mapping if each.kind in FILE_KINDS]
        self._key = options.key
        if self._key is None and len(self._naming) == 1:
            self._key = self._naming[0].name
        self._splits_in_rows = options.split_column is not None or (
            self._names_files and not self.files[0].folder
        )
        here = [*(each.path for each in self.files), *self._left_tables]
        taken = {each.path: each.split for each in self.files}
        self._missing = [] if options.file else list(missing_files(here, taken))
        self._sizes = _file_sizes(raw) if self._naming else {}
        self._surveys: dict[str, ColumnSurvey | None] = {}
        self._total = 0
        self._split_names: dict[str, int] = {}
        self._seen_keys: dict[tuple[int, str], set[str]] = {}
        self._tables: list[_Rows] = []
        self._skipped: list[tuple[TableFile, Skipped]] = []
        self._empty: list[TableFile] = []
        self._lacking: list[tuple[TableFile, list[str]]] = []
        self.named_files: dict[str, int] = {}
        """Path to size of each file that a row names."""
        for file in self.files:
            self._read(file)
        self._require_columns()
        self._splits = self._normal_splits()
        self.kept: dict[str, str] = {}
        """Why columns of numbers are kept as text."""
        self.columns = tuple(self._columns())
        self.labels = {
            each.feature: _class_names(self._survey(each.name).names)
            for each in self.columns
            if each.kind == "label"
        }

    @property
    def path_column(self) -> TableColumn | None:
        """The column of files whose values are the keys."""
        found = [each for each in self.columns if each.kind in FILE_KINDS]
        return found[0] if len(found) == 1 and found[0].name == self._key else None

    @property
    def rows(self) -> int:
        """Number of rows that are items."""
        return sum(len(each.starts) for each in self._tables)

    @property
    def left_out(self) -> list[str]:
        """Columns that are not used, but for those that are skipped on purpose."""
        return [
            name
            for name, survey in self._surveys.items()
            if survey is None
            and name not in (self._key, self._options.split_column)
            and not self._is_skipped(name)
        ]

    def raw_files(self) -> Iterator[RawFile]:
        """The tables, and the files that their rows name."""
        for file in self.files:
            yield RawFile(file.path, file.size, file.size)
        for path, size in self.named_files.items():
            yield RawFile(path, size, size)

    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every row, and the remarks on columns and tables."""
        overhead = sum(len(each.feature) + 24 for each in self.columns)
        tables_of: dict[str, int] = {}
        for file in self.files:
            tables_of[file.split] = tables_of.get(file.split, 0) + 1
        for number, rows in enumerate(self._tables):
            prefix = f"{rows.file.path}:" if tables_of[rows.file.split] > 1 else ""
            for at, start in enumerate(rows.starts):
                split = self._splits[rows.splits[at]] if rows.splits else rows.file.split
                key = rows.keys[at] if rows.keys else f"{prefix}{rows.numbers[at]:08}"
                length, line = rows.lengths[at], rows.lines[at]
                size = length + overhead + (rows.sizes[at] if rows.sizes else 0)
                yield Item(
                    split, key, size, ROW_STATE.pack(number, start, length, min(line, 0xFFFFFFFF))
                )
        some = min(self._splits.values(), default=UNNAMED_SPLIT)
        for each in self._missing:
            yield each._replace(split=some) if self._splits_in_rows else each
        for file, skipped in self._skipped:
            yield skipped._replace(split=some if self._splits_in_rows else file.split)
        yield from self._remarks(some if self._splits_in_rows else self.files[0].split)

    def _remarks(self, split: str) -> Iterator[Remark]:
        for name, why in self.kept.items():
            yield Remark(split, name, "SRC056", why)
        for name, survey in self._surveys.items():
            if survey is not None and survey.marks.cells:
                cells = survey.marks.cells
                some = ", ".join(ticked(each) for each in sorted(cells)[:5])
                detail = (
                    f"the column {ticked(name)} has no value in the cells {some}, "
                    f"first in line {survey.marks.line}"
                )
                yield Remark(split, name, "SRC032", detail, sum(cells.values()))
        if self.left_out:
            names = ", ".join(ticked(name) for name in self.left_out[:5])
            detail = f"not in `columns`: {names}"
            yield Remark(split, self.left_out[0], "SRC057", detail, len(self.left_out))
        for file in self._empty:
            yield Remark(
                split if self._splits_in_rows else file.split,
                file.path,
                "SRC059",
                f"`{safe(file.path)}` has no rows",
            )
        for file, lacking in self._lacking:
            for name in lacking:
                detail = f"`{safe(file.path)}` has no column {ticked(name)}: no value in its rows"
                yield Remark(split if self._splits_in_rows else file.split, name, "SRC058", detail)
        yield from self._unnamed_files(split)
        if self._left_tables:
            first = self._left_tables[0]
            detail = f"tables that are not named after a split, the first of them `{safe(first)}`"
            yield Remark(split, first, "SRC015", detail, len(self._left_tables))

    def _unnamed_files(self, split: str) -> Iterator[Remark]:
        """A remark on media files beside tables that name files, and that no row names."""
        if self._names_files:
            media = (path for path in self._sizes if media_kind(path) != "file")
            left = sorted(path for path in media if path not in self.named_files)
            if left:
                detail = f"no row names these files, the first of them `{safe(left[0])}`"
                yield Remark(split, left[0], "SRC030", detail, len(left))

    def _read(self, file: TableFile) -> None:
        rows = _Rows(file)
        self._tables.append(rows)
        reader = open_rows(self._raw, file.path, self._options)
        seen: set[str] = set()
        for batch in reader.batches():
            for each in batch.bad:
                self._skip(file, reader, each.line, each.code, each.detail)
            self._total += len(batch.places)
            for name, values in batch.columns.items():
                seen.add(name)
                survey = self._survey_of(name)
                if survey is not None:
                    survey.add(name, values, batch.places)
            if batch.places:
                self._add_rows(file, reader, rows, batch)
        if not seen and not any(each is file for each, _ in self._skipped):
            self._empty.append(file)
        wanted = [name for name in self._by_name if name != "*" and not self._is_skipped(name)]
        lacking = [name for name in wanted if name not in seen]
        if lacking and rows.starts:
            self._lacking.append((file, lacking))

    def _is_skipped(self, name: str) -> bool:
        return any(each.kind == "skip" for each in self._by_name.get(name, ()))

    def _survey_of(self, name: str) -> ColumnSurvey | None:
        if name not in self._surveys:
            mapped = self._by_name.get(name, [])
            if not mapped and (not self._mapping or self._star is not None):
                mapped = [self._star or Mapped(name, "", "", "")]
            taken = [each for each in mapped if each.kind != "skip"]
            if name == "":
                raise RawDataError("a column has an empty name", hint="name it")
            self._surveys[name] = (
                ColumnSurvey(
                    typed=all(each.kind for each in taken),
                    classes=any(each.kind == "label" for each in taken),
                    numbers=next((each.kind for each in taken if each.kind in _NUMBERS), ""),
                    rounds=self._options.decimals == "round",
                )
                if taken
                else None
            )
        return self._surveys[name]

    def _survey(self, name: str) -> ColumnSurvey:
        survey = self._surveys[name]
        if survey is None:
            raise KeyError(name)
        return survey

    def _add_rows(self, file: TableFile, reader: RowReader, rows: _Rows, batch: RowBatch) -> None:
        places = batch.places
        columns = batch.columns
        if self._key is None and self._options.split_column is None and not self._naming:
            rows.starts.extend([each.start for each in places])
            rows.lengths.extend([each.length for each in places])
            rows.lines.extend([each.line for each in places])
            rows.numbers.extend([each.number for each in places])
            return
        nothing = (None,) * len(places)
        keys = columns.get(self._key or "", nothing)
        splits = columns.get(self._options.split_column or "", nothing)
        if self._options.split_column is None and self._splits_in_rows:
            splits = [_split_of_path(each) for each in columns.get(FILE_NAME, nothing)]
        named = [(each, columns.get(each.name, nothing)) for each in self._naming]
        for at, place in enumerate(places):
            split = 0
            if self._splits_in_rows:
                split = self._split_number(file, reader, place.line, splits[at])
            size = 0
            problem: tuple[str, str] | None = None
            paths: list[str] = []
            for mapped, values in named:
                path, problem = self._named_file(mapped, values[at], file.folder)
                if problem is not None:
                    break
                paths.append(path)
                size += self._sizes[path]
            key = ""
            if self._key is not None and problem is None:
                key, problem = self._checked_key(split, file, keys[at])
            if problem is not None:
                self._skip(file, reader, place.line, *problem)
                continue
            for path in paths:
                self.named_files[path] = self._sizes[path]
            rows.starts.append(place.start)
            rows.lengths.append(place.length)
            rows.lines.append(place.line)
            rows.sizes.append(size)
            if self._key is None:
                rows.numbers.append(place.number)
            else:
                rows.keys.append(key)
            if self._splits_in_rows:
                rows.splits.append(split)

    def _skip(self, file: TableFile, reader: RowReader, line: int, code: str, why: str) -> None:
        detail = f"`{safe(file.path)}`, {reader.unit} {line}: {why}"
        self._skipped.append((file, Skipped("", f"{file.path}:{line}", code, detail)))

    def _named_file(
        self, mapped: Mapped, value: Any, folder: str
    ) -> tuple[str, tuple[str, str] | None]:
        if value is None:
            return "", ("SRC054", f"the column {ticked(mapped.name)} names no file")
        try:
            path = TableColumn(mapped.name, mapped.kind, "", mapped.pattern).path(value, folder)
        except CellError as error:
            return "", ("SRC054", f"the column {ticked(mapped.name)}: {error}")
        if unsafe_path(path):
            return "", ("SRC055", f"{ticked(path)} leaves the raw folder, or could")
        if path not in self._sizes:  # not listed: missing, or below a link to a folder
            seen = self._raw.stat(path, follow="all")
            if seen is None or seen.kind != "file":
                return "", ("SRC054", f"there is no file {ticked(path)}")
            self._sizes[path] = seen.size
        return path, None

    def _checked_key(
        self, split: int, file: TableFile, value: Any
    ) -> tuple[str, tuple[str, str] | None]:
        if value is None:
            return "", ("SRC053", f"no key: the column {ticked(self._key)} has no value")
        try:
            key = text_of(value)
            long = len(key.encode()) > _MAX_KEY
        except (CellError, UnicodeEncodeError) as error:
            return "", ("SRC053", f"no key: {safe(str(error))}")
        if long:
            return "", ("SRC053", f"a key of more than {_MAX_KEY} bytes: {ticked(key)}")
        seen = self._seen_keys.setdefault(
            (split, "" if self._splits_in_rows else file.split), set()
        )
        if key in seen:
            return "", ("SRC053", f"another row before it has the key {ticked(key)}")
        seen.add(key)
        return key, None

    def _split_number(self, file: TableFile, reader: RowReader, line: int, value: Any) -> int:
        try:
            name = "" if value is None else text_of(value)
        except CellError:
            name = ""
        found = self._split_names.get(name)
        if found is not None:
            return found
        where = f"`{safe(file.path)}`, {reader.unit} {line}"
        if not is_split_name(name):
            raise RawDataError(
                f"{where}: the split is {ticked(name)}, expected letters, digits and `_`",
                hint="fill the column: the name becomes part of file names",
            )
        if len(self._split_names) == _MAX_SPLITS:
            raise RawDataError(
                f"{where}: more than {_MAX_SPLITS} splits", hint="is it the column of the splits?"
            )
        self._split_names[name] = len(self._split_names)
        return self._split_names[name]

    def _normal_splits(self) -> dict[int, str]:
        normal = normal_splits(list(self._split_names))
        return {number: normal[name] for name, number in self._split_names.items()}

    def _require_columns(self) -> None:
        known = list(self._surveys)
        if not known:
            names = ", ".join(f"`{safe(each.path)}`" for each in self.files)
            if self._skipped:
                _, first = self._skipped[0]
                raise RawDataError(
                    f"no row of {names} can be read; {first.detail}",
                    hint=f"`tfrecreg explain {first.code}` tells more",
                )
            raise RawDataError(
                f"no row in {names}", hint="each row makes a record: name a table that has some"
            )
        asked = [(name, "columns") for name in self._by_name if name != "*"]
        asked += [(self._options.key, "key")] if self._options.key is not None else []
        asked += (
            [(self._options.split_column, "split_column")]
            if self._options.split_column is not None
            else []
        )
        for name, option in asked:
            if name not in known:
                shown_names = ", ".join(ticked(each) for each in known[:8])
                raise UsageError(
                    f"the option `{option}` names the column {ticked(name)}, which no table has"
                    f"{did_you_mean(name, known)}",
                    hint=f"columns: {shown_names}",
                )

    def _columns(self) -> Iterator[TableColumn]:
        features: dict[str, str] = {}
        for name, survey in self._surveys.items():
            if survey is None:
                continue
            for mapped in self._by_name.get(name, [self._star or Mapped(name, "", "", "")]):
                column = self._column(name, mapped, survey)
                names = [column.feature]
                if column.kind == "label":
                    names.append(column.text_feature)
                for feature in names:
                    other = features.get(feature)
                    if other is not None:
                        raise RawDataError(
                            f"the columns {ticked(other)} and {ticked(name)} would both be the "
                            f"feature {ticked(feature)}",
                            hint="give one another name: --option 'columns=*,NAME:TYPE=FEATURE'",
                        )
                    features[feature] = name
                yield column

    def _column(self, name: str, mapped: Mapped, survey: ColumnSurvey) -> TableColumn:
        texts = not any(file.has_types for file in self.files)
        kind = mapped.kind or survey.kind(name, texts=texts)
        if kind == "file":
            kind = media_kind(str(survey.first))
        if not mapped.kind and survey.kept is not None:
            self.kept[name] = (
                f"the column {ticked(name)} is text: line {survey.kept.line}, {survey.kept.why}"
            )
        missing = survey.missing or survey.rows < self._total
        feature = mapped.feature or self._usual_feature(name, kind)
        return TableColumn(name, kind, feature, mapped.pattern, missing, survey.lists)

    def _usual_feature(self, name: str, kind: str) -> str:
        """The feature of a column that was given none."""
        of_files = [each for each in self._mapping if each.kind in FILE_KINDS]
        if kind in ("image", "audio", "video") and len(of_files) == 1:
            return kind
        labels = [each for each in self._mapping if each.kind == "label"]
        if kind == "label" and len(labels) == 1:
            images = len(of_files) == 1 and self._is_image(of_files[0])
            if images or name == "label":
                return "image/class/label" if images else "class/label"
        return name

    def _is_image(self, mapped: Mapped) -> bool:
        if mapped.kind != "file":
            return mapped.kind == "image"
        return media_kind(str(self._survey(mapped.name).first)) == "image"


def _split_of_path(path: Any) -> str:
    """The split whose folder a path begins with, or the default one."""
    folder, slash, _ = str(path).removeprefix("./").partition("/")
    return folder if slash and is_split_folder(folder) else UNNAMED_SPLIT


def _file_sizes(raw: Storage) -> dict[str, int]:
    """Path to size of every file of the raw folder, links followed."""
    sizes = {}
    for entry in raw.list(""):
        seen = raw.stat(entry.path, follow="all") if entry.kind == "link" else entry
        if seen is not None and seen.kind == "file":
            sizes[entry.path] = seen.size
    return sizes


def _class_names(names: set[str]) -> Sequence[str]:
    """Names in the order of their numbers: by value if all are decimals, else by their bytes."""
    if all(re.fullmatch(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,20})?", name) for name in names):
        return sorted(names, key=lambda name: (Decimal(name), name))
    try:
        return sorted(names, key=str.encode)
    except UnicodeEncodeError as error:
        raise RawDataError(
            f"the name of a class holds a lone surrogate: {ticked(error.object)}",
            hint="labels are UTF-8",
        ) from error


def class_numbers(labels: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
    """The numbers of classes by feature and name."""
    return {
        feature: {name: number for number, name in enumerate(names)}
        for feature, names in labels.items()
    }

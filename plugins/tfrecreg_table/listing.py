"""The first pass over all tables: rows, keys and splits, and what the columns are."""

from __future__ import annotations

import re
from array import array
from collections import Counter
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
from tfrecreg_table.columns import TableColumn
from tfrecreg_table.rows import Place, Rows, open_rows
from tfrecreg_table.survey import ColumnSurvey
from tfrecreg_table.table_files import (
    FILE_NAME,
    UNNAMED_SPLIT,
    TableFile,
    file_size,
    find_tables,
    is_split_folder,
)
from tfrecreg_table.table_options import FILE_KINDS, Mapped, TableOptions, unsafe_path
from tfrecreg_table.values import CellError, text_of, ticked

ROW_STATE = Struct("<HQIQ")
"""The state of an item: the number of its table, first byte, length, line."""
_MAX_SPLITS = 100


@dataclass
class _GoodRows:
    """The good rows of one table, an entry per row in each list."""

    places: bytearray = field(default_factory=bytearray)
    numbers: array[int] = field(default_factory=lambda: array("Q"))
    sizes: array[int] = field(default_factory=lambda: array("Q"))
    """Bytes of the row and of the files that it names."""
    splits: list[str] = field(default_factory=list)
    """As the rows have them, if they do."""
    keys: list[str] = field(default_factory=list)
    """If a column has them."""


class _Unusable(Exception):
    """A row has no key or no file: the code and the reason."""


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
        self._naming = [each for each in self._mapping if each.kind in FILE_KINDS]
        self._key = options.key
        if self._key is None and len(self._naming) == 1:
            self._key = self._naming[0].name
        self._splits_in_rows = options.split_column is not None or (
            self._names_files and not self.files[0].folder
        )
        self._sizes: dict[str, int] = {}
        if self._naming:
            for each in raw.list(""):
                size = file_size(raw, each.path) if each.kind == "link" else each.size
                if size is not None and each.kind != "dir":
                    self._sizes[each.path] = size
        self._surveys: dict[str, ColumnSurvey | None] = {}
        self._total = 0
        self._seen_keys: dict[str, set[str]] = {}
        self._skipped: list[tuple[TableFile, Skipped]] = []
        self._splits: dict[str, str] = {}
        """By the names in the rows."""
        self._notes: list[tuple[TableFile, str, str, str]] = []
        """Key, code and detail of remarks on tables."""
        self.named_files: dict[str, int] = {}
        """Path to size of each file that a row names."""
        self._tables = [self._read(file) for file in self.files]
        self._require_columns()
        self._splits = normal_splits(list(self._splits))
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
        return sum(len(each.numbers) for each in self._tables)

    @property
    def left_out(self) -> list[str]:
        """Columns that are not used, but for those that are skipped on purpose."""
        used = (self._key, self._options.split_column)
        return [
            name
            for name, survey in self._surveys.items()
            if survey is None and name not in used and not self._mapped(name)
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
        tables_of = Counter(file.split for file in self.files)
        for file, rows in zip(self.files, self._tables, strict=True):
            prefix = f"{file.path}:" if tables_of[file.split] > 1 else ""
            for at, number in enumerate(rows.numbers):
                split = self._splits[rows.splits[at]] if rows.splits else file.split
                key = rows.keys[at] if rows.keys else f"{prefix}{number:08}"
                state = bytes(rows.places[at * ROW_STATE.size : (at + 1) * ROW_STATE.size])
                yield Item(split, key, rows.sizes[at] + overhead, state)
        some = min(self._splits.values(), default=UNNAMED_SPLIT)
        if not self._options.file:
            taken = {each.path: each.split for each in self.files}
            for each in missing_files([*taken, *self._left_tables], taken):
                yield each._replace(split=some) if self._splits_in_rows else each
        for file, skipped in self._skipped:
            yield skipped._replace(split=some if self._splits_in_rows else file.split)
        split = some if self._splits_in_rows else self.files[0].split
        yield from self._remarks(split)

    def _remarks(self, split: str) -> Iterator[Remark]:
        for name, why in self.kept.items():
            yield Remark(split, name, "SRC056", why)
        for name, survey in self._surveys.items():
            if survey is not None and survey.marks:
                some = ", ".join(ticked(each) for each in sorted(survey.marks)[:5])
                detail = (
                    f"the column {ticked(name)} has no value in the cells {some}, "
                    f"first in line {survey.mark_line}"
                )
                yield Remark(split, name, "SRC032", detail, sum(survey.marks.values()))
        if self.left_out:
            names = ", ".join(ticked(name) for name in self.left_out[:5])
            detail = f"not in `columns`: {names}"
            yield Remark(split, self.left_out[0], "SRC057", detail, len(self.left_out))
        for file, key, code, detail in self._notes:
            yield Remark(split if self._splits_in_rows else file.split, key, code, detail)
        if self._names_files:
            media = (path for path in self._sizes if media_kind(path) != "file")
            left = sorted(path for path in media if path not in self.named_files)
            if left:
                detail = f"no row names these files, the first of them `{safe(left[0])}`"
                yield Remark(split, left[0], "SRC030", detail, len(left))
        if self._left_tables:
            first = self._left_tables[0]
            detail = f"tables that are not named after a split, the first of them `{safe(first)}`"
            yield Remark(split, first, "SRC015", detail, len(self._left_tables))

    def _read(self, file: TableFile) -> _GoodRows:
        rows = _GoodRows()
        reader = open_rows(self._raw, file.path, self._options)
        seen: set[str] = set()
        found = 0
        for batch in reader.batches():
            for each in batch.bad:
                self._skip(file, reader, each.line, each.code, each.detail)
            found += len(batch.places) + len(batch.bad)
            self._total += len(batch.places)
            for name, values in batch.columns.items():
                seen.add(name)
                survey = self._survey_of(name)
                if survey is not None:
                    survey.add(name, values, batch.places)
            self._add_rows(file, reader, rows, batch.places, batch.columns)
        if not found:
            self._notes.append((file, file.path, "SRC059", f"`{safe(file.path)}` has no rows"))
        lacking = [each.name for each in self._mapping if each.kind != "skip"]
        for name in dict.fromkeys(lacking) if rows.numbers else ():
            if name not in seen and name != "*":
                detail = f"`{safe(file.path)}` has no column {ticked(name)}: no value in its rows"
                self._notes.append((file, name, "SRC058", detail))
        return rows

    def _mapped(self, name: str) -> list[Mapped]:
        return [each for each in self._mapping if each.name == name]

    def _taken(self, name: str) -> list[Mapped]:
        """What the column becomes; nothing if it is left out."""
        found = self._mapped(name)
        if not found:
            found = self._mapped("*") if self._mapping else [Mapped(name, "", "", "")]
        return [each for each in found if each.kind != "skip"]

    def _survey_of(self, name: str) -> ColumnSurvey | None:
        if name not in self._surveys:
            if not name:
                raise RawDataError("a column has an empty name", hint="name it")
            kinds = [each.kind for each in self._taken(name)]
            texts = not any(file.has_types for file in self.files)
            rounds = self._options.decimals == "round"
            survey = ColumnSurvey(kinds, texts=texts, rounds=rounds) if kinds else None
            self._surveys[name] = survey
        return self._surveys[name]

    def _survey(self, name: str) -> ColumnSurvey:
        survey = self._surveys[name]
        if survey is None:
            raise KeyError(name)
        return survey

    def _add_rows(
        self,
        file: TableFile,
        reader: Rows,
        rows: _GoodRows,
        places: Sequence[Place],
        columns: Mapping[str, Sequence[Any]],
    ) -> None:
        number = self.files.index(file)
        nothing = (None,) * len(places)
        keys = columns.get(self._key or "", nothing)
        splits = columns.get(self._options.split_column or "", nothing)
        if self._options.split_column is None and self._splits_in_rows:
            splits = [_split_of_path(each) for each in columns.get(FILE_NAME, nothing)]
        named = [(each, columns.get(each.name, nothing)) for each in self._naming]
        good: list[Place] = []
        for at, place in enumerate(places):
            split = file.split
            if self._splits_in_rows:
                split = self._split(f"`{safe(file.path)}`, {reader.unit} {place.line}", splits[at])
            size = place.length
            try:
                for mapped, values in named:
                    size += self._named_file(mapped, values[at], file)
                if self._key is not None:
                    rows.keys.append(self._checked_key(split, keys[at]))
            except _Unusable as error:
                self._skip(file, reader, place.line, *error.args)
                continue
            good.append(place)
            rows.sizes.append(size)
            if self._splits_in_rows:
                rows.splits.append(split)
        rows.numbers.extend([place.number for place in good])
        rows.places += b"".join(
            [ROW_STATE.pack(number, each.start, each.length, each.line) for each in good]
        )

    def _skip(self, file: TableFile, reader: Rows, line: int, code: str, why: str) -> None:
        detail = f"`{safe(file.path)}`, {reader.unit} {line}: {why}"
        self._skipped.append((file, Skipped("", f"{file.path}:{line}", code, detail)))

    def _named_file(self, mapped: Mapped, value: Any, file: TableFile) -> int:
        """The size of the file that a value names."""
        if value is None:
            raise _Unusable("SRC054", f"the column {ticked(mapped.name)} names no file")
        try:
            path = mapped.path(value, file.folder)
        except CellError as error:
            raise _Unusable("SRC054", f"the column {ticked(mapped.name)}: {error}") from error
        if unsafe_path(path):
            raise _Unusable("SRC055", f"{ticked(path)} leaves the raw folder, or could")
        if path not in self._sizes:  # not listed: missing, or below a link to a folder
            size = file_size(self._raw, path)
            if size is None:
                raise _Unusable("SRC054", f"there is no file {ticked(path)}")
            self._sizes[path] = size
        return self.named_files.setdefault(path, self._sizes[path])

    def _checked_key(self, split: str, value: Any) -> str:
        if value is None:
            raise _Unusable("SRC053", f"no key: the column {ticked(self._key)} has no value")
        try:
            key = text_of(value)
        except CellError as error:
            raise _Unusable("SRC053", f"no key: {error}") from error
        seen = self._seen_keys.setdefault(split, set())
        if key in seen:
            raise _Unusable("SRC053", f"another row before it has the key {ticked(key)}")
        seen.add(key)
        return key

    def _split(self, where: str, value: Any) -> str:
        name = "" if value is None else str(value)
        if name not in self._splits:
            if not is_split_name(name):
                raise RawDataError(
                    f"{where}: the split is {ticked(name)}, expected letters, digits and `_`",
                    hint="fill the column: the name becomes part of file names",
                )
            if len(self._splits) == _MAX_SPLITS:
                raise RawDataError(
                    f"{where}: more than {_MAX_SPLITS} splits",
                    hint="is it the column of the splits?",
                )
            self._splits[name] = name
        return name

    def _require_columns(self) -> None:
        known = list(self._surveys)
        if not known:
            names = ", ".join(f"`{safe(each.path)}`" for each in self.files)
            why = f"; {self._skipped[0][1].detail}" if self._skipped else ""
            raise RawDataError(
                f"no row of {names} can be read{why}",
                hint="each row makes a record: name a table that has some",
            )
        asked = [(each.name, "columns") for each in self._mapping if each.name != "*"]
        asked += [(self._options.key or "", "key")]
        asked += [(self._options.split_column or "", "split_column")]
        for name, option in asked:
            if name and name not in known:
                raise UsageError(
                    f"the option `{option}` names the column {ticked(name)}, which no table has"
                    f"{did_you_mean(name, known)}",
                    hint=f"columns: {', '.join(ticked(each) for each in known[:8])}",
                )

    def _columns(self) -> Iterator[TableColumn]:
        features: dict[str, str] = {}
        for name in self._surveys:
            for mapped in self._taken(name):
                column = self._column(name, mapped)
                for feature in column.features:
                    other = features.setdefault(feature, name)
                    if other != name or column.features.count(feature) > 1:
                        raise RawDataError(
                            f"the columns {ticked(other)} and {ticked(name)} would both be the "
                            f"feature {ticked(feature)}",
                            hint="give one another name: --option 'columns=*,NAME:TYPE=FEATURE'",
                        )
                yield column

    def _column(self, name: str, mapped: Mapped) -> TableColumn:
        survey = self._survey(name)
        kind = mapped.kind
        if kind == "file":
            kind = media_kind(str(survey.first))
        if not kind:
            kind, kept = survey.kind(name)
            if kept is not None:
                why = f"the column {ticked(name)} is text: line {kept.line}, {kept.why}"
                self.kept[name] = why
        missing = survey.missing or survey.rows < self._total
        feature = mapped.feature or self._usual_feature(name, kind)
        return TableColumn(name, kind, feature, mapped, missing, survey.lists)

    def _usual_feature(self, name: str, kind: str) -> str:
        """The feature of a column that was given none."""
        if kind in ("image", "audio", "video") and len(self._naming) == 1:
            return kind
        labels = [each for each in self._mapping if each.kind == "label"]
        if kind == "label" and len(labels) == 1:
            images = len(self._naming) == 1 and self._is_image(self._naming[0])
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


def _class_names(names: set[str]) -> Sequence[str]:
    """Names in the order of their numbers: by value if all are decimals, else by their bytes."""
    if all(re.fullmatch(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,20})?", name) for name in names):
        return sorted(names, key=lambda name: (Decimal(name), name))
    return sorted(names, key=lambda name: name.encode("utf-8", "surrogatepass"))

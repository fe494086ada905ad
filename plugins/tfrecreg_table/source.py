"""The source `table`: every row becomes one example.

:class:`_Listing` is the first pass over all tables, in the parent: rows, keys and splits, and what
the columns become.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from struct import Struct
from typing import Any, ClassVar, Literal, NamedTuple, cast

from tfrecreg.api import (
    Example,
    Feature,
    ImageError,
    Item,
    MediaError,
    MediaKind,
    RawDataError,
    RawFile,
    Remark,
    Skipped,
    Source,
    Storage,
    UsageError,
    Written,
    did_you_mean,
    is_split_name,
    listed,
    media_codecs,
    media_features,
    media_kind,
    missing_files,
    normal_splits,
    read_media_file,
    safe,
)
from tfrecreg_table.columns import Column, FeatureMaker, Survey, feature_maker, text_of, ticked
from tfrecreg_table.rows import Batch, ParquetTable, RowError, TextRows, open_rows
from tfrecreg_table.tables import (
    DEFAULT_SPLIT,
    FILE_KINDS,
    FILE_NAME,
    Mapped,
    TableFile,
    TableOptions,
    file_size,
    find_tables,
    is_split_folder,
    unsafe_path,
)

_STATE = Struct("<HQIQ")
"""The state of an item: the number of its table, first byte, length, line."""
_MAX_SPLITS = 100


class _Known(NamedTuple):
    """What a worker needs to know of the listing."""

    files: Sequence[TableFile]
    columns: Sequence[Column]
    labels: Mapping[str, Sequence[str]]
    key_column: Column | None
    """The column of files whose values are the keys."""


class _Listing:
    """All rows of the tables, and what the columns become."""

    def __init__(self, raw: Storage, options: TableOptions) -> None:
        self._raw, self._options = raw, options
        self._files, self._left_tables = find_tables(raw, options)
        self._names_files = any(each.names_files for each in self._files)
        self._mapping = options.mapping
        if self._names_files and not any(each.name == FILE_NAME for each in self._mapping):
            all_others = () if self._mapping else (Mapped("*"),)
            self._mapping = (*all_others, *self._mapping, Mapped(FILE_NAME, "file", "{}"))
        self._naming = [each for each in self._mapping if each.kind in FILE_KINDS]
        self._key = options.key or (self._naming[0].name if len(self._naming) == 1 else None)
        self._splits_in_rows = options.split_column is not None or (
            self._names_files and not self._files[0].folder
        )
        found = raw.list("") if self._naming else ()
        self._sizes = {
            each.path: each.size if each.kind == "file" else None
            for each in found
            if each.kind != "dir"
        }
        """Of the files in the raw folder, if columns name some; None for links."""
        self._surveys: dict[str, Survey] = {}
        self._states, self._row_sizes = bytearray(), array("Q")
        self._row_splits: list[str] = []
        self._keys: list[str] = []
        self._seen: dict[str, set[str]] = {}
        """Keys by split, if a column has them."""
        self._skipped: list[Skipped] = []
        self._notes: list[Remark] = []
        self._named: dict[str, int] = {}
        """The size of each file that a row names."""
        self._splits: dict[str, str] = {}
        """By the names in the rows."""
        self._rows = sum(self._read(number) for number in range(len(self._files)))
        self._require_columns()
        self._splits = normal_splits(list(self._splits))
        self._kept: dict[str, str] = {}
        """Why columns of numbers are kept as text."""
        columns = tuple(self._columns())
        labels = {
            each.feature: _class_names(self._surveys[each.name].classes)
            for each in columns
            if each.kind == "label"
        }
        naming = [each for each in columns if each.kind in FILE_KINDS]
        has_keys = len(naming) == 1 and naming[0].name == self._key
        self.known = _Known(self._files, columns, labels, naming[0] if has_keys else None)

    def raw_files(self) -> Iterator[RawFile]:
        """The tables, and the files that their rows name."""
        for path, size in {**{each.path: each.size for each in self._files}, **self._named}.items():
            yield RawFile(path, size, size)

    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every row, and the remarks on columns and tables."""
        overhead = sum(len(each.feature) + 24 for each in self.known.columns)
        rows = zip(self._row_splits, self._keys, self._row_sizes, strict=True)
        for at, (split, key, size) in enumerate(rows):
            state = bytes(self._states[at * _STATE.size : (at + 1) * _STATE.size])
            yield Item(self._splits.get(split, split), key, size + overhead, state)
        some = min(self._splits.values(), default=self._files[0].split)
        missing: Iterator[Skipped] = iter(())
        if not self._options.file:
            taken = {each.path: each.split for each in self._files}
            missing = missing_files([*taken, *self._left_tables], taken)
        entries: Sequence[Skipped | Remark] = [*missing, *self._skipped, *self._notes]
        for entry in entries:
            yield entry._replace(split=some) if self._splits_in_rows else entry
        yield from self._remarks(some)

    def _remarks(self, split: str) -> Iterator[Remark]:
        for name, why in self._kept.items():
            yield Remark(split, name, "SRC056", f"the column {ticked(name)} is text: {why}")
        for name, survey in self._surveys.items():
            if survey.marks:
                cells = ", ".join(ticked(each) for each in sorted(survey.marks)[:5])
                detail = f"the column {ticked(name)} has no value in the cells {cells}, first in "
                times = sum(survey.marks.values())
                yield Remark(split, name, "SRC032", f"{detail}line {survey.mark_line}", times)
        media = (path for path in self._sizes if media_kind(path) != "file")
        not_named = sorted(path for path in media if path not in self._named)
        for code, names, detail in (
            ("SRC057", self._left_out(), "not in `columns`"),
            ("SRC030", not_named if self._names_files else [], "no row names these files"),
            ("SRC015", self._left_tables, "tables that are not named after a split"),
        ):
            if names:
                some = ", ".join(ticked(name) for name in names[:5])
                yield Remark(split, names[0], code, f"{detail}: {some}", len(names))

    def describe(self) -> Mapping[str, str]:
        """The tables and what their columns become."""
        found = {
            "tables": ", ".join(f"{safe(each.path)} ({each.split})" for each in self._files),
            "rows": str(len(self._keys)),
        }
        for column in self.known.columns:
            text = column.kind
            if column.feature != column.name:
                text += f", as {safe(column.feature)}"
            if column.kind == "label":
                text += f", {len(self.known.labels[column.feature])} classes"
            if column.times == "optional":
                text += ", values missing"
            if column.name in self._kept:
                text += f": {self._kept[column.name]}"
            found[f"column {safe(column.name, limit=60)}"] = text
        if left_out := self._left_out():
            found["left out"] = ", ".join(safe(name, limit=60) for name in left_out[:20])
        return found

    def _left_out(self) -> list[str]:
        """Columns that are not used, but for those that are skipped on purpose."""
        used = (self._key, self._options.split_column, *(each.name for each in self._mapping))
        found = self._surveys.items()
        return [name for name, survey in found if not survey.mapped and name not in used]

    def _read(self, number: int) -> int:
        """Read a table; return the number of its rows that can be parsed."""
        file, before = self._files[number], len(self._keys)
        reader = open_rows(self._raw, file.path, self._options)
        seen: set[str] = set()
        rows = bad = 0
        for batch in reader.batches():
            rows, bad = rows + len(batch.places), bad + len(batch.bad)
            for line, error in batch.bad:
                self._skip(file, reader.unit, line, error)
            for name, values in batch.columns.items():
                self._survey(name).add(values, batch.places)
            seen.update(batch.columns)
            self._add_rows(number, reader.unit, batch)
        name = safe(file.path)
        if not rows + bad:
            self._notes.append(Remark(file.split, file.path, "SRC059", f"`{name}` has no rows"))
        if len(self._keys) > before:
            wanted = [each.name for each in self._mapping if each.kind != "skip"]
            for column in dict.fromkeys(wanted):
                if column not in (*seen, "*"):
                    detail = f"`{name}` has no column {ticked(column)}: no value in its rows"
                    self._notes.append(Remark(file.split, column, "SRC058", detail))
        return rows

    def _survey(self, name: str) -> Survey:
        if name not in self._surveys:
            mapped = [each for each in self._mapping if each.name == name]
            if not mapped:
                others = [each for each in self._mapping if each.name == "*"]
                mapped = others if self._mapping else [Mapped(name)]
            self._surveys[name] = Survey(
                name,
                [each for each in mapped if each.kind != "skip"],
                texts=not any(file.has_types for file in self._files),
                rounds=self._options.decimals == "round",
            )
        return self._surveys[name]

    def _add_rows(self, number: int, unit: str, batch: Batch) -> None:
        file, columns = self._files[number], batch.columns
        nothing = (None,) * len(batch.places)
        keys = columns.get(self._key or "", nothing)
        splits = columns.get(self._options.split_column or "", nothing)
        if self._options.split_column is None and self._splits_in_rows:
            splits = [_split_of_path(each) for each in columns.get(FILE_NAME, nothing)]
        named = [(each, columns.get(each.name, nothing)) for each in self._naming]
        is_alone = [each.split for each in self._files].count(file.split) == 1
        prefix = "" if is_alone else f"{file.path}:"
        states, sizes = self._states, self._row_sizes
        row_keys, row_splits = self._keys, self._row_splits
        for at, (row, line, start, length) in enumerate(batch.places):
            split, key, size = file.split, "", length
            try:
                if self._splits_in_rows:
                    split = self._split(splits[at], f"`{safe(file.path)}`, {unit} {line}")
                for mapped, values in named:
                    size += self._named_file(mapped, values[at], file)
                key = self._key_of(keys[at], split) if self._key else f"{prefix}{row:08}"
            except RowError as error:
                self._skip(file, unit, line, error)
                continue
            row_keys.append(key)
            row_splits.append(split)
            sizes.append(size)
            states += _STATE.pack(number, start, length, line)

    def _skip(self, file: TableFile, unit: str, line: int, error: RowError) -> None:
        detail = f"`{safe(file.path)}`, {unit} {line}: {error}"
        self._skipped.append(Skipped(file.split, f"{file.path}:{line}", error.code, detail))

    def _named_file(self, mapped: Mapped, value: Any, file: TableFile) -> int:
        """The size of the file that a value names."""
        path = mapped.path(_name_in(mapped.name, value, "SRC054"), file.folder)
        if unsafe_path(path):
            raise RowError(f"{ticked(path)} leaves the raw folder, or could", "SRC055")
        size = self._named.get(path, self._sizes.get(path))
        if size is None:  # not listed: missing, or below a link to a folder
            size = file_size(self._raw, path)
        if size is None:
            raise RowError(f"there is no file {ticked(path)}", "SRC054")
        self._named[path] = size
        return size

    def _key_of(self, value: Any, split: str) -> str:
        key = _name_in(self._key or "", value, "SRC053")
        seen = self._seen.setdefault(split, set())
        if key in seen:
            raise RowError(f"another row before it has the key {ticked(key)}", "SRC053")
        seen.add(key)
        return key

    def _split(self, value: Any, where: str) -> str:
        name = "" if value is None else str(value)
        if name not in self._splits:
            if not is_split_name(name) or len(self._splits) == _MAX_SPLITS:
                raise RawDataError(
                    f"{where}: {ticked(name)} is no split: expected at most {_MAX_SPLITS} names of "
                    "letters, digits and `_`",
                    hint="`split_column` names the column of the splits, which every row has",
                )
            self._splits[name] = name
        return name

    def _require_columns(self) -> None:
        known = list(self._surveys)
        if not known:
            names = listed([each.path for each in self._files])
            raise RawDataError(
                f"no row of {names} can be read"
                + "".join(f"; {each.detail}" for each in self._skipped[:1]),
                hint="each row makes a record: name a table that has some",
            )
        wanted = [(each.name, "columns") for each in self._mapping]
        wanted += [(self._options.key or "", "key")]
        wanted += [(self._options.split_column or "", "split_column")]
        for name, option in wanted:
            if name not in ("", "*", *known):
                raise UsageError(
                    f"the option `{option}` names the column {ticked(name)}, which no table has"
                    f"{did_you_mean(name, known)}",
                    hint=f"columns: {', '.join(ticked(each) for each in known[:8])}",
                )

    def _columns(self) -> Iterator[Column]:
        made_by: dict[str, str] = {}
        for name, survey in self._surveys.items():
            for mapped in survey.mapped:
                column = self._column(mapped, survey)
                for feature in column.features:
                    # Those of a file only begin with it.
                    key = f"{feature}/" if column.kind in FILE_KINDS else feature
                    if not name or key in made_by:
                        raise RawDataError(
                            f"the columns {ticked(made_by.get(key, ''))} and {ticked(name)} would "
                            f"both be the feature {ticked(feature)}",
                            hint="give one another name: --option 'columns=*,NAME:TYPE=FEATURE'",
                        )
                    made_by[key] = name
                yield column

    def _column(self, mapped: Mapped, survey: Survey) -> Column:
        name, kind = survey.name, mapped.kind
        if kind == "file":
            kind = media_kind(str(survey.first))
        if not kind:
            kind, kept = survey.kind()
            if kept is not None:
                self._kept[name] = f"line {kept[0]}, {kept[1]}"
        times: Literal["one", "optional", "list"] = "list" if survey.lists else "one"
        if times == "one" and (survey.missing or survey.rows < self._rows):
            times = "optional"
        feature = mapped.feature or self._usual_feature(name, kind)
        return Column(name, kind, feature, mapped, times)

    def _usual_feature(self, name: str, kind: str) -> str:
        """The feature of a column that was given none."""
        if kind in ("image", "audio", "video") and len(self._naming) == 1:
            return kind
        labels = [each for each in self._mapping if each.kind == "label"]
        if kind != "label" or len(labels) != 1:
            return name
        if len(self._naming) == 1:
            files = self._naming[0]
            first = str(self._surveys[files.name].first)
            if "image" in (files.kind, media_kind(first) if files.kind == "file" else ""):
                return "image/class/label"
        return "class/label" if name == "label" else name


class TableSource(Source):
    """Rows of tables. An item's key is the value of a column, or the number of its row.

    The tables are read once in the parent, for the places of the rows and the types of the columns.
    A worker reads the rows of its items, each by its place.
    """

    Options: ClassVar[type[Any]] = TableOptions

    def __init__(self, raw: Storage, options: TableOptions) -> None:
        self._raw = raw
        self._options = options
        self._opened: dict[int, TextRows | ParquetTable] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # The rows stay in the parent: an item has its place.
        return type(self), (self._raw, self._options), {"_known": self._known}

    @cached_property
    def _listing(self) -> _Listing:
        return _Listing(self._raw, self._options)

    @cached_property
    def _known(self) -> _Known:
        return self._listing.known

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._listing.raw_files()

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {name: list(names) for name, names in self._known.labels.items()}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._listing.items()

    def schema(self) -> str:
        labels = self._known.labels
        return "".join(
            text
            for column in self._known.columns
            for text in column.schema(labels.get(column.feature, ()))
        )

    def codecs(self) -> Mapping[str, str]:
        return media_codecs(cast(MediaKind, each.kind) for each in self._file_columns)

    def describe(self) -> Mapping[str, str]:
        """The tables and what their columns become, for `--dry-run`."""
        return self._listing.describe()

    def raw_path(self, split: str, key: str) -> str | None:
        """The file that a row names, where the column of files has the keys."""
        column = self._known.key_column
        if column is None:
            return None
        folders = [each.folder for each in self._known.files if each.split == split]
        return column.mapped.path(key, folders[0] if folders else "")

    def class_of(self, item: Item) -> str | None:
        """The values of the columns of the type `label`."""
        names = [each.name for each in self._known.columns if each.kind == "label"]
        if not names:
            raise UsageError(
                "`stratify` needs a column of the type `label`",
                hint="--option 'columns=*,NAME:label'",
            )
        number, start, length, _ = _STATE.unpack(item.state)
        try:
            values = self._rows(number).row(start, length)
        except RowError:  # `example` reports it
            return None
        return "\n".join(str(values.get(name, "")) for name in names)

    def example(self, item: Item) -> Example | Written | Skipped:
        number, start, length, line = _STATE.unpack(item.state)
        rows = self._opened.get(number) or self._rows(number)
        name = ""
        example: dict[str, Feature] = {}
        remarks: list[Remark] = []
        try:
            values = rows.row(start, length)
            for name, feature, make in self._makers:
                example[feature] = make(values.get(name))
            for column in self._file_columns:
                path = column.mapped.path(
                    text_of(values.get(column.name)), self._known.files[number].folder
                )
                name = ticked(path)
                data = read_media_file(self._raw, path)
                kind = cast(MediaKind, column.kind)
                made = media_features(kind, column.feature, path.rpartition("/")[2], data)
                example.update(made.features)
                if made.code:
                    remarks.append(
                        Remark(item.split, item.key, made.code, f"{name}: {made.detail}")
                    )
        except (ImageError, MediaError) as error:
            code, detail = error.code, f"{name}: {error.detail}"
        except RowError as error:
            code, detail = error.code, f"the column {ticked(name)}: {safe(str(error))}"
        else:
            return Written(example, remarks) if remarks else example
        where = f"`{safe(self._known.files[number].path)}`, {rows.unit} {line}"
        return Skipped(item.split, item.key, code, f"{where}: {detail}")

    def _rows(self, number: int) -> TextRows | ParquetTable:
        """The rows of a table."""
        if number not in self._opened:
            wanted = [each.name for each in self._known.columns]
            path = self._known.files[number].path
            self._opened[number] = open_rows(self._raw, path, self._options, wanted)
        return self._opened[number]

    @cached_property
    def _file_columns(self) -> Sequence[Column]:
        return [each for each in self._known.columns if each.kind in FILE_KINDS]

    @cached_property
    def _makers(self) -> Sequence[tuple[str, str, FeatureMaker]]:
        """Column, feature and what makes it, in the order of the features."""
        found: list[tuple[str, str, FeatureMaker]] = []
        for column in self._known.columns:
            kinds = {"label": ("int64", "text")}.get(column.kind, (column.kind,))
            if column not in self._file_columns:
                names = self._known.labels.get(column.feature, ())
                for kind, feature in zip(kinds, column.features, strict=True):
                    maker = feature_maker(kind, names if kind == "int64" else ())
                    found.append((column.name, feature, maker))
        return sorted(found, key=lambda each: each[1])


def _name_in(column: str, value: Any, code: str) -> str:
    """The file or the key that a value names."""
    if value is None or isinstance(value, (bytes, list)):
        raise RowError(f"the column {ticked(column)} has no name: {ticked(value)}", code)
    return text_of(value)


def _split_of_path(path: Any) -> str:
    """The split whose folder a path begins with, or the default one."""
    folder, slash, _ = str(path).removeprefix("./").partition("/")
    return folder if slash and is_split_folder(folder) else DEFAULT_SPLIT


def _class_names(names: set[str]) -> Sequence[str]:
    """Names in the order of their numbers: by value if all are decimals, else by their bytes."""
    if all(re.fullmatch(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,20})?", name) for name in names):
        return sorted(names, key=lambda name: (Decimal(name), name))
    return sorted(names, key=lambda name: name.encode("utf-8", "surrogatepass"))

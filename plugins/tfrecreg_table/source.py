"""The source `table`: every row becomes one example.

:class:`_Listing` is the first pass over all tables, in the parent: it finds rows, keys, splits, and
the features of columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from struct import Struct
from types import NoneType
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
    SkipImage,
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
    paths_remark,
    read_media_file,
    safe,
    usual_split,
)
from tfrecreg_table.columns import (
    Column,
    FeatureMaker,
    Survey,
    class_names,
    feature_maker,
    text_of,
    ticked,
)
from tfrecreg_table.tables import (
    DEFAULT_SPLIT,
    FILE_KINDS,
    FILE_NAME,
    JSON_SUFFIXES,
    Batch,
    Mapped,
    ParquetTable,
    TableFile,
    TableOptions,
    TextTable,
    file_size,
    find_tables,
    suffix_of,
    unsafe_path,
)

_STATE = Struct("<HQIQ")
"""The state of an item: the number of its table, and the first byte, length and line of its row."""
_MAX_SPLITS = 100
_TYPED = (*JSON_SUFFIXES, "parquet")
"""Suffixes of tables with typed values."""


class _Known(NamedTuple):
    """The parts of the listing that workers need."""

    files: Sequence[TableFile]
    columns: Sequence[Column]


class _Listing:
    """All rows of the tables, and the features of their columns."""

    def __init__(self, raw: Storage, options: TableOptions) -> None:
        self._raw, self._options = raw, options
        self._files, self._left_tables, self._names_files = find_tables(raw, options)
        self._mapping = options.mapping() or [Mapped("*")]
        if self._names_files and not any(each.name == FILE_NAME for each in self._mapping):
            self._mapping.append(Mapped(FILE_NAME, "file", "{}"))
        self._naming = [each for each in self._mapping if each.kind in FILE_KINDS]
        self._key = options.key or (self._naming[0].name if len(self._naming) == 1 else None)
        self._splits_in_rows = options.split_column is not None or (
            self._names_files and not self._files[0].folder
        )
        found = [each for each in raw.list("") if each.kind != "dir"] if self._naming else []
        self._sizes = {each.path: each.size if each.kind == "file" else None for each in found}
        """File sizes in the raw folder, if a column has file names. None stands for a link."""
        self._is_typed = any(suffix_of(each.path) in _TYPED for each in self._files)
        self._surveys: dict[str, Survey] = {}
        self._states, self._row_sizes = bytearray(), array("Q")
        self._row_splits: list[str] = []
        self._keys: list[str] = []
        self._seen: dict[str, set[str]] = {}
        """If the keys come from a column, the keys of each split."""
        self._reported: list[Skipped | Remark] = []
        """Rows without an item, and tables without rows."""
        self.used = {each.path: each.size for each in self._files}
        """The size of each table, and of each file that a row names."""
        self._splits: dict[str, str] = {}
        """Splits by their names in the rows."""
        self._rows = sum(self._read(number) for number in range(len(self._files)))
        self._require_columns()
        self._splits = normal_splits(list(self._splits))
        columns = tuple(self._columns())
        used = (self._key, *self._given())
        surveys = self._surveys.items()
        self.left_out = [name for name, each in surveys if not each.mapped and name not in used]
        """Unused columns, except those that an option skips."""
        self.known = _Known(self._files, columns)

    def items(self) -> Iterator[Item | Skipped | Remark]:
        """Every row, and the remarks on columns and tables."""
        overhead = sum(len(each.feature) + 24 for each in self.known.columns)
        rows = zip(self._row_splits, self._keys, self._row_sizes, strict=True)
        for at, (split, key, size) in enumerate(rows):
            state = bytes(self._states[at * _STATE.size : (at + 1) * _STATE.size])
            yield Item(self._splits.get(split, split), key, size + overhead, state)
        some = min(self._splits.values(), default=self._files[0].split)
        entries = list(self._reported)
        if not self._options.file:
            taken = {each.path: each.split for each in self._files}
            entries += missing_files([*taken, *self._left_tables], taken)
        for entry in entries:
            yield entry._replace(split=some) if self._splits_in_rows else entry
        yield from self._remarks(some)

    def _remarks(self, split: str) -> Iterator[Remark]:
        for name, survey in self._surveys.items():
            if survey.kept:
                detail = f"the column {ticked(name)} is text: {survey.kept}"
                yield Remark(split, name, "SRC116", detail)
            if survey.marks:
                cells = ", ".join(ticked(each) for each in sorted(survey.marks)[:5])
                first = f"the first is in line {survey.mark_line}"
                detail = f"the column {ticked(name)} has no value in the cells {cells}; {first}"
                yield Remark(split, name, "SRC115", detail, sum(survey.marks.values()))
        others = sorted(self._sizes.keys() - self.used) if self._names_files else []
        not_named = [path for path in others if media_kind(path) != "file"]
        for code, names, detail in (
            ("SRC117", self.left_out, "not in `columns`"),
            ("SRC117", not_named, "no row names these files"),
            ("SRC015", self._left_tables, "tables that are not named after a split"),
        ):
            if names:
                yield paths_remark(split, code, names, detail)

    def _read(self, number: int) -> int:
        """Read a table; return the number of its rows that can be parsed."""
        file = self._files[number]
        reader = open_table(self._raw, file.path, self._options)
        rows = bad = 0
        seen: set[str] = set()
        for batch in reader.batches():
            rows, bad = rows + len(batch.places), bad + len(batch.bad)
            seen.update(batch.columns)
            for line, error in batch.bad:
                self._skip(file, reader.unit, line, error)
            for name, values in batch.columns.items():
                self._survey(name).add(values, batch.places)
            self._add_rows(number, reader.unit, batch)
        path = safe(file.path)
        if not rows + bad:
            detail = f"`{path}` has no rows"
            self._reported.append(Remark(file.split, file.path, "SRC118", detail))
        wanted = dict.fromkeys(each.name for each in self._mapping if each.kind != "skip")
        for name in wanted if rows else ():
            if name not in seen and name != "*":
                detail = f"no row of `{path}` has a value in the column {ticked(name)}"
                self._reported.append(Remark(file.split, name, "SRC118", detail))
        return rows

    def _survey(self, name: str) -> Survey:
        if name not in self._surveys:
            named = [each for each in self._mapping if each.name == name]
            mapped = named or [each for each in self._mapping if each.name == "*"]
            taken = [each for each in mapped if each.kind != "skip"]
            rounds = self._options.decimals == "round"
            self._surveys[name] = Survey(name, taken, texts=not self._is_typed, rounds=rounds)
        return self._surveys[name]

    def _add_rows(self, number: int, unit: str, batch: Batch) -> None:
        """Add the item of each row, or the reason why the row has none."""
        file, columns = self._files[number], batch.columns
        nothing = (None,) * len(batch.places)
        keys = columns.get(self._key or "", nothing)
        splits: Sequence[Any] = (file.split,) * len(batch.places)
        if self._options.split_column is not None:
            splits = columns.get(self._options.split_column, nothing)
        elif self._splits_in_rows:
            splits = [_top_split(str(each)) for each in columns.get(FILE_NAME, nothing)]
        named = [(each, columns.get(each.name, nothing)) for each in self._naming]
        is_alone = [each.split for each in self._files].count(file.split) == 1
        prefix = "" if is_alone else f"{file.path}:"
        for at, (row, line, start, length) in enumerate(batch.places):
            split = "" if isinstance(splits[at], (bytes, list, NoneType)) else text_of(splits[at])
            if self._splits_in_rows and split not in self._splits:
                if not is_split_name(split) or len(self._splits) == _MAX_SPLITS:
                    raise RawDataError(
                        f"`{file.path}`, {unit} {line}: {ticked(split)} cannot be a split: "
                        f"expected letters, digits and `_`, and at most {_MAX_SPLITS} splits"
                    )
                self._splits[split] = split
            try:
                files = [self._named_file(each, values[at], file) for each, values in named]
                size = length + sum(each for _, each in files)
                key = f"{prefix}{row:08}"
                if self._key:
                    key = _name_in(self._key, keys[at], "SRC114")
                    seen = self._seen.setdefault(split, set())
                    if key in seen:
                        raise SkipImage("SRC114", f"an earlier row has the key {ticked(key)}")
                    seen.add(key)
            except SkipImage as error:
                self._skip(file, unit, line, error)
                continue
            self.used.update(files)
            self._keys.append(key)
            self._row_splits.append(split)
            self._row_sizes.append(size)
            self._states += _STATE.pack(number, start, length, line)

    def _skip(self, file: TableFile, unit: str, line: int, error: SkipImage) -> None:
        detail = f"`{safe(file.path)}`, {unit} {line}: {error.detail}"
        self._reported.append(Skipped(file.split, f"{file.path}:{line}", error.code, detail))

    def _named_file(self, mapped: Mapped, value: Any, file: TableFile) -> tuple[str, int]:
        """The path and the size of the file that a value names."""
        path = mapped.path(_name_in(mapped.name, value, "SRC112"), file.folder)
        if unsafe_path(path):
            why = "leads out of the raw folder, at least on some systems"
            raise SkipImage("SRC111", f"{ticked(path)} {why}")
        size = self.used.get(path, self._sizes.get(path))
        if size is None:  # not listed: missing, or below a link to a folder
            size = file_size(self._raw, path)
        if size is None:
            raise SkipImage("SRC112", f"there is no file {ticked(path)}")
        return path, size

    def _given(self) -> list[str | None]:
        """The columns that the options name."""
        names = (each.name for each in self._mapping)
        return [self._options.key, self._options.split_column, *names]

    def _require_columns(self) -> None:
        """Check that the tables have rows, and that they have all columns named in the options."""
        known = list(self._surveys)
        if not known:
            names = listed([each.path for each in self._files])
            first = "".join(f"; {each.detail}" for each in self._reported[:1])
            raise RawDataError(f"no row of {names} can be read{first}")
        for name in self._given():
            if name not in (None, "", "*", *known):
                raise UsageError(
                    f"the options name the column {ticked(name)}, but the tables have the columns "
                    f"{listed(known, most=8)}{did_you_mean(str(name), known)}"
                )

    def _columns(self) -> Iterator[Column]:
        """The columns with their features. Two columns must not have the same feature."""
        made_by: dict[str, str] = {}
        for name, survey in self._surveys.items():
            for mapped in survey.mapped:
                column = self._column(mapped, survey)
                for feature in column.features:
                    # The names of a file's features only begin with it.
                    key = f"{feature}/" if column.kind in FILE_KINDS else feature
                    if not name or key in made_by:
                        raise RawDataError(
                            f"the columns {ticked(made_by.get(key, ''))} and {ticked(name)} would "
                            f"both be the feature {ticked(feature)}",
                            hint="--option 'columns=*,NAME:TYPE=FEATURE'",
                        )
                    made_by[key] = name
                yield column

    def _column(self, mapped: Mapped, survey: Survey) -> Column:
        name, kind = survey.name, self._kind(mapped, survey.name) or survey.kind()
        times: Literal["one", "optional", "list"] = "list" if survey.lists else "one"
        if times == "one" and (survey.missing or survey.rows < self._rows):
            times = "optional"
        feature = mapped.feature or self._usual_feature(name, kind)
        classes = class_names(survey.classes) if kind == "label" else ()
        return Column(name, kind, feature, mapped, times, classes)

    def _usual_feature(self, name: str, kind: str) -> str:
        """The default name for the feature of a column."""
        files = self._naming[0] if len(self._naming) == 1 else None
        if files and kind in ("image", "audio", "video"):
            return kind
        if kind != "label" or sum(each.kind == "label" for each in self._mapping) > 1:
            return name
        if files and self._kind(files, files.name) == "image":
            return "image/class/label"
        return "class/label" if name == "label" else name

    def _kind(self, mapped: Mapped, name: str) -> str:
        """The type that the options state. The type `file` becomes the kind of the column's first
        file."""
        first = str(self._surveys[name].first)
        return media_kind(first) if mapped.kind == "file" else mapped.kind


def _name_in(column: str, value: Any, code: str) -> str:
    """The file name or key in a cell."""
    if value is None or isinstance(value, (bytes, list)):
        raise SkipImage(code, f"the column {ticked(column)} has no usable name: {ticked(value)}")
    name = text_of(value)
    try:
        name.encode()
    except UnicodeEncodeError as error:  # JSON can have half a surrogate pair
        raise SkipImage(code, f"the column {ticked(column)} has no valid text: {error}") from error
    return name


def _top_split(path: str) -> str:
    """The split according to the top folder of a path, or else the default split."""
    top, slash, _ = path.removeprefix("./").partition("/")
    return top if slash and usual_split(top) else DEFAULT_SPLIT


def open_table(
    raw: Storage, path: str, options: TableOptions, wanted: Sequence[str] | None = None
) -> TextTable | ParquetTable:
    """The rows of a table; for a Parquet file, only the wanted columns."""
    if suffix_of(path) == "parquet":
        return ParquetTable(raw, path, wanted)
    return TextTable(raw, path, options)


class TableSource(Source):
    """Rows of tables. An item's key is the value of a column, or the number of its row."""

    Options: ClassVar[type[Any]] = TableOptions

    def __init__(self, raw: Storage, options: TableOptions) -> None:
        super().__init__(raw, options)
        self._opened: dict[int, TextTable | ParquetTable] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # The rows stay in the parent: an item contains its place.
        return type(self), (self.raw, self.options), {"_known": self._known}

    @cached_property
    def _listing(self) -> _Listing:
        return _Listing(self.raw, self.options)

    @cached_property
    def _known(self) -> _Known:
        return self._listing.known

    def raw_files(self) -> Iterator[RawFile]:
        for path, size in self._listing.used.items():
            yield RawFile(path, size, size)

    def labels(self) -> Mapping[str, Sequence[str]]:
        return {each.feature: each.classes for each in self._known.columns if each.kind == "label"}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._listing.items()

    def schema(self) -> str:
        return "".join(text for column in self._known.columns for text in column.schema())

    def codecs(self) -> Mapping[str, str]:
        return media_codecs(cast(MediaKind, each.kind) for each in self._file_columns)

    def describe(self) -> Mapping[str, str]:
        files = self._known.files
        found = {"tables": ", ".join(f"{safe(each.path)} ({each.split})" for each in files)}
        for name, kind, feature, _, times, classes in self._known.columns:
            text = kind if feature == name else f"{kind}, as {safe(feature)}"
            text += f", {len(classes)} classes" if kind == "label" else ""
            text += ", values missing" if times == "optional" else ""
            found[f"column {safe(name, limit=60)}"] = text
        if left_out := self._listing.left_out:
            found["left out"] = ", ".join(safe(name, limit=60) for name in left_out[:20])
        return found

    def raw_path(self, split: str, key: str) -> str | None:
        """The file of an item, if the keys are file names from a column."""
        naming = self._file_columns
        if len(naming) != 1 or self.options.key not in (None, naming[0].name):
            return None
        folders = [each.folder for each in self._known.files if each.split == split]
        return naming[0].mapped.path(key, folders[0] if folders else "")

    def class_of(self, item: Item) -> str:
        """The values of the columns of the type `label`."""
        names = [each.name for each in self._known.columns if each.kind == "label"]
        if not names:
            raise UsageError("`stratify` needs a column of the type `label`")
        number, start, length, _ = _STATE.unpack(item.state)
        values = self._rows(number).row(start, length)
        return "\n".join(str(values.get(name, "")) for name in names)

    def example(self, item: Item) -> Example | Written | Skipped:
        number, start, length, line = _STATE.unpack(item.state)
        rows = self._rows(number)
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
                data = read_media_file(self.raw, path)
                kind = cast(MediaKind, column.kind)
                made = media_features(kind, column.feature, path.rpartition("/")[2], data)
                example.update(made.features)
                if made.code:
                    remarks.append(
                        Remark(item.split, item.key, made.code, f"{name}: {made.detail}")
                    )
        except (ImageError, MediaError) as error:
            code, detail = error.code, f"{name}: {error.detail}"
        except SkipImage as error:
            code, detail = error.code, f"the column {ticked(name)}: {safe(error.detail)}"
        else:
            return Written(example, remarks) if remarks else example
        where = f"`{safe(self._known.files[number].path)}`, {rows.unit} {line}"
        return Skipped(item.split, item.key, code, f"{where}: {detail}")

    def _rows(self, number: int) -> TextTable | ParquetTable:
        if number not in self._opened:
            wanted = [each.name for each in self._known.columns]
            path = self._known.files[number].path
            self._opened[number] = open_table(self.raw, path, self.options, wanted)
        return self._opened[number]

    @cached_property
    def _file_columns(self) -> Sequence[Column]:
        return [each for each in self._known.columns if each.kind in FILE_KINDS]

    @cached_property
    def _makers(self) -> Sequence[tuple[str, str, FeatureMaker]]:
        """For each feature, in order: its column, its name and the function that makes it."""
        found: list[tuple[str, str, FeatureMaker]] = []
        for column in self._known.columns:
            if column.kind == "label":
                number, text = column.features
                found.append((column.name, number, feature_maker("int64", column.classes)))
                found.append((column.name, text, feature_maker("text")))
            elif column not in self._file_columns:
                found.append((column.name, column.feature, feature_maker(column.kind)))
        return sorted(found, key=lambda each: each[1])

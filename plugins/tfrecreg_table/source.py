"""The source `table`: every row becomes one example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from tfrecreg.api import (
    Example,
    Feature,
    ImageError,
    Item,
    MediaError,
    RawFile,
    Remark,
    Skipped,
    Source,
    Storage,
    UsageError,
    Written,
    bytes_feature,
    int64_feature,
    media_codecs,
    media_features,
    read_media_file,
    safe,
)
from tfrecreg_table.listing import ROW_STATE, TableListing, class_numbers
from tfrecreg_table.rows import RowError, RowReader
from tfrecreg_table.table_files import TableFile, open_rows
from tfrecreg_table.table_options import FILE_KINDS, TableOptions
from tfrecreg_table.table_schema import table_schema
from tfrecreg_table.values import (
    CellError,
    FeatureMaker,
    TableColumn,
    feature_maker,
    text_of,
    ticked,
    without_nulls,
)


class TableSource(Source):
    """Rows of tables. An item's key is the value of a column, or the number of its row.

    The tables are read once in the parent, for the places of the rows and the types of the columns.
    A worker reads the rows of its items, each by its place.
    """

    Options: ClassVar[type[Any]] = TableOptions

    def __init__(self, raw: Storage, options: TableOptions) -> None:
        self._raw = raw
        self._options = options
        self._listing: TableListing | None = None
        self._files: tuple[TableFile, ...] = ()
        self._columns: tuple[TableColumn, ...] = ()
        self._labels: Mapping[str, Sequence[str]] = {}
        self._path_column: TableColumn | None = None
        self._readers: dict[int, RowReader] = {}
        self._makers: list[tuple[str, str, FeatureMaker]] = []
        self._classes: list[tuple[TableColumn, dict[str, tuple[Feature, Feature]]]] = []
        self._file_columns: list[TableColumn] = []

    def __reduce__(self) -> tuple[object, ...]:
        # The rows stay in the parent: an item has its place.
        self._list()
        kept = ("_files", "_columns", "_labels", "_path_column")
        return type(self), (self._raw, self._options), {name: self.__dict__[name] for name in kept}

    def raw_files(self) -> Iterator[RawFile]:
        yield from self._list().raw_files()

    def labels(self) -> Mapping[str, Sequence[str]]:
        self._known()
        return {name: list(names) for name, names in self._labels.items()}

    def items(self) -> Iterator[Item | Skipped | Remark]:
        yield from self._list().items()

    def schema(self) -> str:
        self._known()
        return table_schema(self._columns, self._labels)

    def codecs(self) -> Mapping[str, str]:
        self._known()
        return media_codecs(each.media for each in self._columns if each.kind in FILE_KINDS)

    def describe(self) -> Mapping[str, str]:
        """The tables and what their columns become, for `--dry-run`."""
        listing = self._list()
        found = {
            "tables": ", ".join(f"{safe(each.path)} ({each.split})" for each in listing.files),
            "rows": str(listing.rows),
        }
        for column in listing.columns:
            text = (
                column.kind
                if column.feature == column.name
                else (f"{column.kind}, as {safe(column.feature)}")
            )
            if column.kind == "label":
                text += f", {len(listing.labels[column.feature])} classes"
            if column.missing:
                text += ", values missing"
            found[f"column {safe(column.name, limit=60)}"] = text
        for name, why in listing.kept.items():
            found[f"column {safe(name, limit=60)}"] = f"text: {why.partition(': ')[2]}"
        if listing.left_out:
            found["left out"] = ", ".join(safe(name, limit=60) for name in listing.left_out[:20])
        return found

    def raw_path(self, split: str, key: str) -> str | None:
        """The file that a row names, where the column of files has the keys."""
        self._known()
        if self._path_column is None:
            return None
        folders = [each.folder for each in self._files if each.split == split]
        return self._path_column.path(key, folders[0] if folders else "")

    def class_of(self, item: Item) -> str | None:
        """The values of the columns of the type `label`."""
        self._known()
        names = [each.name for each in self._columns if each.kind == "label"]
        if not names:
            raise UsageError(
                "`stratify` needs a column of the type `label`",
                hint="--option 'columns=*,NAME:label'",
            )
        number, start, length, _ = ROW_STATE.unpack(item.state)
        reader = self._readers.get(number) or self._open(number)
        try:
            values = reader.row(start, length)
        except RowError:  # which `example` says of the item
            return None
        return "\n".join(str(values.get(name, "")) for name in names)

    def example(self, item: Item) -> Example | Written | Skipped:
        number, start, length, line = ROW_STATE.unpack(item.state)
        reader = self._readers.get(number)
        if reader is None:
            reader = self._open(number)
        try:
            values = reader.row(start, length)
        except RowError as error:
            return self._skipped(item, number, line, "SRC051", safe(str(error)))
        name = ""
        example: dict[str, Feature] = {}
        try:
            for name, feature, make in self._makers:
                example[feature] = make(values.get(name))
            for column, by_name in self._classes:
                name = column.name
                self._add_classes(example, column, by_name, values.get(name))
        except (CellError, ValueError) as error:
            detail = f"the column {ticked(name)}: {safe(str(error))}"
            return self._skipped(item, number, line, "SRC052", detail)
        if self._file_columns:
            return self._with_files(item, example, values, number, line)
        return example

    def _with_files(
        self,
        item: Item,
        example: dict[str, Feature],
        values: Mapping[str, Any],
        number: int,
        line: int,
    ) -> Written | Skipped:
        remarks = []
        for column in self._file_columns:
            path = column.path(values.get(column.name, ""), self._files[number].folder)
            try:
                data = read_media_file(self._raw, path)
                made = media_features(column.media, column.feature, path.rpartition("/")[2], data)
            except (ImageError, MediaError) as error:
                return self._skipped(
                    item, number, line, error.code, f"{ticked(path)}: {error.detail}"
                )
            example.update(made.features)
            if made.code:
                remarks.append(
                    Remark(item.split, item.key, made.code, f"{ticked(path)}: {made.detail}")
                )
        return Written(example, remarks)

    def _skipped(self, item: Item, number: int, line: int, code: str, detail: str) -> Skipped:
        path = self._files[number].path
        unit = self._readers[number].unit
        where = f"`{safe(path)}`, {unit} {line}"
        return Skipped(item.split, item.key, code, f"{where}: {detail}")

    @staticmethod
    def _add_classes(
        example: dict[str, Feature],
        column: TableColumn,
        by_name: dict[str, tuple[Feature, Feature]],
        value: Any,
    ) -> None:
        if value is None:
            example[column.feature] = int64_feature(())
            example[column.text_feature] = bytes_feature(())
            return
        parts = without_nulls(value) if type(value) is list else (value,)
        texts = [text_of(each) for each in parts]
        try:
            found = [by_name[each] for each in texts]
        except KeyError as error:
            raise CellError(f"the class {ticked(error.args[0])} was not there before") from error
        if len(found) == 1:
            example[column.feature], example[column.text_feature] = found[0]
        else:
            example[column.feature] = int64_feature([each.values[0] for each, _ in found])
            example[column.text_feature] = bytes_feature(texts)

    def _open(self, number: int) -> RowReader:
        self._known()
        if not (self._makers or self._classes or self._file_columns):
            self._prepare()
        wanted = [each.name for each in self._columns]
        reader = open_rows(self._raw, self._files[number].path, self._options, wanted)
        self._readers[number] = reader
        return reader

    def _prepare(self) -> None:
        """What becomes of each column, for quick use."""
        numbers = class_numbers(self._labels)
        for column in sorted(self._columns, key=lambda each: each.feature):
            if column.kind in FILE_KINDS:
                self._file_columns.append(column)
            elif column.kind == "label":
                by_name = {
                    name: (int64_feature(number), bytes_feature(name))
                    for name, number in numbers[column.feature].items()
                }
                self._classes.append((column, by_name))
            else:
                self._makers.append((column.name, column.feature, feature_maker(column.kind)))

    def _known(self) -> None:
        if not self._files:
            self._list()

    def _list(self) -> TableListing:
        if self._listing is None:
            listing = TableListing(self._raw, self._options)
            self._listing = listing
            self._files = tuple(listing.files)
            self._columns, self._labels = listing.columns, listing.labels
            self._path_column = listing.path_column
        return self._listing

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
from tfrecreg_table.columns import TableColumn
from tfrecreg_table.listing import ROW_STATE, TableListing
from tfrecreg_table.rows import RowError, Rows, open_rows
from tfrecreg_table.table_files import TableFile
from tfrecreg_table.table_options import FILE_KINDS, TableOptions
from tfrecreg_table.values import (
    CellError,
    FeatureMaker,
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
        self._files: Sequence[TableFile] = ()
        self._columns: Sequence[TableColumn] = ()
        self._labels: Mapping[str, Sequence[str]] = {}
        self._path_column: TableColumn | None = None
        self._readers: dict[int, Rows] = {}
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
        return "".join(
            text
            for column in self._columns
            for text in column.schema(self._labels.get(column.feature, ()))
        )

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
            text = column.kind
            if column.feature != column.name:
                text += f", as {safe(column.feature)}"
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
        return self._path_column.mapped.path(key, folders[0] if folders else "")

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
        try:
            values = self._rows(number).row(start, length)
        except RowError:  # which `example` says of the item
            return None
        return "\n".join(str(values.get(name, "")) for name in names)

    def example(self, item: Item) -> Example | Written | Skipped:
        number, start, length, line = ROW_STATE.unpack(item.state)
        rows = self._readers.get(number) or self._rows(number)
        name = ""
        example: dict[str, Feature] = {}
        remarks: list[Remark] = []
        try:
            values = rows.row(start, length)
            for name, feature, make in self._makers:
                example[feature] = make(values.get(name))
            for column, by_name in self._classes:
                name = column.name
                self._add_classes(example, column, by_name, values.get(name))
            for column in self._file_columns:
                path = column.mapped.path(values.get(column.name), self._files[number].folder)
                name = ticked(path)
                data = read_media_file(self._raw, path)
                made = media_features(column.media, column.feature, path.rpartition("/")[2], data)
                example.update(made.features)
                if made.code:
                    detail = f"{name}: {made.detail}"
                    remarks.append(Remark(item.split, item.key, made.code, detail))
        except RowError as error:
            code, detail = "SRC051", safe(str(error))
        except (ImageError, MediaError) as error:
            code, detail = error.code, f"{name}: {error.detail}"
        except ValueError as error:
            code, detail = "SRC052", f"the column {ticked(name)}: {safe(str(error))}"
        else:
            return Written(example, remarks) if remarks else example
        where = f"`{safe(self._files[number].path)}`, {rows.unit} {line}"
        return Skipped(item.split, item.key, code, f"{where}: {detail}")

    @staticmethod
    def _add_classes(
        example: dict[str, Feature],
        column: TableColumn,
        by_name: Mapping[str, tuple[Feature, Feature]],
        value: Any,
    ) -> None:
        if type(value) is list:
            texts = [text_of(each) for each in without_nulls(value)]
        else:
            texts = [] if value is None else [text_of(value)]
        unknown = next((each for each in texts if each not in by_name), None)
        if unknown is not None:
            raise CellError(f"the class {ticked(unknown)} was not there before")
        if len(texts) == 1:
            example[column.feature], example[column.text_feature] = by_name[texts[0]]
        else:
            example[column.feature] = int64_feature([by_name[each][0].values[0] for each in texts])
            example[column.text_feature] = bytes_feature(texts)

    def _rows(self, number: int) -> Rows:
        """The rows of a table."""
        if number not in self._readers:
            self._known()
            if not self._readers:
                self._prepare()
            wanted = [each.name for each in self._columns]
            path = self._files[number].path
            self._readers[number] = open_rows(self._raw, path, self._options, wanted)
        return self._readers[number]

    def _prepare(self) -> None:
        """What becomes of each column, for quick use."""
        for column in sorted(self._columns, key=lambda each: each.feature):
            if column.kind in FILE_KINDS:
                self._file_columns.append(column)
            elif column.kind == "label":
                names = enumerate(self._labels[column.feature])
                by_name = {name: (int64_feature(at), bytes_feature(name)) for at, name in names}
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
            self._files, self._columns = listing.files, listing.columns
            self._labels, self._path_column = listing.labels, listing.path_column
        return self._listing

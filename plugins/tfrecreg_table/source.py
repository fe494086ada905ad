"""The source `table`: every row becomes one example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, cast

from tfrecreg.api import (
    Example,
    Feature,
    ImageError,
    Item,
    MediaError,
    MediaKind,
    RawFile,
    Remark,
    Skipped,
    Source,
    Storage,
    UsageError,
    Written,
    media_codecs,
    media_features,
    read_media_file,
    safe,
)
from tfrecreg_table.columns import Column, FeatureMaker, feature_maker, text_of, ticked
from tfrecreg_table.listing import ITEM_STATE, Known, Listing
from tfrecreg_table.rows import RowError, Rows, open_rows
from tfrecreg_table.tables import FILE_KINDS, TableOptions


class TableSource(Source):
    """Rows of tables. An item's key is the value of a column, or the number of its row.

    The tables are read once in the parent, for the places of the rows and the types of the columns.
    A worker reads the rows of its items, each by its place.
    """

    Options: ClassVar[type[Any]] = TableOptions

    def __init__(self, raw: Storage, options: TableOptions) -> None:
        self._raw = raw
        self._options = options
        self._opened: dict[int, Rows] = {}

    def __reduce__(self) -> tuple[object, ...]:
        # The rows stay in the parent: an item has its place.
        return type(self), (self._raw, self._options), {"_known": self._known}

    @cached_property
    def _listing(self) -> Listing:
        return Listing(self._raw, self._options)

    @cached_property
    def _known(self) -> Known:
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
        number, start, length, _ = ITEM_STATE.unpack(item.state)
        try:
            values = self._rows(number).row(start, length)
        except RowError:  # `example` reports it
            return None
        return "\n".join(str(values.get(name, "")) for name in names)

    def example(self, item: Item) -> Example | Written | Skipped:
        number, start, length, line = ITEM_STATE.unpack(item.state)
        rows, file = self._rows(number), self._known.files[number]
        name = ""
        example: dict[str, Feature] = {}
        remarks: list[Remark] = []
        try:
            values = rows.row(start, length)
            for name, feature, make in self._makers:
                example[feature] = make(values.get(name))
            for column in self._file_columns:
                path = column.mapped.path(text_of(values.get(column.name)), file.folder)
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
        where = f"`{safe(file.path)}`, {rows.unit} {line}"
        return Skipped(item.split, item.key, code, f"{where}: {detail}")

    def _rows(self, number: int) -> Rows:
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

"""The names of the columns of the table `records`, and the SQL expressions for them in each file.

Each feature has a column of single values or of lists. ``NAME.count`` is the number of values. If
some values are too large to be stored, ``NAME.size`` is their size in bytes. A feature with two
kinds has a column for each kind. Columns about the image, the class and the boxes have short names,
unless a feature has that name. DuckDB ignores case, so the second of two names that differ only in
case gets ``_1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tfrecreg.builtin.query.entries import (
    BOX_COLUMNS,
    COLUMN_FEATURES,
    IMAGE_COLUMNS,
    CatalogEntry,
    CellColumns,
    sql_list,
    sql_name,
    sql_text,
)
from tfrecreg.core.schema.labels import IMAGE_LABEL

FIXED = (
    ("split", "VARCHAR"),
    ("shard", "VARCHAR"),
    ("record", "BIGINT"),
    ("offset", "BIGINT"),
    ("bytes", "BIGINT"),
    ("key", "VARCHAR"),
    ("digest", "VARCHAR"),
    ("payload", "VARCHAR"),
)
"""Columns of every target, with their types."""
_TYPES = {"bytes": "VARCHAR", "int64": "BIGINT", "float": "FLOAT"}
_KIND_SUFFIXES = {"bytes": "text", "int64": "int64", "float": "float"}
_IMAGE_LABEL_TEXT = "image/class/text"


class CatalogColumn(NamedTuple):
    """One column of `records`, after the fixed ones."""

    name: str
    sql_type: str
    source: str
    """Where the values come from. ``v``, ``n`` and ``s`` stand for a feature. ``image`` and
    ``boxes`` stand for the column `own_name` of the files. ``label`` stands for
    :attr:`RecordColumns.label`.
    """
    form: CellColumns | None = None
    own_name: str = ""
    """The column's name in the files, if its source is `image` or `boxes`."""

    def of(self, entry: CatalogEntry) -> str:
        """The SQL expression for this column if a single file is queried."""
        null = f"NULL::{self.sql_type}"
        if self.source in ("image", "boxes"):
            there = entry.has_images if self.source == "image" else entry.has_boxes
            return sql_name(self.own_name) if there else null
        form = self.form
        for number, each in enumerate(entry.features):
            if form is None or (each.feature, each.kind) != (form.feature, form.kind):
                continue
            present = f"s{number}" if each.kind == "bytes" else f"v{number}"
            if self.source == "s":
                return f"s{number}"
            if self.source == "n":
                one = f"CASE WHEN {present} IS NULL THEN NULL ELSE 1 END"
                return f"n{number}::BIGINT" if each.is_list else f"({one})::BIGINT"
            if not each.has_values:
                return null
            if form.is_list and not each.is_list:
                return f"CASE WHEN v{number} IS NULL THEN NULL ELSE [v{number}] END"
            return f"v{number}"
        return null


class RecordColumns:
    """The columns of `records`, after the fixed ones."""

    def __init__(
        self, entries: Sequence[CatalogEntry], labels: Mapping[str, Sequence[str]]
    ) -> None:
        forms = _forms(entries)
        self.left_out = len({each.feature for each in forms}) - COLUMN_FEATURES
        """Number of features minus the maximum. Features above the maximum have no column."""
        kept = list(dict.fromkeys(each.feature for each in forms))[:COLUMN_FEATURES]
        forms = sorted(each for each in forms if each.feature in set(kept))
        self._taken = {name for name, _ in FIXED}
        of_features = list(self._of_features(forms))
        named = {
            each.form.feature: each for each in of_features if each.source == "v" and each.form
        }
        self.label = _label(named, labels)
        """The SQL expression for a record's class, and the expression's type. None without a class.
        """
        derived: list[CatalogColumn] = []
        if self.label:
            name = self._free("label", "label_name")
            derived.append(CatalogColumn(name, self.label[1], "label"))
        if any(each.has_images for each in entries):
            for own in IMAGE_COLUMNS:
                sql_type = "VARCHAR" if own == "format" else "BIGINT"
                name = self._free(own, f"image_{own}")
                derived.append(CatalogColumn(name, sql_type, "image", own_name=own))
        if any(each.has_boxes for each in entries):
            for own in BOX_COLUMNS:
                sql_type = "BIGINT" if own == "boxes" else "DOUBLE"
                name = self._free(own, f"object_{own}")
                derived.append(CatalogColumn(name, sql_type, "boxes", own_name=own))
        self.columns = (*derived, *of_features)

    def __iter__(self) -> Iterator[CatalogColumn]:
        return iter(self.columns)

    def _of_features(self, forms: Sequence[CellColumns]) -> Iterator[CatalogColumn]:
        kinds: dict[str, int] = {}
        for each in forms:
            kinds[each.feature] = kinds.get(each.feature, 0) + 1
        names = {}
        for each in forms:
            suffix = f".{_KIND_SUFFIXES[each.kind]}" if kinds[each.feature] > 1 else ""
            names[each] = self._free(f"{each.feature or 'unnamed'}{suffix}")
        for each, name in names.items():
            value = _TYPES[each.kind]
            if each.has_values:
                yield CatalogColumn(name, f"{value}[]" if each.is_list else value, "v", each)
            if each.is_list:
                yield CatalogColumn(self._free(f"{name}.count"), "BIGINT", "n", each)
            if each.kind == "bytes" and each.is_cut:
                yield CatalogColumn(self._free(f"{name}.size"), "BIGINT", "s", each)

    def _free(self, *names: str) -> str:
        """The first name that is free, or else the last name with a number appended."""
        shown = [each.replace("\0", "\\x00") for each in names]
        number = 0
        for each in shown:
            if each.lower() not in self._taken:
                self._taken.add(each.lower())
                return each
        while (name := f"{shown[-1]}_{(number := number + 1)}").lower() in self._taken:
            pass
        self._taken.add(name.lower())
        return name


def _forms(entries: Iterable[CatalogEntry]) -> list[CellColumns]:
    """The features in order of first appearance. A feature of several kinds is listed for each."""
    found: dict[tuple[str, str], CellColumns] = {}
    for each in entries:
        for form in each.features:
            key = form.feature, form.kind
            found[key] = found[key].joined(form) if key in found else form
    return list(found.values())


def _label(
    named: Mapping[str, CatalogColumn], labels: Mapping[str, Sequence[str]]
) -> tuple[str, str] | None:
    """The SQL expression for a record's class, and the type of the expression.

    The class is the class name in the record, or else the label map's name for the class number, or
    else the number. A name in the record is ignored if it is empty, or if any record has several
    names.
    """
    numbers = [
        each for each in (IMAGE_LABEL, *sorted(labels)) if _is_single(named.get(each), "BIGINT")
    ]
    said = named.get(_IMAGE_LABEL_TEXT)
    ways = []
    if said is not None and _is_single(said, "VARCHAR") and numbers[:1] in ([], [IMAGE_LABEL]):
        ways.append(f"nullif({_single(said)}, '')")
    if numbers:
        number, names = _single(named[numbers[0]]), labels.get(numbers[0])
        if not ways and not names:
            return number, "BIGINT"
        ways.append(class_names(number, names) if names else f"{number}::VARCHAR")
    return (f"coalesce({', '.join(ways)})", "VARCHAR") if ways else None


def _is_single(column: CatalogColumn | None, sql_type: str) -> bool:
    """Whether a column has this type and at most one value per record."""
    many = column is None or column.form is None or column.form.is_many
    return column is not None and not many and column.sql_type.removesuffix("[]") == sql_type


def _single(column: CatalogColumn) -> str:
    name = sql_name(column.name)
    return f"{name}[1]" if column.sql_type.endswith("[]") else name


def class_names(number: str, names: Sequence[str]) -> str:
    """The expression for the name of a class number, or for the number if it has no name."""
    known = sql_list(sql_text(name) if name else "NULL" for name in names)
    named = f"CASE WHEN {number} BETWEEN 0 AND {len(names) - 1} THEN {known}[{number} + 1] END"
    return f"coalesce({named}, {number}::VARCHAR)"

"""The tables `records`, `findings` and `ledger` of a target, as SQL queries on Parquet files.

Each feature has a column of single values or of lists. ``NAME.count`` is the number of values. If
some values of a feature are too large to be stored, ``NAME.size`` is the size in bytes of all
values of the feature in a record. A feature with two kinds has a column for each kind. Columns
about the image, the class and the boxes have short names if no feature has such a name. DuckDB
ignores case, so the second of two names that differ only in case gets ``_1``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from blake3 import blake3

from tfrecreg.builtin.query.catalog import (
    BOX_COLUMNS,
    COLUMN_FEATURES,
    IMAGE_COLUMNS,
    OBJECT_NUMBERS,
    OBJECT_SIDES,
    CatalogEntry,
    CellColumns,
    ShardCatalog,
    arrow_module,
    parquet,
    shown_text,
    sql_list,
    sql_name,
    sql_text,
)
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import LEDGER_NAME
from tfrecreg.core.schema.labels import IMAGE_LABEL, OBJECT_LABEL
from tfrecreg.core.values.errors import StorageError, TfrecregError, UsageError
from tfrecreg.core.values.findings import Location
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.check.reports import Report

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
_OWN = {"format": "VARCHAR", "boxes_area": "DOUBLE", "smallest_box": "DOUBLE"}
_KIND_SUFFIXES = {"bytes": "text", "int64": "int64", "float": "float"}
_IMAGE_LABEL_TEXT = "image/class/text"


class CatalogColumn(NamedTuple):
    """One column of `records`, after the fixed ones."""

    name: str
    sql_type: str
    source: str
    """Where the values come from. ``v``, ``n`` and ``s`` stand for a feature. ``has_images`` and
    ``has_boxes`` stand for the column `own_name` of the files for which this is true. ``label``
    stands for :attr:`RecordColumns.label`.
    """
    form: CellColumns | None = None
    own_name: str = ""
    """The column's name in the files."""

    def of(self, entry: CatalogEntry) -> str:
        """The SQL expression for this column if a single file is queried."""
        null = f"NULL::{self.sql_type}"
        if self.own_name:
            return sql_name(self.own_name) if getattr(entry, self.source) else null
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
        names = list(dict.fromkeys(each.feature for each in forms))
        self.left_out = len(names) > COLUMN_FEATURES or any(each.left_out for each in entries)
        """Whether only the first features have columns."""
        kept = set(names[:COLUMN_FEATURES])
        forms = sorted(each for each in forms if each.feature in kept)
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
        groups = (("has_images", "image", IMAGE_COLUMNS), ("has_boxes", "object", BOX_COLUMNS))
        for source, prefix, columns in groups:
            if any(getattr(each, source) for each in entries):
                for own in columns:
                    name, sql_type = self._free(own, f"{prefix}_{own}"), _OWN.get(own, "BIGINT")
                    derived.append(CatalogColumn(name, sql_type, source, own_name=own))
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
        numbered = (f"{names[-1]}_{number}" for number in count(1))
        shown = (each.replace("\0", "\\x00") for each in chain(names, numbered))
        name = next(each for each in shown if each.lower() not in self._taken)
        self._taken.add(name.lower())
        return name


def _forms(entries: Iterable[CatalogEntry]) -> list[CellColumns]:
    """The features in order of first appearance. A feature is listed once for each kind."""
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


_FILES = 256
"""Number of files in one part of a view. SQL searches these files for the shard of each row."""


@dataclass(frozen=True, slots=True)
class _Arm:
    """Files of one split that have the same columns."""

    entry: CatalogEntry
    shards: dict[str, str] = field(default_factory=dict)
    """Maps the path of each file to the name of its shard."""


class TargetTables:
    """The SQL of `records` and `objects` of one target."""

    def __init__(
        self, catalogs: Sequence[ShardCatalog], labels: Mapping[str, Sequence[str]]
    ) -> None:
        self._catalogs = catalogs
        self._labels = labels
        self.columns = RecordColumns([each.kept.entry for each in catalogs], labels)

    @property
    def paths(self) -> Iterator[str]:
        """The files that hold the tables."""
        for each in self._catalogs:
            yield each.kept.records
            if each.kept.entry.has_objects:
                yield each.kept.objects

    def records(self) -> str:
        """The query of `records`."""
        arms = self._arms("records")
        if not arms:
            return empty_table(dict(FIXED))
        fixed = [
            (name, "lower(hex(digest))" if name == "digest" else sql_name(name))
            for name, _ in FIXED[2:]
        ]
        others = [each for each in self.columns if each.source != "label"]
        inner = []
        for split, arm in arms:
            columns = [*fixed, *((each.name, each.of(arm.entry)) for each in others)]
            inner.append(self._select(split, arm, columns))
        joined = " UNION ALL ".join(inner)
        label = self.columns.label
        if label is None:
            return joined
        of_label = f"{label[0]} AS "
        order = [sql_name(name) for name, _ in FIXED]
        order += (
            f"{of_label if each.source == 'label' else ''}{sql_name(each.name)}"
            for each in self.columns
        )
        return f"SELECT {', '.join(order)} FROM ({joined})"

    def objects(self) -> str:
        """The query of `objects`."""
        names = self._labels.get(OBJECT_LABEL)
        number = class_names("label_number", names) if names else "label_number::VARCHAR"
        columns = [
            ("record", "record"),
            ("key", "key"),
            ("object", "object"),
            ("label", f"coalesce(nullif(text, ''), {number})"),
            *((side, side) for side in OBJECT_SIDES),
            *((name, name) for name in OBJECT_NUMBERS),
        ]
        inner = [self._select(split, arm, columns) for split, arm in self._arms("objects")]
        if inner:
            return " UNION ALL ".join(inner)
        kinds = {
            **dict.fromkeys(("split", "shard", "label", "key"), "VARCHAR"),
            **dict.fromkeys(("record", "object", "label_number"), "BIGINT"),
            **dict.fromkeys(OBJECT_SIDES, "FLOAT"),
        }
        names = ("split", "shard", *(name for name, _ in columns))
        return empty_table({name: kinds.get(name, "DOUBLE") for name in names})

    def _arms(self, kind: Literal["records", "objects"]) -> list[tuple[str, _Arm]]:
        """Groups of files with equal split and columns. If two shards share a file, two groups
        contain it.
        """
        arms: dict[tuple[object, ...], list[_Arm]] = {}
        for shard, kept, _ in self._catalogs:
            entry, path = kept.entry, kept.records
            form: tuple[object, ...] = entry.features, entry.has_images, entry.has_boxes
            if kind == "objects":
                if not entry.has_objects:
                    continue
                form, path = (), kept.objects
            known = arms.setdefault((shard.split, *form), [])
            free = (arm for arm in known if len(arm.shards) < _FILES and path not in arm.shards)
            arm = next(free, None)
            if arm is None:
                arm = _Arm(entry)
                known.append(arm)
            arm.shards[path] = shard.name
        return [(str(form[0]), arm) for form, found in arms.items() for arm in found]

    @staticmethod
    def _select(split: str, arm: _Arm, columns: Sequence[tuple[str, str]]) -> str:
        files = sql_list(map(sql_text, arm.shards))
        names = set(arm.shards.values())
        if len(names) == 1:
            shard = sql_text(names.pop())
        else:
            whens = (
                f"WHEN {sql_text(path)} THEN {sql_text(name)}" for path, name in arm.shards.items()
            )
            shard = f"CASE filename {' '.join(whens)} END"
        named = (f"{expression} AS {sql_name(name)}" for name, expression in columns)
        # The names of columns in a file are ours: none comes from data.
        return (
            f"SELECT {sql_text(split)} AS split, {shard} AS shard, {', '.join(named)} "
            f"FROM read_parquet({files}, filename = true, hive_partitioning = false)"
        )


def empty_table(columns: Mapping[str, str]) -> str:
    """A query that returns these columns and no rows."""
    empty = (f"NULL::{kind} AS {sql_name(name)}" for name, kind in columns.items())
    return f"SELECT {', '.join(empty)} WHERE false"


_REPORT_LIMIT = 1 << 30

FINDING_COLUMNS = {
    "code": "VARCHAR",
    "rule": "VARCHAR",
    "severity": "VARCHAR",
    "message": "VARCHAR",
    "hint": "VARCHAR",
    "fingerprint": "VARCHAR",
    "count": "BIGINT",
    "split": "VARCHAR",
    "shard": "VARCHAR",
    "record": "BIGINT",
    "offset": "BIGINT",
    "feature": "VARCHAR",
    "key": "VARCHAR",
    "detail": "VARCHAR",
}
LEDGER_COLUMNS = {
    "split": "VARCHAR",
    "key": "VARCHAR",
    "code": "VARCHAR",
    "detail": "VARCHAR",
    "times": "BIGINT",
}


def write_findings(
    target: Target, catalogs: Sequence[ShardCatalog], report: str | None, path: str
) -> str:
    """Write a row per location of the last check's findings. If there is no such check of these
    bytes, write nothing and return the reason.
    """
    try:
        found = _report(target, report)
        why = "there is no report of a check" if found is None else ""
        read = {}
        if found is not None and found.basis is not None:
            read = {each.path: each.blake3 for each in found.basis.shards}
        by_path = {each.shard.path: each.kept.entry.shard for each in catalogs}
        by_name = {each.shard.name: each.kept.entry.shard for each in catalogs}
        known = None not in read.values() and read in (by_path, by_name)
        if found is not None and not known:
            raise UsageError(f"the report of `{target.name}` does not describe the current bytes")
    except TfrecregError as error:
        if report is not None:
            raise
        found, why = None, error.message
    rows = []
    for each in (*found.findings, *found.waived) if found is not None else ():
        for place in each.locations or (Location(),):
            row = {**asdict(each), "severity": each.severity.value, **asdict(place)}
            rows.append({name: row[name] for name in FINDING_COLUMNS})
    _write(path, FINDING_COLUMNS, rows)
    return why


def _report(target: Target, report: str | None) -> Report | None:
    if report is not None:
        path, data = report, Path(report).read_bytes() if Path(report).is_file() else b""
    else:
        path = layout.report_path(target.dataset) if target.dataset else ""
        if target.home is None or not path or target.home.stat(path) is None:
            return None
        data = target.home.read(path, limit=_REPORT_LIMIT)
    from tfrecreg.core.check.report_format import parse_report

    return parse_report(data, path, target.name)


def write_ledger(target: Target, path: str) -> str:
    """Write each line of a build's ledger as a row. If the table has no rows, return the reason."""
    try:
        lines, why = ledger_lines(target), ""
    except TfrecregError as error:
        lines, why = [], error.message
    if lines is None:
        lines, why = [], "it has none"
    _write(path, LEDGER_COLUMNS, map(json.loads, lines))
    return safe(why, limit=1000)


def ledger_lines(target: Target) -> list[bytes] | None:
    """The lines of the target's ledger. None if the manifest lists no ledger."""
    files = target.manifest.files if target.manifest is not None else ()
    entry = next((each for each in files if each.path == LEDGER_NAME), None)
    if entry is None or target.storage is None:
        return None
    data = target.storage.read(LEDGER_NAME, limit=_REPORT_LIMIT)
    if blake3(data).hexdigest() != entry.blake3:
        raise StorageError(
            f"`{LEDGER_NAME}` is not the file that the manifest names",
            hint=f"tfrecreg check {target.name}",
        )
    return data.splitlines()


def _write(path: str, columns: dict[str, str], rows: Iterable[dict[str, Any]]) -> None:
    """Write a table, unless it has no rows."""
    shown = [
        {
            name: shown_text(value) if isinstance(value, str) else value
            for name, value in row.items()
        }
        for row in rows
    ]
    if not shown:
        return
    pa = arrow_module()
    kinds = {"VARCHAR": pa.string(), "BIGINT": pa.int64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    parquet().write_table(pa.Table.from_pylist(shown, schema), path)

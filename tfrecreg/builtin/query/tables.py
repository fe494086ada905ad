"""The tables of a target over its Parquet files: `records`, `findings`, `ledger`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from blake3 import blake3

from tfrecreg.builtin.query.catalog import ShardCatalog
from tfrecreg.builtin.query.columns import FIXED, RecordColumns, class_names
from tfrecreg.builtin.query.entries import (
    OBJECT_NUMBERS,
    OBJECT_SIDES,
    CatalogEntry,
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
from tfrecreg.core.schema.labels import OBJECT_LABEL
from tfrecreg.core.values.errors import StorageError, TfrecregError, UsageError
from tfrecreg.core.values.findings import Location
from tfrecreg.core.values.text import safe

if TYPE_CHECKING:
    from tfrecreg.core.check.reports import Report

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
    """The query of a table without rows."""
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
    """Write the findings of the last check, a row per location, if that check read these bytes."""
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
            raise UsageError(f"the report of `{target.name}` describes other bytes")
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
    """Write the ledger of a build: a row per skipped item and per remark."""
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

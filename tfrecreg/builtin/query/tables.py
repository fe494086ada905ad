"""The tables of a target over its Parquet files: `records`, `findings`, `ledger`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from blake3 import blake3

from tfrecreg.builtin.query.catalog import ShardCatalog
from tfrecreg.builtin.query.cells import arrow_module, parquet, sql_list, sql_name, sql_text
from tfrecreg.builtin.query.columns import FIXED, RecordColumns, class_names
from tfrecreg.builtin.query.rows import OBJECT_NUMBERS, OBJECT_SIDES, CatalogEntry
from tfrecreg.core.check.report_format import parse_report
from tfrecreg.core.check.reports import Report
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest import LEDGER_NAME
from tfrecreg.core.schema.labels import IMAGE_LABEL, OBJECT_LABEL
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.values.findings import Finding, Location
from tfrecreg.core.values.text import safe

_FILES = 256
"""Files that are read by one part of a view, whose shard is looked up among them."""
_MOST_NUMBERS = 100_000
"""Class numbers that records may name."""


@dataclass(frozen=True, slots=True)
class _Arm:
    """Files of one split with the same columns."""

    entry: CatalogEntry
    shards: dict[str, str] = field(default_factory=dict)
    """Name of the shard by path of the file."""


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
        """The files that the tables are in."""
        for each in self._catalogs:
            yield each.kept.records
            if each.kept.entry.has_objects:
                yield each.kept.objects

    def names_of_others(
        self, rows: Callable[[str], Iterable[tuple[Any, ...]]]
    ) -> dict[str, list[str]]:
        """The names that records give to class numbers that others have alone, by feature, where
        no label map has them. A number with two names has none.
        """
        numbered = {}
        if self.columns.named_number and IMAGE_LABEL not in self._labels:
            number, text = self.columns.named_number
            numbered[IMAGE_LABEL] = (number, text, self._all_records())
        objects = [("label_number", "label_number"), ("text", "text")]
        arms = [self._select(split, arm, objects) for split, arm in self._arms("objects")]
        if arms and OBJECT_LABEL not in self._labels:
            numbered[OBJECT_LABEL] = ("label_number", "text", " UNION ALL ".join(arms))
        found = {}
        for feature, (number, text, sql) in numbered.items():
            bounds = f"FROM ({sql}) WHERE {number} BETWEEN 0 AND {_MOST_NUMBERS}"
            if not [*rows(f"SELECT 1 {bounds} AND ({text} IS NULL OR {text} = '') LIMIT 1")]:
                continue
            names = dict(
                rows(
                    f"SELECT {number}, min({text}) {bounds} AND {text} <> '' "
                    f"GROUP BY 1 HAVING min({text}) = max({text})"
                )
            )
            if names:
                found[feature] = [names.get(each, "") for each in range(max(names) + 1)]
        return found

    def records(self) -> str:
        """The query of `records`."""
        joined = self._all_records()
        if not joined:
            empty = (f"NULL::{kind} AS {sql_name(name)}" for name, kind in FIXED)
            return f"SELECT {', '.join(empty)} WHERE false"
        label = self.columns.label
        if label is None:
            return joined
        order = ", ".join(
            [
                *(sql_name(name) for name, _ in FIXED),
                *(
                    f"{label[0]} AS {sql_name(each.name)}"
                    if each.source == "label"
                    else sql_name(each.name)
                    for each in self.columns
                ),
            ]
        )
        return f"SELECT {order} FROM ({joined})"

    def _all_records(self) -> str:
        """The query of all records, without `label`; empty without any."""
        inner = [
            self._select(
                split,
                arm,
                [
                    *((name, _fixed(name)) for name, _ in FIXED[2:]),
                    *(
                        (each.name, each.of(arm.entry))
                        for each in self.columns
                        if each.source != "label"
                    ),
                ],
            )
            for split, arm in self._arms("records")
        ]
        return " UNION ALL ".join(inner)

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
            **dict.fromkeys(("label", "key"), "VARCHAR"),
            **dict.fromkeys(("record", "object", "label_number"), "BIGINT"),
            **dict.fromkeys(OBJECT_SIDES, "FLOAT"),
        }
        empty = [f"NULL::{kinds.get(name, 'DOUBLE')} AS {sql_name(name)}" for name, _ in columns]
        head = "NULL::VARCHAR AS split, NULL::VARCHAR AS shard"
        return f"SELECT {head}, {', '.join(empty)} WHERE false"

    def _arms(self, kind: Literal["records", "objects"]) -> list[tuple[str, _Arm]]:
        """The files by split and columns; a file that two shards share is in two arms."""
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
        # Names of columns in a file are ours: no name from data is one.
        return (
            f"SELECT {sql_text(split)} AS split, {shard} AS shard, {', '.join(named)} "
            f"FROM read_parquet({files}, filename = true, hive_partitioning = false)"
        )


def _fixed(name: str) -> str:
    return "lower(hex(digest))" if name == "digest" else sql_name(name)


_ROWS = 50_000
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
    """Write the findings of the last check of these very bytes: a row for each location."""
    try:
        found = _report(target, report)
        why = "there is no report of a check" if found is None else ""
        if found is not None and not _is_about(found, catalogs):
            raise UsageError(
                f"the report of `{target.name}` is about other bytes",
                hint=f"tfrecreg check {target.name} --fail-on never --json > FILE writes one",
            )
    except TfrecregError as error:
        if report is not None:
            raise
        found, why = None, error.message
    every = (*found.findings, *found.waived) if found is not None else ()
    _write(path, FINDING_COLUMNS, (row for each in every for row in _rows_of(each)))
    return why


def _is_about(found: Report, catalogs: Sequence[ShardCatalog]) -> bool:
    """Whether a report names the very bytes that were catalogued."""
    read = {each.path: each.blake3 for each in (found.basis.shards if found.basis else ())}
    here = [(each.shard, each.kept.entry.shard) for each in catalogs]
    by_path = {shard.path: digest for shard, digest in here}
    by_name = {shard.name: digest for shard, digest in here}
    return None not in read.values() and read in (by_path, by_name)


def _report(target: Target, report: str | None) -> Report | None:
    if report is not None:
        data = Path(report).read_bytes() if Path(report).is_file() else b""
        return parse_report(data, report, target.name)
    path = layout.report_path(target.dataset) if target.dataset else ""
    if target.home is None or not path or target.home.stat(path) is None:
        return None
    return parse_report(target.home.read(path, limit=_REPORT_LIMIT), path, target.name)


def _rows_of(finding: Finding) -> Iterator[dict[str, Any]]:
    for place in finding.locations or (Location(),):
        yield {
            "code": finding.code,
            "rule": finding.rule,
            "severity": finding.severity.value,
            "message": finding.message,
            "hint": finding.hint,
            "fingerprint": finding.fingerprint,
            "count": finding.count,
            "split": place.split,
            "shard": place.shard,
            "record": place.record,
            "offset": place.offset,
            "feature": place.feature,
            "key": place.key,
            "detail": place.detail,
        }


def write_ledger(target: Target, path: str) -> str:
    """Write the ledger of a build: a row for each item that was skipped and each remark."""
    why = "it has none"
    lines: Iterable[bytes] = ()
    entry = next(
        (
            each
            for each in (target.manifest.files if target.manifest is not None else ())
            if each.path == LEDGER_NAME
        ),
        None,
    )
    if entry is not None and target.storage is not None:
        try:
            data = target.storage.read(LEDGER_NAME, limit=_REPORT_LIMIT)
        except TfrecregError as error:
            why = error.message
        else:
            if blake3(data).hexdigest() == entry.blake3:
                why, lines = "", data.splitlines()
            else:
                why = f"`{LEDGER_NAME}` is not the file that the manifest names"
    _write(path, LEDGER_COLUMNS, map(json.loads, lines))
    return safe(why, limit=1000)


def _write(path: str, columns: dict[str, str], rows: Iterable[dict[str, Any]]) -> None:
    """Write a table; nothing if it has no rows."""
    waiting = iter(rows)
    some = list(islice(waiting, _ROWS))
    if not some:
        return
    pa, pq = arrow_module(), parquet()
    kinds = {"VARCHAR": pa.string(), "BIGINT": pa.int64()}
    schema = pa.schema([(name, kinds[kind]) for name, kind in columns.items()])
    with pq.ParquetWriter(path, schema) as writer:
        while some:
            arrays = [
                pa.array([_plain(row.get(name)) for row in some], kinds[kind])
                for name, kind in columns.items()
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            some = list(islice(waiting, _ROWS))


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return value

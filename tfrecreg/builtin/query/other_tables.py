"""The tables `findings` and `ledger`, as Parquet files in a temporary folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from blake3 import blake3

from tfrecreg.builtin.query.catalog import ShardCatalog
from tfrecreg.builtin.query.packages import arrow_module, parquet
from tfrecreg.core.check.reports.model import Report
from tfrecreg.core.check.saved_report import parse_report
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.registry import layout
from tfrecreg.core.registry.manifest.model import LEDGER_NAME
from tfrecreg.core.values.errors import TfrecregError, UsageError
from tfrecreg.core.values.findings import Finding, Location
from tfrecreg.core.values.text import safe

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

"""Asks one or more targets: opens their tables, writes answers, and suggests questions.

An answer is written piece by piece, so memory never holds the whole answer. A spreadsheet evaluates
text that begins with ``=``, ``+``, ``-``, ``@``, a tab or a return. In CSV, an apostrophe precedes
such text.
"""

from __future__ import annotations

import atexit
import csv
import datetime
import io
import json
import string
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tfrecreg._version import JSON_VERSION
from tfrecreg.builtin.query.catalog import (
    COLUMN_FEATURES,
    CatalogCache,
    ShardCatalog,
    arrow_module,
    catalogs_of,
    expect_packages,
    parquet,
    sql_name,
    sql_text,
)
from tfrecreg.builtin.query.connection import Connection
from tfrecreg.builtin.query.tables import (
    FINDING_COLUMNS,
    LEDGER_COLUMNS,
    TargetTables,
    empty_table,
    write_findings,
    write_ledger,
)
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.registry.data import TargetsLike
from tfrecreg.core.registry.find import find_target, named_targets
from tfrecreg.core.registry.registry import RegistryLike, open_registry
from tfrecreg.core.values.errors import NoShardsError, RefusedError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import parse_version
from tfrecreg.core.values.text import count, json_data, safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

TABLES = ("records", "objects", "splits", "findings", "ledger")
"""The tables of each target."""
PREVIOUS = "previous"
"""Name of the table with the records of the release before the target."""
_LETTERS = string.ascii_lowercase
_SPLITS = (
    "SELECT split, count(DISTINCT shard) AS shards, count(*) AS records, "
    "sum(bytes)::BIGINT AS bytes FROM {records} GROUP BY split ORDER BY split"
)

_Known = tuple[Target, tuple[ShardCatalog, ...]]
"""A target with the catalogs of its shards."""


@dataclass(frozen=True, slots=True)
class QueryTable:
    """A table that a question can name."""

    name: str
    target: str
    """The target that its rows come from; empty if it combines all targets."""
    columns: tuple[tuple[str, str], ...]
    """Names and types of the columns."""


class Questions:
    """Answers questions about the tables of targets. Close it, or use it in a ``with`` block.

    Attributes:
        targets: the targets.
        catalogs: for each target, the catalogs of its shards.
        connection: the connection to the tables.
        notes: notes about data that the tables lack, one line per note.
    """

    def __init__(
        self,
        stack: ExitStack,
        connection: Connection,
        known: Sequence[_Known],
        earlier: Sequence[_Known],
        *,
        report: str | None = None,
        in_check: bool = False,
    ) -> None:
        """Open the tables of targets and a previous release. During a check, `findings` is left
        out. Closing the questions closes the contents of `stack`.
        """
        self.targets = tuple(target for target, _ in known)
        self.catalogs = tuple(catalogs for _, catalogs in known)
        self.connection = connection
        self.notes: tuple[str, ...] = ()
        self._sql: dict[str, str] = {}
        self._targets: dict[str, str] = {}
        self._paths: list[str] = []
        self._absent: list[tuple[str, str]] = []
        """Tables that are empty because no data were found, each with the reason."""
        several = len(known) > 1
        for letter, (target, catalogs) in zip(_LETTERS, known, strict=False):
            prefix, name = (f"{letter}_", letter) if several else ("", "records")
            records = self._add_records(name, target, catalogs)
            self._add(f"{prefix}objects", target, records.objects())
            self._add(f"{prefix}splits", target, _SPLITS.format(records=sql_name(name)))
            if not in_check:
                write = partial(write_findings, target, catalogs, None if several else report)
                self._add_file(prefix, "findings", target, FINDING_COLUMNS, write)
            self._add_file(prefix, "ledger", target, LEDGER_COLUMNS, partial(write_ledger, target))
        for name in TABLES if several else ():
            arms = (
                f"SELECT {sql_text(target.name)} AS target, * "
                f"FROM {sql_name(letter if name == 'records' else f'{letter}_{name}')}"
                for letter, target in zip(_LETTERS, self.targets, strict=False)
            )
            self._add(name, None, " UNION ALL BY NAME ".join(arms))
        for target, catalogs in earlier:
            self._add_records(PREVIOUS, target, catalogs)
        connection.lock(self._sql.items(), self._paths)
        self._stack = stack.pop_all()

    def _add(self, name: str, target: Target | None, sql: str) -> None:
        """Add a table of one target, or of all targets if `target` is None."""
        self._sql[name] = sql
        self._targets[name] = target.name if target is not None else ""

    def _add_records(
        self, name: str, target: Target, catalogs: Sequence[ShardCatalog]
    ) -> TargetTables:
        """Add the table of a target's records. Returns all tables of the target's catalogs."""
        made = TargetTables(catalogs, target.labels)
        self._paths += made.paths
        self.notes += tuple(_lacks(target, catalogs, made))
        self._add(name, target, made.records())
        return made

    def _add_file(
        self,
        prefix: str,
        name: str,
        target: Target,
        columns: Mapping[str, str],
        write: Callable[[str], str],
    ) -> None:
        """Add a table. `write` writes the rows of the table to a file. If the table has no rows,
        `write` returns the reason.
        """
        path = f"{self.connection.folder}/{prefix}{name}.parquet"
        if why := write(path):
            self._absent.append((name, f"the table `{name}` of `{target.name}` is empty: {why}"))
        if Path(path).exists():
            self._paths.append(path)
            sql = f"SELECT * FROM read_parquet([{sql_text(path)}])"
        else:
            sql = empty_table(columns)
        self._add(f"{prefix}{name}", target, sql)

    def __enter__(self) -> Questions:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self._stack.close()

    def tables(self) -> tuple[QueryTable, ...]:
        """The tables with their columns."""
        return tuple(
            QueryTable(name, target, tuple(self.connection.describe(name)))
            for name, target in self._targets.items()
        )

    def notes_on(self, sql: str) -> tuple[str, ...]:
        """Notes on the answer to a question, one line each."""
        asked = sql.lower()
        return (*self.notes, *(why for name, why in self._absent if name in asked))

    def answer(self, sql: str) -> QueryAnswer:
        """The whole answer to a question, in memory."""
        schema, batches = self.connection.batches(sql)
        return QueryAnswer(
            arrow_module().Table.from_batches(list(batches), schema), self.notes_on(sql)
        )

    def relation(self) -> Any:
        """The table `records` as a ``duckdb.DuckDBPyRelation``, whose connection stays open."""
        # Relations made from this relation outlive the block: the connection stays open.
        atexit.register(self.close)
        return self.connection.relation("SELECT * FROM records")


class QueryAnswer:
    """The answer to a question: an Arrow table.

    Attributes:
        table: a ``pyarrow.Table``.
        notes: what the tables do not contain (shards, damaged records), one line each.
    """

    def __init__(self, table: Any, notes: Sequence[str] = ()) -> None:
        self.table = table
        self.notes = tuple(notes)

    def arrow(self) -> Any:
        """The table, as a ``pyarrow.Table``."""
        return self.table

    def df(self) -> Any:
        """The table as a ``pandas.DataFrame``; requires pandas."""
        return self.table.to_pandas()

    def rows(self) -> list[dict[str, Any]]:
        """The rows, as dictionaries with the column names as keys."""
        names = self.table.column_names
        rows = answer_rows(self.table.to_batches())
        return [dict(zip(names, row, strict=True)) for row in rows]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __repr__(self) -> str:
        names = ", ".join(safe(name, limit=60) for name in self.table.column_names)
        return f"<Answer: {len(self):,} rows of {names}>"


def ask(
    targets: TargetsLike,
    *,
    sql: str = "",
    registry: RegistryLike | None = None,
    report: str | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Questions:
    """Open the tables of targets. Catalogs that are not in the cache are made.

    A single target has the tables `records`, `objects`, `splits`, `findings` and `ledger`. Several
    targets are named `a`, `b` and so on: the table `a` has the records of the first target, and
    `a_objects` has its objects. The five tables then combine the rows of all targets, and their
    first column is `target`. A single target also has the table `previous` if `sql` names it.
    """
    named = named_targets(targets, once=False)  # each target has its own tables
    if not named or len(named) > len(_LETTERS):
        raise UsageError(f"expected 1 to {len(_LETTERS)} targets, found {len(named)}")
    found = (find_target(each, registry=registry) for each in named)
    return ask_targets(found, sql=sql, report=report, engine=engine, progress=progress)


def ask_targets(
    targets: Iterable[Target],
    *,
    sql: str = "",
    report: str | None = None,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Questions:
    """Open the tables of targets that were found: see :func:`ask`."""
    engine = engine or LocalEngine(1)
    expect_packages()
    with ExitStack() as stack:
        connection = stack.enter_context(closing(Connection(threads=engine.jobs)))
        every = [*targets]
        own = len(every)
        if own == 1 and PREVIOUS in sql.lower() and connection.names_table(sql, PREVIOUS):
            earlier = previous_of(every[0])
            if earlier is None:
                raise UsageError(
                    f"there is no table `{PREVIOUS}`: `{every[0].name}` has no earlier release"
                )
            every.append(earlier)
        known: list[_Known] = []
        for target in every:
            if not target.shards:
                raise NoShardsError(f"`{target.name}` has no shards to query")
            cache = stack.enter_context(closing(CatalogCache(target)))
            known.append((target, tuple(catalogs_of(target, cache, engine, progress))))
        return Questions(stack, connection, known[:own], known[own:], report=report)
    raise AssertionError("an exit stack suppresses no exceptions")


def ask_catalogs(
    target: Target, catalogs: Sequence[ShardCatalog], previous: Target | None = None
) -> Questions:
    """Open the tables of a target from catalogs that a check made while it read the records. If
    `previous` is given, its catalogs are made in a separate pass.

    The table `findings` is left out because the check is not finished. An empty table would claim
    that the check found nothing.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(closing(Connection(threads=1)))
        earlier: list[_Known] = []
        if previous is not None:
            cache = stack.enter_context(closing(CatalogCache(previous, keeps=False)))
            made = tuple(catalogs_of(previous, cache, LocalEngine(1), SILENT))
            earlier.append((previous, made))
        known = [(target, tuple(catalogs))]
        return Questions(stack, connection, known, earlier, in_check=True)
    raise AssertionError("an exit stack suppresses no exceptions")


def previous_of(target: Target) -> Target | None:
    """The newest release that came before a release or a build; None if there is none."""
    if target.home is None or not target.dataset:
        return None
    registry = open_registry(target.home.root)
    release = target.manifest.release if target.manifest is not None else None
    versions = registry.dataset(target.dataset).versions
    if release is not None:
        versions = [each for each in versions if each < parse_version(release.version)]
    if not versions:
        return None
    return find_target(f"{target.dataset}@{versions[-1]}", registry=registry)


def _lacks(target: Target, catalogs: Sequence[ShardCatalog], made: TargetTables) -> Iterator[str]:
    """What the tables of a target do not contain, one line each."""
    faults = sum(each.kept.entry.faults for each in catalogs)
    if faults:
        places = "1 damaged place is" if faults == 1 else f"{faults:,} damaged places are"
        yield f"{places} left out of `{target.name}`: see `tfrecreg check {target.name}`"
    if target.manifest is not None and not target.partial:
        missing = len(target.manifest.shards) - len(target.shards)
        if missing > 0:
            yield f"not available here, so left out: {count(missing, 'shard')} of `{target.name}`"
    if made.columns.left_out:
        yield (
            f"`{target.name}` has more than {COLUMN_FEATURES:,} features: only the first have "
            "columns"
        )
    yield from target.notes if target.kind == "files" else ()


def expect_sound(questions: Questions, *, listed: bool = False) -> None:
    """Refuse damaged targets, because a condition cannot be evaluated on damaged records."""
    for target, catalogs in zip(questions.targets, questions.catalogs, strict=True):
        for each in catalogs:
            if each.kept.entry.faults:
                raise RefusedError(
                    f"`{each.shard.name}` is damaged, and a condition cannot be "
                    "evaluated on damaged records",
                    hint=f"`tfrecreg check {target.name}` names the damaged records",
                )
            entry = each.shard.entry
            if listed and entry is not None and entry.blake3 != each.kept.entry.shard:
                raise RefusedError(
                    f"`{each.shard.name}` is not the file that the manifest of "
                    f"`{target.name}` lists",
                    hint=f"tfrecreg check {target.name}",
                )


def suggested(tables: Sequence[QueryTable]) -> list[str]:
    """Three questions about the first target."""
    columns = {each.name: {name for name, _ in each.columns} for each in tables}
    records, objects = ("a", "a_objects") if "a" in columns else ("records", "objects")
    of_class = f"SELECT split, label, count(*) FROM {records} GROUP BY ALL ORDER BY ALL"
    of_boxes = f"SELECT label, count(*) FROM {objects} GROUP BY label ORDER BY 2 DESC"
    tries = [
        *([of_class] if "label" in columns[records] else []),
        *([of_boxes] if "boxes" in columns[records] else []),
        f"SELECT shard, record, key, bytes FROM {records} ORDER BY bytes DESC LIMIT 10",
        f"SELECT digest, count(*), list(DISTINCT split) FROM {records} GROUP BY digest "
        "HAVING count(*) > 1",
        f"SELECT split, payload, count(*), sum(bytes) FROM {records} GROUP BY ALL ORDER BY ALL",
    ]
    return tries[:3]


SHOWN_ROWS = 1000
"""Maximum number of rows of a printed table. CSV, JSON and Parquet have all rows."""
_CELL = 200
"""Maximum number of characters of a printed cell."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def answer_rows(batches: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of record batches, as Python values."""
    for batch in batches:
        try:
            columns = [column.to_pylist() for column in batch.columns]
        except (ValueError, OverflowError) as error:  # such as a date beyond the year 9999
            raise UsageError(
                f"Python cannot hold the answer: {error}; use CAST(.. AS VARCHAR)"
            ) from None
        yield from zip(*columns, strict=True)


def plain_value(value: Any) -> Any:
    """A value for JSON: bytes as hex, times in ISO 8601, whole decimals as integers."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, dict):
        return {str(key): plain_value(each) for key, each in value.items()}
    return json_data(value)


def cell(value: Any) -> str:
    """A value as printed, escaped."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return safe(value, limit=_CELL)
    if isinstance(value, bool | list | dict | tuple):
        return safe(json.dumps(plain_value(value), ensure_ascii=False), limit=_CELL)
    return safe(str(plain_value(value)), limit=_CELL)


def as_csv(names: Sequence[str], batches: Iterable[Any]) -> Iterator[bytes]:
    """The rows as CSV (RFC 4180) with line feeds. A null becomes an empty cell."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    for row in chain([names], answer_rows(batches)):
        writer.writerow(map(_csv_cell, row))
        yield buffer.getvalue().encode("utf-8", "surrogatepass")
        buffer.seek(0)
        buffer.truncate()


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    if isinstance(value, bool | list | dict | tuple):
        return json.dumps(plain_value(value))
    return "" if value is None else plain_value(value) if not isinstance(value, float) else value


def as_jsonl(names: Sequence[str], batches: Iterable[Any]) -> Iterator[bytes]:
    """One object per line, in ASCII."""
    for row in answer_rows(batches):
        yield _json_row(names, row) + b"\n"


def as_json(
    names: Sequence[str], types: Sequence[str], batches: Iterable[Any], head: dict[str, Any]
) -> Iterator[bytes]:
    """One JSON document with `head`, the columns, and an object per row."""
    columns = [{"name": name, "type": kind} for name, kind in zip(names, types, strict=True)]
    start = json.dumps(
        {"format_version": JSON_VERSION, **head, "columns": columns}, ensure_ascii=True, indent=2
    )
    yield start.removesuffix("\n}").encode() + b',\n  "rows": ['
    between = b"\n    "
    for row in answer_rows(batches):
        yield between + _json_row(names, row)
        between = b",\n    "
    yield b"]\n}\n" if between == b"\n    " else b"\n  ]\n}\n"


def _json_row(names: Sequence[str], row: Sequence[Any]) -> bytes:
    named = zip(names, map(plain_value, row), strict=True)
    return json.dumps(dict(named), ensure_ascii=True).encode()


def as_markdown(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    shown = [safe(name, limit=_CELL) for name in names]
    yield _markdown_row(shown) + _markdown_row(["---"] * len(names))
    for row in rows:
        yield _markdown_row(map(cell, row))


def _markdown_row(cells: Iterable[str]) -> bytes:
    escaped = (each.replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`") for each in cells)
    return f"| {' | '.join(escaped)} |\n".encode()


def as_parquet(schema: Any, batches: Iterable[Any]) -> Iterator[bytes]:
    """A Parquet file with several batches per row group."""
    pa, pq = arrow_module(), parquet()
    with tempfile.TemporaryFile() as file:
        try:
            with pq.ParquetWriter(file, schema, version="2.6") as writer:
                waiting = iter(batches)
                while group := list(islice(waiting, 10)):
                    writer.write_table(pa.Table.from_batches(group, schema))
        except pa.ArrowException as error:
            raise UsageError(
                f"Parquet cannot hold the answer: {error!s}; use CAST(.. AS VARCHAR)"
            ) from None
        file.seek(0)
        while piece := file.read(1 << 20):
            yield piece

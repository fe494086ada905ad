"""A question to one or more targets: their tables under names, the answer, questions to try."""

from __future__ import annotations

import atexit
import string
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from tfrecreg.builtin.query.answers import answer_rows
from tfrecreg.builtin.query.catalog import CatalogCache, ShardCatalog, catalogs_of
from tfrecreg.builtin.query.cells import arrow_module, expect_packages, sql_name, sql_text
from tfrecreg.builtin.query.connection import Connection
from tfrecreg.builtin.query.rows import COLUMN_FEATURES
from tfrecreg.builtin.query.tables import (
    FINDING_COLUMNS,
    LEDGER_COLUMNS,
    TargetTables,
    write_findings,
    write_ledger,
)
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.registry.registry import RegistryLike, open_registry
from tfrecreg.core.registry.shardset.find import TargetsLike, named_targets
from tfrecreg.core.registry.shardset.target import find_target
from tfrecreg.core.values.errors import NoShardsError, RefusedError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.reference import parse_version
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine
from tfrecreg.core.workers.local import LocalEngine

TABLES = ("records", "objects", "splits", "findings", "ledger")
"""The tables of each target."""
PREVIOUS = "previous"
"""The records of the release before the target, for questions that name it."""
_LETTERS = string.ascii_lowercase
_SPLITS = (
    "SELECT split, count(DISTINCT shard) AS shards, count(*) AS records, "
    "sum(bytes)::BIGINT AS bytes FROM {records} GROUP BY split ORDER BY split"
)


@dataclass(frozen=True, slots=True)
class QueryTable:
    """A table that a question can name."""

    name: str
    target: str
    """The target of its rows; empty for all targets together."""
    columns: tuple[tuple[str, str], ...]
    """Names and types."""


@dataclass
class Questions:
    """The tables of targets, open to questions. Close it, or use it in a ``with`` block."""

    targets: tuple[Target, ...]
    catalogs: tuple[tuple[ShardCatalog, ...], ...]
    """Of the shards of each target."""
    connection: Connection
    names: tuple[tuple[str, str], ...]
    """Each table, and the target that it is of."""
    notes: tuple[str, ...]
    """What the tables lack, one line each."""
    absent: tuple[tuple[str, str], ...]
    """Tables that are empty because nothing was found for them, and why."""
    _stack: ExitStack = field(repr=False)

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
            for name, target in self.names
        )

    def notes_on(self, sql: str) -> tuple[str, ...]:
        """Notes for the user on the answer to a question, one line each."""
        asked = sql.lower()
        return (*self.notes, *(why for name, why in self.absent if name in asked))

    def answer(self, sql: str) -> QueryAnswer:
        """The whole answer to a question, in memory."""
        schema, batches = self.connection.batches(sql)
        return QueryAnswer(
            arrow_module().Table.from_batches(list(batches), schema), self.notes_on(sql)
        )

    def relation(self) -> Any:
        """The table `records` as a ``duckdb.DuckDBPyRelation``, whose connection stays open."""
        # Relations that are made of this one outlive it: only the end of the program ends them all.
        atexit.register(self.close)
        self.connection.make_tables()  # a relation can ask about others
        return self.connection.relation("SELECT * FROM records")


class QueryAnswer:
    """The answer to a question: an Arrow table.

    Attributes:
        table: a ``pyarrow.Table``.
        notes: what the tables lack, one line each: missing shards, damaged records.
    """

    def __init__(self, table: Any, notes: Sequence[str] = ()) -> None:
        self.table = table
        self.notes = tuple(notes)

    def arrow(self) -> Any:
        """The table, as a ``pyarrow.Table``."""
        return self.table

    def df(self) -> Any:
        """The table as a ``pandas.DataFrame``, where pandas is installed."""
        return self.table.to_pandas()

    def rows(self) -> list[dict[str, Any]]:
        """The rows, as dictionaries by column."""
        names = self.table.column_names
        rows = answer_rows(self.table.to_batches())
        return [dict(zip(names, row, strict=True)) for row in rows]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

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

    One target has the tables `records`, `objects`, `splits`, `findings` and `ledger`. With several,
    the records of the first are the table `a`, those of the second `b`, and so on; their other
    tables are `a_objects` and so on. The five tables then have the rows of all targets, and a first
    column `target`. For a question about `previous`, one target also has that table.
    """
    named = named_targets(targets, once=False)  # each has tables of its own
    if not named or len(named) > len(_LETTERS):
        raise UsageError(
            f"expected 1 to {len(_LETTERS)} targets, found {len(named)}",
            hint='as in: tfrecreg query mnist "SELECT count(*) FROM records"',
        )
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
    """As :func:`ask`, for targets that are found while DuckDB is opened."""
    engine = engine or LocalEngine(1)
    expect_packages()
    with ExitStack() as stack:
        connection = stack.enter_context(closing(Connection(threads=engine.jobs)))
        catalogs, targets = [], tuple(targets)
        previous = []
        named = PREVIOUS in sql.lower() and connection.names_table(sql, PREVIOUS)
        if named and len(targets) == 1:
            previous.append(expect_previous(targets[0]))
        for target in (*targets, *previous):
            if not target.shards:
                raise NoShardsError(
                    f"`{target.name}` has no shards to query", hint=f"tfrecreg check {target.name}"
                )
        for target in (*targets, *previous):
            cache = stack.enter_context(closing(CatalogCache(target)))
            catalogs.append(tuple(catalogs_of(target, cache, engine, progress)))
        earlier = [*zip(previous, catalogs[len(targets) :], strict=True)]
        known = catalogs[: len(targets)]
        return _opened(stack, connection, targets, known, report=report, previous=earlier)
    raise AssertionError("an exit stack swallows nothing")


def ask_catalogs(
    target: Target, catalogs: Sequence[ShardCatalog], previous: Target | None = None
) -> Questions:
    """Open the tables of a target whose catalogs were made in the pass of a check, and `previous`
    if it is given, in a pass of its own.

    There is no table `findings`: the check has not ended, and an empty table would claim that
    there are none.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(closing(Connection(threads=1)))
        earlier = []
        if previous is not None:
            cache = stack.enter_context(closing(CatalogCache(previous, keeps=False)))
            earlier.append((previous, catalogs_of(previous, cache, LocalEngine(1), SILENT)))
        known, without = (tuple(catalogs),), frozenset({"findings"})
        return _opened(stack, connection, (target,), known, without=without, previous=earlier)
    raise AssertionError("an exit stack swallows nothing")


def previous_of(target: Target) -> Target | None:
    """The release with the greatest version below that of a release, the newest one for a build;
    None if there is none.
    """
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


def expect_previous(target: Target) -> Target:
    """As :func:`previous_of`, where there is one."""
    found = previous_of(target)
    if found is None:
        raise UsageError(
            f"there is no table `{PREVIOUS}`: `{target.name}` has no earlier release",
            hint='`tfrecreg query A B "SELECT .. FROM a JOIN b .."` compares any two targets',
        )
    return found


def _opened(
    stack: ExitStack,
    connection: Connection,
    targets: Sequence[Target],
    catalogs: Sequence[tuple[ShardCatalog, ...]],
    *,
    report: str | None = None,
    without: frozenset[str] = frozenset(),
    previous: Iterable[tuple[Target, Sequence[ShardCatalog]]] = (),
) -> Questions:
    made = _Tables(connection, without)
    for number, (target, known) in enumerate(zip(targets, catalogs, strict=True)):
        prefix = _LETTERS[number] if len(targets) > 1 else ""
        made.add(target, known, prefix, report if len(targets) == 1 else None)
    if len(targets) > 1:
        made.add_all(targets)
    for target, earlier in previous:
        made.add_previous(target, earlier)
    connection.lock(made.tables, made.paths)
    return Questions(
        targets=tuple(targets),
        catalogs=tuple(catalogs),
        connection=connection,
        names=tuple(made.names),
        notes=tuple(made.notes),
        absent=tuple(made.absent),
        _stack=stack.pop_all(),
    )


class _Tables:
    """The SQL of all tables, in the order in which they are made."""

    def __init__(self, connection: Connection, without: frozenset[str]) -> None:
        self._connection = connection
        self._without = without
        self.tables: list[tuple[str, str]] = []
        self.names: list[tuple[str, str]] = []
        self.paths: list[str] = []
        self.notes: list[str] = []
        self.absent: list[tuple[str, str]] = []

    def add(
        self, target: Target, catalogs: Sequence[ShardCatalog], prefix: str, report: str | None
    ) -> None:
        """The tables of one target."""
        made = self._made(target, catalogs)
        files = {
            name: f"{self._connection.folder}/{prefix}-{name}.parquet"
            for name in ("findings", "ledger")
            if name not in self._without
        }
        for name, path in files.items():
            if name == "findings":
                why = write_findings(target, catalogs, report, path)
            else:
                why = write_ledger(target, path)
            if why:
                note = f"the table `{name}` of `{target.name}` is empty: {why}"
                self.absent.append((name, note))
        self._lacks(target, catalogs, made)
        self.paths += made.paths
        records = prefix or "records"
        sqls = {
            "records": made.records(),
            "objects": made.objects(),
            "splits": _SPLITS.format(records=sql_name(records)),
            **{name: self._other(name, path) for name, path in files.items()},
        }
        for name, sql in sqls.items():
            own = (records if name == "records" else f"{prefix}_{name}") if prefix else name
            self.tables.append((own, sql))
            self.names.append((own, target.name))

    def add_previous(self, target: Target, catalogs: Sequence[ShardCatalog]) -> None:
        """The records of the release before the target."""
        made = self._made(target, catalogs)
        self._lacks(target, catalogs, made)
        self.paths += made.paths
        self.tables.append((PREVIOUS, made.records()))
        self.names.append((PREVIOUS, target.name))

    def _made(self, target: Target, catalogs: Sequence[ShardCatalog]) -> TargetTables:
        made = TargetTables(catalogs, target.labels)
        names = made.names_of_others(lambda sql: self._connection.rows(sql, made.paths))
        return TargetTables(catalogs, {**target.labels, **names}) if names else made

    def _other(self, name: str, path: str) -> str:
        """The query of a table that is in a file if it has rows."""
        if Path(path).exists():
            self.paths.append(path)
            return f"SELECT * FROM read_parquet([{sql_text(path)}])"
        columns = FINDING_COLUMNS if name == "findings" else LEDGER_COLUMNS
        empty = (f"NULL::{kind} AS {sql_name(each)}" for each, kind in columns.items())
        return f"SELECT {', '.join(empty)} WHERE false"

    def add_all(self, targets: Sequence[Target]) -> None:
        """The tables of all targets together."""
        for name in TABLES:
            arms = []
            for letter, target in zip(_LETTERS, targets, strict=False):
                own = letter if name == "records" else f"{letter}_{name}"
                arms.append(f"SELECT {sql_text(target.name)} AS target, * FROM {sql_name(own)}")
            self.tables.append((name, " UNION ALL BY NAME ".join(arms)))
            self.names.append((name, ""))

    def _lacks(self, target: Target, catalogs: Sequence[ShardCatalog], made: TargetTables) -> None:
        faults = sum(each.kept.entry.faults for each in catalogs)
        if faults:
            places = "1 damaged place is" if faults == 1 else f"{faults:,} damaged places are"
            self.notes.append(
                f"{places} left out of `{target.name}`: `tfrecreg check {target.name}` names them"
            )
        if target.manifest is not None and not target.partial:
            missing = len(target.manifest.shards) - len(target.shards)
            if missing > 0:
                shards = "1 shard" if missing == 1 else f"{missing:,} shards"
                self.notes.append(f"{shards} of `{target.name}` missing here, and left out")
        beyond = {name for each in catalogs for name in each.kept.entry.left_out}
        if beyond or made.columns.left_out > 0:
            self.notes.append(
                f"`{target.name}` has more than {COLUMN_FEATURES:,} features: only the first have "
                "columns"
            )
        for note in target.notes if target.kind == "files" else ():
            self.notes.append(note)


def expect_sound(questions: Questions, *, listed: bool = False) -> None:
    """Refuse targets with damage, which a condition cannot see."""
    for target, catalogs in zip(questions.targets, questions.catalogs, strict=True):
        for each in catalogs:
            if each.kept.entry.faults:
                raise RefusedError(
                    f"`{safe(each.shard.name, limit=1000)}` is damaged, and a condition cannot be "
                    "evaluated on damaged records",
                    hint=f"`tfrecreg check {target.name}` names them",
                )
            entry = each.shard.entry
            if listed and entry is not None and entry.blake3 != each.kept.entry.shard:
                raise RefusedError(
                    f"`{safe(each.shard.name, limit=1000)}` is not the file that the manifest of "
                    f"`{target.name}` lists",
                    hint=f"tfrecreg check {target.name}",
                )


_COUNT = 3


def suggested(tables: Sequence[QueryTable]) -> list[str]:
    """Three questions about the first target."""
    columns = {each.name: {name for name, _ in each.columns} for each in tables}
    records = next((each.name for each in tables if each.name in ("a", "records")), "records")
    objects = "a_objects" if records == "a" else "objects"
    boxes = "boxes" in columns.get(records, ())
    return list(islice(_every(records, objects, columns.get(records, set()), boxes), _COUNT))


def _every(records: str, objects: str, columns: set[str], boxes: bool) -> Iterator[str]:
    if "label" in columns:
        yield f"SELECT split, label, count(*) FROM {records} GROUP BY ALL ORDER BY ALL"
    if boxes:
        yield f"SELECT label, count(*) FROM {objects} GROUP BY label ORDER BY 2 DESC"
        yield f"SELECT key, boxes, smallest_box FROM {records} WHERE boxes > 10 ORDER BY boxes DESC"
    if "width" in columns:
        yield f"SELECT width, height, count(*) FROM {records} GROUP BY ALL ORDER BY 3 DESC LIMIT 10"
    yield f"SELECT shard, record, key, bytes FROM {records} ORDER BY bytes DESC LIMIT 10"
    yield (
        f"SELECT digest, count(*), list(DISTINCT split) FROM {records} GROUP BY digest "
        "HAVING count(*) > 1"
    )
    yield f"SELECT split, payload, count(*), sum(bytes) FROM {records} GROUP BY ALL ORDER BY ALL"

"""DuckDB over the files of catalogs: it can read them, and nothing else.

The connection is in memory. It reads only the files that it is given, has no network, loads no
extension, sees no variable of Python, and its settings are locked. A question is one SELECT: the
word ``COPY`` outside of quotes is refused wherever it is, because DuckDB 2 accepts it inside a
SELECT.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from copy import copy
from functools import cached_property
from itertools import chain
from threading import RLock
from typing import Any

from tfrecreg.builtin.query.catalog import is_readable, remove_files
from tfrecreg.builtin.query.cells import arrow_module, duckdb_module, sql_list, sql_name, sql_text
from tfrecreg.builtin.query.columns import FIXED
from tfrecreg.core.values.errors import FailureError, TfrecregError, UsageError
from tfrecreg.core.values.text import did_you_mean, safe

MEMORY = "2GB"
"""What a question may hold in memory; the rest is in a temporary folder."""
BATCH_ROWS = 10_000
_WAIT_SECONDS = 0.5
_INTERRUPT_SECONDS = 0.05
_NO_FEATURES = (
    "no record here has features that a catalog has, which are those of `tf.train.Example`; the "
    "column `payload` says what the records are"
)
_ABOUT_TABLES = ("_schema", "duckdb_", "pg_", "show", "sqlite_")
"""What is in a question about the known tables."""
_CLOCK = frozenset(
    ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")
)
"""Columns that are calls of functions where no column has their name."""
_LASTING_TABLES = frozenset(
    ("generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest")
)
"""Functions of tables that always have the same rows. DuckDB does not say it of any."""
_NOT_IN_ARROW = ("TIME WITH TIME ZONE", "UHUGEINT")
"""Types whose values DuckDB changes on the way to Arrow: they are asked for as texts."""
_WORD = re.compile(rb"[A-Za-z_]\w*")
_LINE = re.compile(r"\s*\nLINE (\d+): ")
_COLUMN = re.compile(r'Referenced column "([^"]+)" not found')
_ALIKE = re.compile(
    r"(?:Candidate bindings|Did you mean|Candidate functions|Candidate tables)[: ]*"
)


class Connection:
    """A locked connection to the tables of a question.

    It is opened by another thread, because that takes longer than to find the catalogs of a few
    shards.
    """

    def __init__(self, *, threads: int) -> None:
        self._duckdb = duckdb_module()
        self.folder = tempfile.mkdtemp(prefix="tfrecreg-query-")
        """For files of tables."""
        self._waiting: dict[str, str] = {}
        self._views: list[str] = []
        self._lasting: dict[str, bool] = {}
        self._paths: list[str] = []
        self._making = RLock()
        self._expect_wanted: Callable[[], None] = lambda: None
        # A wait in DuckDB or Arrow would not see an interrupt, so another thread waits there.
        self._worker = ThreadPoolExecutor(1)
        self._opened = self._worker.submit(
            self._duckdb.connect,
            ":memory:",
            config={
                "autoinstall_known_extensions": "false",
                "autoload_known_extensions": "false",
                "allow_community_extensions": "false",
                "python_enable_replacements": "false",
                "memory_limit": MEMORY,
                "temp_directory": f"{self.folder}/spilled",
                "threads": str(max(threads, 1)),
            },
        )

    @cached_property
    def _connection(self) -> Any:
        return self._opened.result()

    def cursor(self, expect_wanted: Callable[[], None]) -> Connection:
        """Another connection to the same tables, for a question beside others. Close it."""
        made = copy(self)
        made._connection = self._connection.cursor()
        made._worker = ThreadPoolExecutor(1)
        made._expect_wanted = expect_wanted
        made.folder = ""
        return made

    def lock(self, tables: Iterable[tuple[str, str]], paths: Iterable[str]) -> None:
        """Name the tables, and lock the connection. A table is made when a question names it."""
        self._waiting = dict(tables)
        self._views = [*self._waiting]
        self._paths = sorted(set(paths))
        self._connection.execute(
            f"SET allowed_paths = {sql_list(map(sql_text, self._paths))};"
            "SET enable_external_access = false;"
            "SET TimeZone = 'UTC';"
            "SET enable_progress_bar = false;"
            "SET lock_configuration = true"
        )

    def rows(self, sql: str, paths: Iterable[str]) -> list[tuple[Any, ...]]:
        """The rows of a query of ours over files, before the connection is locked."""
        try:
            return list(self._connection.execute(sql).fetchall())
        except self._duckdb.Error:
            raise _without(paths) from None

    def make_tables(self, sql: str = "") -> bool:
        """Make the tables that a question may name; all of them if it names none, or asks which
        there are.
        """
        asked = sql.lower()
        named = [name for name in self._views if name in asked]
        if not named or any(word in asked for word in _ABOUT_TABLES):
            named = self._views
        with self._making:
            before = len(self._waiting)
            for name in named:
                self._make(name)
            return len(self._waiting) < before

    def _make(self, name: str) -> None:
        sql = self._waiting.pop(name, "")
        for other in [each for each in self._waiting if sql_name(each) in sql]:
            self._make(other)
        if not sql:
            return
        try:
            self._connection.execute(f"CREATE VIEW {sql_name(name)} AS {sql}")
        except self._duckdb.Error:  # not the user's
            raise _without(self._paths) from None

    def close(self) -> None:
        """Close it, and remove what it spilled."""
        if self._opened.exception() is None:
            self._connection.interrupt()
            with suppress(self._duckdb.Error):  # a question that cannot be interrupted ends later
                self._connection.close()
        self._worker.shutdown()
        if not self.folder:
            return
        try:
            os.rmdir(self.folder)  # noqa: PTH106 - most are empty, and this is quicker
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)

    def relation(self, sql: str) -> Any:
        """The answer to a question as a ``duckdb.DuckDBPyRelation``, computed when it is read."""
        try:
            self.expect_select(sql)
            self.make_tables(sql)
            found = self._connection.sql(sql)
        except self._duckdb.Error as error:
            self._expect_readable(error)
            if self.make_tables():
                return self.relation(sql)
            raise self._error(error, sql) from None
        if found is None:
            raise _no_select()
        return found

    def batches(self, sql: str) -> tuple[Any, Iterator[Any]]:
        """The schema and the record batches of an answer, as Arrow."""
        relation = self.relation(sql)
        if any(str(kind) in _NOT_IN_ARROW for kind in relation.types):
            columns = enumerate(zip(relation.columns, relation.types, strict=True), start=1)
            relation = relation.project(
                ", ".join(
                    f"#{at}{'::VARCHAR' * (str(kind) in _NOT_IN_ARROW)} AS {sql_name(name)}"
                    for at, (name, kind) in columns
                )
            )
        # DuckDB renamed it.
        to_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader

        def begin() -> tuple[Any, Any]:
            reader = to_reader(BATCH_ROWS)
            return reader, _next_batch(reader)

        reader, first = self._failing(begin, sql)
        schema = _distinct(reader.schema)
        return schema, self._read(reader, first, schema, sql)

    def _read(self, reader: Any, batch: Any, schema: Any, sql: str) -> Iterator[Any]:
        while batch is not None:
            if batch.num_rows:
                yield type(batch).from_arrays(batch.columns, schema=schema)
            batch = self._failing(lambda: _next_batch(reader), sql)

    def _failing(self, work: Callable[[], Any], sql: str) -> Any:
        """The result of work on the answer to a question, whose errors are about that."""
        try:
            return self._waited(work)
        except (self._duckdb.Error, OSError) as error:
            self._expect_readable(error)
            raise sql_error(error, sql) from None

    def _waited(self, work: Callable[[], Any]) -> Any:
        """The result of work of DuckDB, which ends when nobody wants it any more."""
        waiting = self._worker.submit(work)
        try:
            while not wait([waiting], _WAIT_SECONDS).done:
                self._expect_wanted()
        except BaseException:  # an interrupt of this thread, or what says that it is not wanted
            while not waiting.done():
                self._connection.interrupt()
                wait([waiting], _INTERRUPT_SECONDS)
            raise
        return waiting.result()

    def _expect_readable(self, error: Exception) -> None:
        """Refuse damaged files, which may be why."""
        duckdb = self._duckdb
        of_question = duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException
        if not isinstance(error, (*of_question, duckdb.DataError)):
            damaged = [path for path in self._paths if not is_readable(path)]
            if damaged:
                raise _without(damaged)

    def _error(self, error: Exception, sql: str) -> TfrecregError:
        """The error in a question that DuckDB does not begin to execute."""
        try:
            # Unlike a relation, this says where; it fails for the same reason, before it begins.
            self._connection.execute(sql)
        except self._duckdb.Error as placed:
            error = placed
        unknown = _COLUMN.search(str(error))
        if unknown is None:
            return sql_error(error, sql)
        tables = [{name for name, _ in self.describe(view)} for view in self._views]
        columns = set().union(*tables)
        for measure in ("count", "size"):
            if f"{unknown[1]}.{measure}" in columns:  # no value is short enough for a catalog
                name = safe(unknown[1], limit=100)
                hint = f"all values of `{name}` are too long for a catalog, which has "
                return sql_error(error, sql, f'{hint}`"{name}.{measure}"`')
        # It may be a column of another table than the question is about.
        near = did_you_mean(unknown[1], sorted(columns - {unknown[1]}))
        has_features = {name for name, _ in FIXED} not in tables
        return sql_error(
            error, sql, near.removeprefix("; ") or ("" if has_features else _NO_FEATURES)
        )

    def describe(self, table: str) -> list[tuple[str, str]]:
        """Names and types of the columns of a table."""
        with self._making:
            self._make(table)
        rows = self._connection.execute(f"DESCRIBE {sql_name(table)}").fetchall()
        return [(name, kind) for name, kind, *_ in rows]

    def expect_select(self, sql: str) -> None:
        """Refuse what is not one SELECT. Whether its tables and columns exist shows later."""
        try:
            statements: Sequence[Any] = self._connection.extract_statements(sql)
        except self._duckdb.Error as error:
            raise sql_error(error, sql) from None
        if len(statements) != 1 or statements[0].type.name != "SELECT":
            raise _no_select()
        if "copy" not in sql.lower():
            return
        data = sql.encode("utf-8", "replace")
        for start, _ in self._duckdb.tokenize(sql):
            word = _WORD.match(data, start)
            if word is not None and word[0].lower() == b"copy":
                raise _no_select()

    def names_table(self, sql: str, table: str) -> bool:
        """Whether a question is about a table that it does not define itself."""
        _, names, defined = self._row(
            "SELECT tree ->> '$.error_type', tree ->> '$..table_name', "
            "tree ->> '$..cte_map.map[*].key' FROM (SELECT json_serialize_sql(?) AS tree)",
            sql,
        )
        return table in map(str.lower, names) and table not in map(str.lower, defined)

    def changing(self, expression: str) -> str:
        """What in an expression may have another value each time; empty if nothing has.

        A function is as lasting as DuckDB says that one of its forms is. The others of a lasting
        one depend on the time zone alone, which is UTC. A macro is as lasting as what it stands
        for.
        """
        error, names, columns, samples = self._row(
            "SELECT tree ->> '$.error_type', tree ->> '$..function_name', "
            "tree ->> '$..column_names', tree ->> '$..sample' "
            "FROM (SELECT json_serialize_sql(?) AS tree)",
            f"SELECT (\n{expression}\n)",
        )
        if error:  # what does not parse fails when it is asked
            return "" if error == "parser" else expression
        called = sorted({each.lower() for each in names if each.isidentifier()})
        clocks = (each for each in sorted(_CLOCK) if f'["{each}"]' in map(str.lower, columns))
        changing = chain((each for each in called if not self._is_lasting(each)), clocks)
        return next(changing, "sample" if any(samples) else "")

    def _is_lasting(self, name: str) -> bool:
        """Whether a function has the same value for the same arguments; one that there is not
        fails when it is asked.
        """
        if name not in self._lasting:
            (forms, macros) = self._row(
                "SELECT list(coalesce(stability, function_type)), "
                "list(macro_definition) FILTER (function_type = 'macro') "
                "FROM duckdb_functions() WHERE lower(function_name) = ?",
                name,
            )
            named = name in _LASTING_TABLES or name.startswith("read_")  # which reads nothing here
            lasts = named or not forms or {"CONSISTENT", "macro"} & {*forms}
            self._lasting[name] = bool(lasts) and name != "age"  # until today, of one argument
            self._lasting[name] &= not any(map(self.changing, macros or ()))
        return self._lasting[name]

    def _row(self, sql: str, *values: str) -> Any:
        try:
            (row,) = self._connection.execute(sql, values).fetchall()
        except self._duckdb.Error as error:
            raise sql_error(error, values[0]) from None
        return row


def _next_batch(reader: Any) -> Any:
    """The next record batch; None after the last."""
    try:
        return reader.read_next_batch()
    except StopIteration:
        return None


def _without(paths: Iterable[str]) -> FailureError:
    remove_files(paths)
    return FailureError("the catalog in the cache is damaged, and was removed", hint="ask again")


def _distinct(schema: Any) -> Any:
    """The columns of an answer, each name once: the second `a` is `a_1`."""
    names: list[str] = []
    for name in schema.names:
        number, free = 0, name
        while free in names:
            number += 1
            free = f"{name}_{number}"
        names.append(free)
    return arrow_module().schema(
        [field.with_name(name) for field, name in zip(schema, names, strict=True)]
    )


def _no_select() -> UsageError:
    return UsageError(
        "expected one SELECT statement",
        hint='as in: SELECT split, count(*) FROM records GROUP BY split; quote a column `"copy"`',
    )


def sql_error(error: Exception, sql: str, hint: str = "") -> UsageError | FailureError:
    """DuckDB's error about a question, in one line, with the place in it."""
    said = str(error)
    if "Out of Memory" in said:
        return FailureError(
            f"the answer takes more than {MEMORY} of memory and the room on the disk",
            hint="ask for less: LIMIT, fewer columns, count(*) instead of lists",
        )
    told, *places = _LINE.split(said, maxsplit=1)
    first, _, rest = told.partition("\n")
    message = first.partition(" Error: ")[2] or first
    alike = _ALIKE.search(rest)
    if alike and not hint:
        names = rest[alike.end() :].strip().splitlines()[0]
        if not names.lstrip('"').startswith(_ABOUT_TABLES):  # DuckDB's own tables
            hint = f"did you mean {safe(names, limit=300)}"
    where = _place(places[1], sql, int(places[0])) if places else ""
    return UsageError(
        f"{safe(message.rstrip('! '), limit=500)}{where}",
        hint=hint or "`tfrecreg query TARGET` alone shows the tables and their columns",
    )


def _place(shown: str, sql: str, number: int) -> str:
    """The place of a caret: ``, at `^labell FROM records```."""
    line, _, below = shown.partition("\n")
    column = len(below) - len(below.lstrip()) - len(f"LINE {number}: ")
    whole = sql.split("\n")[number - 1 : number]
    if not below.strip() or column < 0 or column > len(line):
        return ""
    at = line[column : column + 30]
    if not whole or at[:5] not in whole[0]:
        return ""  # inside of a view, which the user did not write
    return f", at `{safe(f'^{at}', limit=41)}`"

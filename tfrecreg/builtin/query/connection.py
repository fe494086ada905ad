"""Runs DuckDB on the files of catalogs. DuckDB can read these files, and nothing else.

It cannot use the network, extensions or Python variables, and its settings are locked. A question
is one SELECT. It cannot contain the word ``COPY``, because DuckDB 2 accepts COPY inside a SELECT.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from copy import copy
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from tfrecreg.builtin.query.catalog import arrow_module, parquet, sql_list, sql_name, sql_text
from tfrecreg.core.values.errors import FailureError, UsageError
from tfrecreg.core.values.text import safe

MEMORY = "2GB"
"""Memory that a question may use; DuckDB writes the rest to a temporary folder."""
BATCH_ROWS = 10_000
EXAMPLE = "as in: label = 'cat' AND width >= 224"
_WAIT_SECONDS = 0.5
_INTERRUPT_SECONDS = 0.05
_CLOCK = frozenset(
    ("current_date", "current_time", "current_timestamp", "localtime", "localtimestamp")
)
"""Names that DuckDB reads as function calls, unless a column has the same name."""
_OF_TODAY = frozenset(("age", "ago", "pg_conf_load_time", "pg_postmaster_start_time"))
"""Functions and macros that depend on the current time, although DuckDB does not declare this."""
_LASTING_TABLES = frozenset(
    ("generate_series", "json_each", "json_tree", "range", "repeat", "repeat_row", "unnest")
)
"""Functions whose tables always have the same rows, although DuckDB does not declare this."""
_WORD = re.compile(rb"[A-Za-z_]\w*")


class Connection:
    """A restricted connection to the tables that a question may read."""

    def __init__(self, *, threads: int) -> None:
        self._duckdb = import_module("duckdb")
        self.folder = tempfile.mkdtemp(prefix="tfrecreg-query-")
        """Folder for files of tables."""
        self._paths: list[str] = []
        self._expect_wanted: Callable[[], None] = lambda: None
        # A wait in DuckDB or Arrow would ignore an interrupt, so another thread waits there.
        self._worker = ThreadPoolExecutor(1)
        self._connection = self._duckdb.connect(
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

    def cursor(self, expect_wanted: Callable[[], None]) -> Connection:
        """Another connection to the same tables, for a parallel question. The caller closes it."""
        made = copy(self)
        made._connection = self._connection.cursor()
        made._worker = ThreadPoolExecutor(1)
        made._expect_wanted = expect_wanted
        made.folder = ""
        return made

    def lock(self, tables: Iterable[tuple[str, str]], paths: Iterable[str]) -> None:
        """Make the tables from their SQL, and lock the connection."""
        self._paths = sorted(set(paths))
        self._connection.execute(
            f"SET allowed_paths = {sql_list(map(sql_text, self._paths))};"
            "SET enable_external_access = false;"
            "SET TimeZone = 'UTC';"
            "SET enable_progress_bar = false;"
            "SET lock_configuration = true"
        )
        try:
            for name, sql in tables:
                self._connection.execute(f"CREATE VIEW {sql_name(name)} AS {sql}")
        except self._duckdb.Error:  # the SQL is not the user's
            raise _without(self._paths) from None

    def close(self) -> None:
        """Close the connection, and remove its spilled data."""
        self._connection.interrupt()
        with suppress(self._duckdb.Error):  # an uninterruptible question ends later
            self._connection.close()
        self._worker.shutdown()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def relation(self, sql: str) -> Any:
        """The answer to a question as a ``duckdb.DuckDBPyRelation``, computed when it is read."""
        self.expect_select(sql)
        try:
            found = self._connection.sql(sql)
        except self._duckdb.Error as error:
            self._expect_readable(error)
            raise sql_error(error) from None
        if found is None:
            raise _no_select()
        return found

    def batches(self, sql: str) -> tuple[Any, Iterator[Any]]:
        """The schema and the record batches of an answer, as Arrow."""
        relation = self.relation(sql)
        # DuckDB 2 renamed the method.
        to_reader = getattr(relation, "to_arrow_reader", None) or relation.fetch_arrow_reader

        def begin() -> tuple[Any, Iterator[Any], Any]:
            reader = to_reader(BATCH_ROWS)
            waiting = iter(reader)
            return _distinct(reader.schema), waiting, next(waiting, None)

        schema, waiting, first = self._failing(begin)
        return schema, self._read(waiting, first, schema)

    def _read(self, waiting: Iterator[Any], batch: Any, schema: Any) -> Iterator[Any]:
        while batch is not None:
            if batch.num_rows:
                yield type(batch).from_arrays(batch.columns, schema=schema)
            batch = self._failing(lambda: next(waiting, None))

    def _failing(self, work: Callable[[], Any]) -> Any:
        """The result of work in DuckDB or Arrow. Failed work raises an error about the question."""
        try:
            return self._waited(work)
        except (self._duckdb.Error, OSError) as error:
            self._expect_readable(error)
            raise sql_error(error) from None

    def _waited(self, work: Callable[[], Any]) -> Any:
        """The result of work in DuckDB. The work is interrupted if its caller stops waiting."""
        waiting = self._worker.submit(work)
        try:
            while not wait([waiting], _WAIT_SECONDS).done:
                self._expect_wanted()
        except BaseException:  # an interrupt of this thread, or the work is not wanted any more
            while not waiting.done():
                self._connection.interrupt()
                wait([waiting], _INTERRUPT_SECONDS)
            raise
        return waiting.result()

    def _expect_readable(self, error: Exception) -> None:
        """Raise if a file is damaged, because that may have caused the error."""
        duckdb = self._duckdb
        of_question = duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException
        if not isinstance(error, (*of_question, duckdb.DataError)):
            damaged = []
            for path in self._paths:
                try:
                    parquet().read_table(path)
                except (OSError, arrow_module().ArrowException):
                    damaged.append(path)
            if damaged:
                raise _without(damaged)

    def describe(self, table: str) -> list[tuple[str, str]]:
        """Names and types of the columns of a table."""
        rows = self._connection.execute(f"DESCRIBE {sql_name(table)}").fetchall()
        return [(name, kind) for name, kind, *_ in rows]

    def expect_select(self, sql: str) -> None:
        """Refuse anything but one SELECT. Unknown tables and columns are reported later."""
        try:
            statements: Sequence[Any] = self._connection.extract_statements(sql)
        except self._duckdb.Error as error:
            raise sql_error(error) from None
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
        """Whether a question names a table and does not define it in a ``WITH`` clause."""
        _, names, defined = self._row(
            "SELECT tree ->> '$.error_type', tree ->> '$..table_name', "
            "tree ->> '$..cte_map.map[*].key' FROM (SELECT json_serialize_sql(?) AS tree)",
            sql,
        )
        return table in map(str.lower, names) and table not in map(str.lower, defined)

    def expect_expression(self, text: str, noun: str, example: str) -> None:
        """Raise an error unless the text is one expression with a constant value."""
        if not text.strip():
            raise UsageError(f"the {noun} is empty", hint=example)
        changing = self._changing(text, noun)
        if changing:
            raise UsageError(f"`{changing}` is not constant, so a {noun} cannot use it")

    def expect_condition(self, text: str) -> None:
        """Refuse anything but one condition on the columns of `records`."""
        self.expect_expression(text, "condition", EXAMPLE)
        kind = self.relation(f"SELECT (\n{text}\n) FROM records").types[0]
        if str(kind) != "BOOLEAN":
            raise UsageError(f"`{_shown(text)}` is {kind}, expected BOOLEAN")

    def _changing(self, text: str, noun: str) -> str:
        """The expression's first name that is not constant, such as `random`; otherwise empty text.

        A function counts as constant if DuckDB declares any of its overloads constant: the other
        overloads depend only on the time zone, which is always UTC. An unknown function
        counts as constant, because the question fails anyway.
        """
        # Text that parses in brackets here, and in parentheses when executed, closes neither.
        error, names, columns, samples = self._row(
            "SELECT tree ->> '$.error_message', tree ->> '$..function_name', "
            "tree ->> '$..column_names', tree ->> '$..sample' "
            "FROM (SELECT json_serialize_sql(?) AS tree)",
            f"SELECT [\n{text}\n]",
        )
        if error:
            raise UsageError(f"`{_shown(text)}` is not one {noun}: {error}")
        called = {each.lower() for each in names if each.isidentifier()}
        (declared,) = self._row(
            "SELECT list(name) FROM (SELECT lower(function_name) AS name FROM duckdb_functions() "
            "WHERE list_contains(?, name) GROUP BY name HAVING NOT "
            "bool_or(coalesce(stability, function_type) IN ('CONSISTENT', 'macro')))",
            sorted(called),
        )
        changing = {each for each in declared or () if not each.startswith("read_")}  # see `lock`
        changing = (changing - _LASTING_TABLES) | (called & _OF_TODAY)
        clocks = (each for each in sorted(_CLOCK) if f'["{each}"]' in map(str.lower, columns))
        return next(chain(sorted(changing), clocks), "sample" if any(samples) else "")

    def _row(self, sql: str, *values: str | list[str]) -> Any:
        try:
            (row,) = self._connection.execute(sql, values).fetchall()
        except self._duckdb.Error as error:
            raise sql_error(error) from None
        return row


def _shown(sql: str) -> str:
    return safe(sql.strip(), limit=200)


def _without(paths: Iterable[str]) -> FailureError:
    for path in paths:
        with suppress(OSError):  # a catalog that stays is found damaged again
            Path(path).unlink(missing_ok=True)
    return FailureError("the catalog in the cache was damaged and is now removed: ask again")


def _distinct(schema: Any) -> Any:
    """The columns of an answer, with unique names: the second `a` becomes `a_1`."""
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
        hint="as in: SELECT split, count(*) FROM records GROUP BY split; "
        'write `"copy"` for a column of that name',
    )


def sql_error(error: Exception) -> UsageError | FailureError:
    """DuckDB's error about a question, in one line."""
    told = " ".join(str(error).partition("\n\n")[0].split())
    if "Out of Memory" in told:
        return FailureError(
            f"the answer needs more than {MEMORY} of memory, and the disk has no room for the rest"
        )
    return UsageError(
        safe((told.partition(" Error: ")[2] or told).rstrip("! "), limit=500),
        hint="`tfrecreg query TARGET` without SQL shows the tables and their columns",
    )

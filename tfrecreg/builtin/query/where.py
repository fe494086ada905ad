"""Expressions in SQL about records: a condition as a list of record numbers, and values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfrecreg.builtin.query.ask import Questions, ask_targets, expect_sound
from tfrecreg.builtin.query.catalog import ShardCatalog, state_of
from tfrecreg.builtin.query.cells import arrow_module, duckdb_module, expect_packages, shown_text
from tfrecreg.builtin.query.connection import Connection
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.values.text import safe
from tfrecreg.core.workers.interface import Engine

_WORD = re.compile(rb"[A-Za-z_]\w*")
_EXAMPLE = "as in: label = 'cat' AND width >= 224"
_WEIGHT = "as in: CASE label WHEN 'cat' THEN 2 ELSE 1 END"
_STATEMENTS = (b"select", b"from", b"with")


@contextmanager
def choosing_records(
    target: Target,
    where: str,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
    listed: bool = False,
) -> Iterator[list[NDArray[np.int64]]]:
    """Of each shard of the target, in its order: the numbers of the records for which the SQL
    condition holds, ascending.

    A condition that is NULL for a record does not hold. 8 bytes of memory a selected record. The
    records are read in the block: when it ends, their shards have to be as the condition saw them.
    """
    expect_packages()
    expect_expression(where)
    _expect_distinct(target.shards)
    with ask_targets([target], engine=engine, progress=progress) as questions:
        expect_sound(questions, listed=listed)
        found = _by_shard(questions, where)
    none = np.empty(0, np.int64)
    chosen = [found.get(shown_text(shard.name), none) for shard in target.shards]
    read = [
        each for each, numbers in zip(questions.catalogs[0], chosen, strict=True) if len(numbers)
    ]
    try:
        yield chosen
    except Exception:
        _expect_unchanged(read)  # which may be why
        raise
    _expect_unchanged(read)


def matching_records(
    target: Target, where: str, *, listed: bool = False
) -> list[NDArray[np.int64]]:
    """As :func:`choosing_records`, for readers that verify the shards themselves."""
    with choosing_records(target, where, listed=listed) as chosen:
        return chosen
    raise AssertionError("a condition swallows nothing")


def _expect_unchanged(catalogs: Iterable[ShardCatalog]) -> None:
    for shard, _, state in catalogs:
        if state is not None and state_of(shard) != state:
            raise StorageError(
                f"`{safe(shard.name, limit=1000)}` was changed since the condition was evaluated",
                hint="try again when nothing writes it",
            )


def record_values(
    target: Target, expression: str, *, engine: Engine | None = None, progress: Progress = SILENT
) -> list[NDArray[np.float64]]:
    """Of each shard of the target, in its order: the value of an SQL expression for each record."""
    expect_packages()
    expect_expression(expression, "weight", _WEIGHT)
    found = _values(target, expression, "weight", "DOUBLE", engine, progress)
    return [found.get(shown_text(shard.name), np.empty(0)) for shard in target.shards]


def record_texts(
    target: Target, expression: str, *, engine: Engine | None = None, progress: Progress = SILENT
) -> list[list[str | None]]:
    """As :func:`record_values`, the values as texts, such as names of classes; None where the
    expression is NULL. The shards have to be those of the manifest.
    """
    expect_packages()
    expect_expression(expression, "class", "as in: label")
    found = _values(target, expression, "class", "VARCHAR", engine, progress, listed=True)
    none = np.empty(0, object)
    return [found.get(shown_text(shard.name), none).tolist() for shard in target.shards]


def _values(
    target: Target,
    expression: str,
    noun: str,
    kind: str,
    engine: Engine | None,
    progress: Progress,
    *,
    listed: bool = False,
) -> dict[str, NDArray[Any]]:
    """By name of a shard: the values of an expression for its records."""
    _expect_distinct(target.shards)
    # In lines of its own, so that a comment in it ends.
    sql = f"SELECT shard, record, CAST((\n{expression}\n) AS {kind}) AS value FROM records"
    with ask_targets([target], engine=engine, progress=progress) as questions:
        expect_sound(questions, listed=listed)
        expect_lasting(questions.connection, expression, noun)
        return {name: _in_order(rows) for name, rows in _columns(questions, sql)}
    raise AssertionError("questions swallow nothing")


def _in_order(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """The values by record. A shard that a target has twice has its rows twice."""
    records, values = columns
    return values[np.unique(records, return_index=True)[1]]


def _columns(questions: Questions, sql: str) -> Iterator[tuple[str, list[NDArray[Any]]]]:
    """By name of a shard: the columns after `shard` of an answer, without nulls."""
    parts: dict[str, list[list[NDArray[Any]]]] = {}
    _, batches = questions.connection.batches(sql)
    for batch in batches:
        shards = batch.column(0).dictionary_encode()
        places = shards.indices.to_numpy()
        columns = [_array(each) for each in batch.columns[1:]]
        for place, name in enumerate(shards.dictionary.to_pylist()):
            rows = [column[places == place] for column in columns]
            parts.setdefault(name, []).append(rows)
    for name in list(parts):
        yield name, [np.concatenate(column) for column in zip(*parts.pop(name), strict=True)]


def _array(column: Any) -> NDArray[Any]:
    """A column with NumPy. Texts that are equal in it are one object."""
    if not arrow_module().types.is_string(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    encoded = column.dictionary_encode()
    texts = np.array([*encoded.dictionary.to_pylist(), None], object)
    return np.asarray(texts[encoded.indices.fill_null(-1).to_numpy()])


def _expect_distinct(shards: Sequence[Shard]) -> None:
    """Refuse files that DuckDB cannot tell apart by their names."""
    places: dict[str, tuple[str, str]] = {}
    for each in shards:
        place = each.storage.root, each.path
        if places.setdefault(shown_text(each.name), place) != place:
            raise UsageError(
                f"two shards are shown as `{safe(each.name, limit=1000)}`",
                hint="rename one of them",
            )


def _by_shard(questions: Questions, where: str) -> dict[str, NDArray[np.int64]]:
    expect_lasting(questions.connection, where)
    # In lines of its own, so that a comment in it ends.
    condition = f"(\n{where}\n)"
    sql = f"SELECT shard, record FROM records WHERE {condition}"
    questions.connection.relation(sql)
    kind = questions.connection.relation(f"SELECT {condition} FROM records").types[0]
    if str(kind) != "BOOLEAN":
        raise UsageError(
            f"`{safe(where.strip(), limit=200)}` is {kind}, expected BOOLEAN",
            hint=_EXAMPLE,
        )
    # A shard that a target has twice has its rows twice.
    return {name: np.unique(rows[0]) for name, rows in _columns(questions, sql)}


def expect_expression(where: str, noun: str = "condition", example: str = _EXAMPLE) -> None:
    """Refuse texts that are not one expression.

    An expression whose parentheses match stays whole within another pair: no clause follows it.
    """
    tokens = list(_tokens(where))
    if not tokens:
        raise UsageError(f"the {noun} is empty", hint=example)
    first = tokens[0]
    if first in _STATEMENTS:
        raise UsageError(
            f"a {noun} is an expression, and not a whole {first.decode().upper()}",
            hint=f'{example}; `tfrecreg query TARGET "SELECT .."` answers a whole question',
        )
    if first == b"where":
        raise UsageError(f"a {noun} does not begin with WHERE", hint=f"leave it out, {example}")
    depth = 0
    for token in tokens:
        depth += (token == b"(") - (token == b")")
        if depth < 0 or token in (b";", b"copy"):
            raise _not_one(where, noun, example)
    if depth:
        raise _not_one(where, noun, example)


def expect_lasting(connection: Connection, expression: str, noun: str = "condition") -> None:
    """Refuse expressions that select other records each time."""
    changing = connection.changing(expression)
    if changing:
        raise UsageError(
            f"`{safe(changing, limit=200)}` gives another value each time, which a {noun} must not",
            hint="`digest < '1'` always selects the same sixteenth of the records; write dates in "
            "full",
        )


def _tokens(where: str) -> Iterator[bytes]:
    """Words in lower case, and other tokens by their first character; no comments."""
    data = where.encode("utf-8", "replace")
    kinds: Sequence[tuple[int, object]] = duckdb_module().tokenize(data.decode())
    for start, kind in kinds:
        if str(kind).rpartition(".")[2] != "comment":
            word = _WORD.match(data, start)
            yield word[0].lower() if word is not None else data[start : start + 1]


def _not_one(where: str, noun: str, example: str) -> UsageError:
    return UsageError(
        f"`{safe(where.strip(), limit=200)}` is not one {noun}",
        hint=f'{example}; quote a column `"copy"`',
    )

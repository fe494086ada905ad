"""Evaluates SQL on records: finds those that meet a condition, and computes values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfrecreg.builtin.query.ask import Questions, ask_targets, expect_sound
from tfrecreg.builtin.query.catalog import ShardCatalog, arrow_module, shown_text, state_of
from tfrecreg.core.check.scan.interface import Shard, Target
from tfrecreg.core.values.errors import StorageError, UsageError
from tfrecreg.core.values.progress import SILENT, Progress
from tfrecreg.core.workers.interface import Engine


@contextmanager
def choosing_records(
    target: Target,
    where: str,
    *,
    engine: Engine | None = None,
    progress: Progress = SILENT,
) -> Iterator[list[NDArray[np.int64]]]:
    """Select the records that meet an SQL condition. Yields one array for each shard, in the order
    of the shards. Each array has the numbers of the shard's selected records in ascending order.

    A record for which the condition is NULL is not selected. The numbers take 8 bytes per selected
    record. Read the records inside the ``with`` block, which raises an error at its end if a shard
    has changed.
    """
    chosen, read = _chosen(target, where, engine, progress, listed=False)
    try:
        yield chosen
    except Exception:
        _expect_unchanged(read)  # a change may be the cause
        raise
    _expect_unchanged(read)


def matching_records(target: Target, where: str) -> list[NDArray[np.int64]]:
    """Like :func:`choosing_records`, for shards that match the manifest and do not change."""
    return _chosen(target, where, listed=True)[0]


def _chosen(
    target: Target,
    where: str,
    engine: Engine | None = None,
    progress: Progress = SILENT,
    *,
    listed: bool,
) -> tuple[list[NDArray[np.int64]], list[ShardCatalog]]:
    """Each shard's chosen record numbers, and the catalogs of the shards with chosen records."""
    _expect_distinct(target.shards)
    with ask_targets([target], engine=engine, progress=progress) as questions:
        expect_sound(questions, listed=listed)
        questions.connection.expect_condition(where)
        # The condition has its own lines, so that a comment in it ends.
        sql = f"SELECT shard, record FROM records WHERE (\n{where}\n)"
        # A shard that is listed twice has its rows twice.
        found = {name: np.unique(rows[0]) for name, rows in _columns(questions, sql)}
    none = np.empty(0, np.int64)
    chosen = [found.get(shown_text(shard.name), none) for shard in target.shards]
    catalogs = zip(questions.catalogs[0], chosen, strict=True)
    return chosen, [each for each, numbers in catalogs if len(numbers)]


def record_values(
    target: Target, expression: str, *, progress: Progress = SILENT
) -> list[NDArray[np.float64]]:
    """The values of an SQL expression for all records: one array per shard, in shard order."""
    example = "as in: CASE label WHEN 'cat' THEN 2 ELSE 1 END"
    return _values(target, expression, ("weight", "DOUBLE", example), progress)


def record_texts(target: Target, expression: str) -> list[list[str | None]]:
    """Like :func:`record_values`, but the values are texts, such as class names, or None for NULL.
    The shards must match the manifest.
    """
    found = _values(target, expression, ("class", "VARCHAR", "as in: label"), SILENT, listed=True)
    return [each.tolist() for each in found]


def _values(
    target: Target,
    expression: str,
    wanted: tuple[str, str, str],
    progress: Progress,
    *,
    listed: bool = False,
) -> list[NDArray[Any]]:
    """The values of an expression for the records of each shard. `wanted` consists of a noun for
    messages, an SQL type, and an example.
    """
    noun, kind, example = wanted
    _expect_distinct(target.shards)
    sql = f"SELECT shard, record, CAST((\n{expression}\n) AS {kind}) AS value FROM records"
    with ask_targets([target], progress=progress) as questions:
        expect_sound(questions, listed=listed)
        questions.connection.expect_expression(expression, noun, example)
        found = {}
        for name, (records, values) in _columns(questions, sql):
            # A shard that is listed twice has its rows twice.
            found[name] = values[np.unique(records, return_index=True)[1]]
    return [found.get(shown_text(shard.name), np.empty(0)) for shard in target.shards]


def _columns(questions: Questions, sql: str) -> Iterator[tuple[str, list[NDArray[Any]]]]:
    """For each shard in an answer, its name and the columns after `shard`, as arrays."""
    parts: dict[str, list[list[NDArray[Any]]]] = {}
    _, batches = questions.connection.batches(sql)
    for batch in batches:
        shards = batch.column(0).dictionary_encode()
        places = shards.indices.to_numpy()
        columns = []
        for each in batch.columns[1:]:
            if not arrow_module().types.is_string(each.type):
                columns.append(np.asarray(each.to_numpy(zero_copy_only=False)))
                continue
            # Equal texts are one object.
            encoded = each.dictionary_encode()
            texts = np.array([*encoded.dictionary.to_pylist(), None], object)
            columns.append(np.asarray(texts[encoded.indices.fill_null(-1).to_numpy()]))
        for place, name in enumerate(shards.dictionary.to_pylist()):
            rows = [column[places == place] for column in columns]
            parts.setdefault(name, []).append(rows)
    for name in list(parts):
        yield name, [np.concatenate(column) for column in zip(*parts.pop(name), strict=True)]


def _expect_distinct(shards: Sequence[Shard]) -> None:
    """Refuse shards with names that DuckDB cannot distinguish."""
    places: dict[str, tuple[str, str]] = {}
    for each in shards:
        place = each.storage.root, each.path
        if places.setdefault(shown_text(each.name), place) != place:
            raise UsageError(f"two shards have the same displayed name `{each.name}`")


def _expect_unchanged(catalogs: Iterable[ShardCatalog]) -> None:
    for shard, _, state in catalogs:
        if state is not None and state_of(shard) != state:
            raise StorageError(f"`{shard.name}` has changed since the condition was evaluated")

"""Summarizes selected records: counts of each value, and histograms of numbers."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tfrecreg.builtin.query.catalog import sql_name, sql_text
from tfrecreg.builtin.view.background import Catalog
from tfrecreg.builtin.view.selections import ChosenRecords, Selections
from tfrecreg.builtin.view.shards import ViewedShards
from tfrecreg.core.check.scan.interface import Target
from tfrecreg.core.images.drawing import COLORS, class_color
from tfrecreg.core.schema.labels import IMAGE_LABEL
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

_FACETS = 30
_VALUES = 50
_BARS = 30
_CLASS = ("label_name", "label")
"""Possible names of the class column: ``label_name`` if a feature is named ``label``, else
``label``."""
_OBJECTS = "objects"
"""The facet of object classes. A record may have several."""
_FIRST = ("split", *_CLASS, _OBJECTS, "width", "height", "boxes", "bytes")
_LEFT_OUT = ("shard", "record", "offset", "key", "digest")
_LABEL_TEXT = "image/class/text"
_TITLES = {
    "split": "Split",
    "label": "Class",
    "label_name": "Class name",
    "width": "Width",
    "height": "Height",
}
_NUMBERS = ("BIGINT", "DOUBLE", "FLOAT")


class Facets:
    """The facets of one target. The facets of all its records are computed only once."""

    def __init__(
        self, target: Target, shards: ViewedShards, catalog: Catalog, selections: Selections
    ) -> None:
        self._target = target
        self._shards = shards
        self._catalog = catalog
        self._selections = selections
        self._spread: dict[str, tuple[int, float | None, float | None, int]] = {}
        self._lock = threading.Lock()

    def of(
        self,
        selection: ChosenRecords,
        findings: Mapping[str, int],
        without: Mapping[str, ChosenRecords],
        *,
        column: str = "",
        find: str = "",
    ) -> list[dict[str, Any]]:
        """The facets of a selection, the most useful first."""
        all_of_it = self._selections.sql(selection) or "true"
        conditions = {name: self._selections.sql(each) or "true" for name, each in without.items()}
        with self._catalog.asking() as connection:
            described = connection.describe("records")
        described.sort(key=lambda each: each[0] not in _FIRST)
        known = [each for each in described if each[1] in (*_NUMBERS, "VARCHAR")]
        known = known[: _FACETS + len(_LEFT_OUT)]
        if column:
            if column == _OBJECTS:
                return [self._objects(conditions.get(column, all_of_it), find)]
            kinds = dict(known)
            if column not in kinds:
                raise UsageError(f"there is no facet `{column}`")
            condition = conditions.get(column, all_of_it)
            return [self._values(column, kinds[column], column, condition, find)]
        # The values of the column of classes are not repeated.
        same = (IMAGE_LABEL, _LABEL_TEXT) if any(name in _CLASS for name, _ in known) else ()
        columns = [each for each in known if each[0] not in (*_LEFT_OUT, *same)]
        with self._lock:
            self._look([(name, kind) for name, kind in columns if name not in self._spread])
        # The viewer selects codes with the parameter `findings`, so these values have no condition.
        codes = [
            {"text": code, "count": count, "of": count, "where": ""}
            for code, count in sorted(findings.items())
        ]
        found: list[dict[str, Any]] = []
        if codes:
            named = {"column": "findings", "title": "Findings", "kind": "values"}
            found.append({**named, "values": codes})
        for name, kind in columns:
            made = self._facet(name, kind, conditions.get(name, all_of_it))
            if made is not None:
                found.append(made)
        if self._spread.get("boxes", (0, None, None, 0))[2]:
            found.append(self._objects(conditions.get(_OBJECTS, all_of_it)))
        order = {name: at for at, name in enumerate((*_FIRST, "findings"))}
        found.sort(key=lambda each: order.get(each["column"], len(order)))
        return found[:_FACETS]

    def _look(self, columns: list[tuple[str, str]]) -> None:
        """Find the number of distinct values, the range, and the non-finite values per column."""
        if not columns:
            return
        parts = []
        for name, kind in columns:
            column = sql_name(name)
            number = f"{column}::DOUBLE"
            ends = f"min({number}) FILTER (isfinite({number})), "
            ends += f"max({number}) FILTER (isfinite({number})), "
            ends += f"count(*) FILTER (NOT isfinite({number}))"
            parts.append(f"approx_count_distinct({column})")
            parts.append(ends if kind in _NUMBERS else "NULL::DOUBLE, NULL::DOUBLE, 0")
        (row,) = self._catalog.rows(f"SELECT {', '.join(parts)} FROM records")
        for at, (name, _) in enumerate(columns):
            values, low, high, odd = row[4 * at : 4 * at + 4]
            self._spread[name] = (int(values or 0), low, high, odd)

    def _facet(self, name: str, kind: str, condition: str) -> dict[str, Any] | None:
        values, low, high, odd = self._spread[name]
        title = _TITLES.get(name, safe(name, limit=80))
        if not values:
            return None
        if low is not None and high is not None and low < high and values > _VALUES // 2:
            facet = self._histogram(name, kind, title, low, high, condition)
            if odd:  # NaN and infinities, next to the bars
                among = f"NOT isfinite({sql_name(name)})"
                facet["values"] = self._values(name, kind, title, condition, "", among)["values"]
            return facet
        if values > 20 * _VALUES and name not in _CLASS:
            return None  # such as names of files: listing them is useless
        return self._values(name, kind, title, condition)

    def _values(
        self, name: str, kind: str, title: str, condition: str, find: str = "", among: str = "true"
    ) -> dict[str, Any]:
        column = sql_name(name)
        rows = self._catalog.rows(
            f"SELECT {column} AS value, count(*) FILTER (WHERE {condition}) AS inside, "
            f"count(*) AS every, count(*) OVER () AS different "
            f"FROM records WHERE {_contains(column, find)} AND {among} GROUP BY 1 "
            f"ORDER BY every DESC, value LIMIT {_VALUES}"
        )
        if name == "split":
            order = list(self._shards.splits)
            rows.sort(key=lambda row: order.index(row[0]) if row[0] in order else len(order))
        where = partial(_where, column, kind)
        return self._counted(name, title, rows, where, colored=name in _CLASS)

    def _objects(self, condition: str, find: str = "") -> dict[str, Any]:
        """For each class of objects, the number of records that contain an object of that class."""
        rows = self._catalog.rows(
            "WITH marked AS (SELECT DISTINCT label, shard, record FROM objects), "
            f"chosen AS (SELECT DISTINCT shard, record FROM records WHERE {condition}) "
            "SELECT label, count(chosen.record) AS inside, count(*) AS every, "
            "count(*) OVER () AS different "
            "FROM marked LEFT JOIN chosen USING (shard, record) "
            f"WHERE {_contains('label', find)} GROUP BY label "
            f"ORDER BY every DESC, label LIMIT {_VALUES}"
        )

        def where(value: object) -> str:
            of_class = _where("label", "VARCHAR", value)
            return f"(shard, record) IN (SELECT shard, record FROM objects WHERE {of_class})"

        return self._counted(_OBJECTS, "Objects", rows, where, colored=True)

    def _counted(
        self,
        column: str,
        title: str,
        rows: Sequence[tuple[Any, ...]],
        where: Callable[[object], str],
        *,
        colored: bool,
    ) -> dict[str, Any]:
        """A facet of values. A row has a value, the number of selected records with this value, the
        number in the whole target, and the number of distinct values.
        """
        values = [
            {
                "text": "none" if each is None else safe(str(each), limit=80),
                "count": inside,
                "of": every,
                "where": where(each),
                **({"color": self._color(each)} if colored and each is not None else {}),
            }
            for each, inside, every, _ in rows
        ]
        different = rows[0][-1] if rows else 0
        facet = {"column": column, "title": title, "kind": "values"}
        return {**facet, "values": values, "different": different}

    def _color(self, value: object) -> str:
        if isinstance(value, int):
            return COLORS[class_color(value)]
        text = str(value)
        for _, names in sorted(self._target.labels.items()):
            if text in names:
                return COLORS[class_color(list(names).index(text))]
        return COLORS[class_color(text)]

    def _histogram(
        self, name: str, kind: str, title: str, low: float, high: float, condition: str
    ) -> dict[str, Any]:
        column = sql_name(name)
        bars = _BARS
        if kind == "BIGINT":
            # The width of bars is a whole number, so that no bar is empty because of its place.
            step = max(1, math.ceil((high - low + 1) / _BARS))
            bars = math.ceil((high - low + 1) / step)
            edges = [low + at * step for at in range(bars + 1)]
        else:
            edges = [low + at * (high - low) / bars for at in range(bars)] + [high]
        width = edges[1] - edges[0]
        bar = f"least(greatest(floor(({column} - ({low!r})) / {width!r}), 0), {bars - 1})::INTEGER"
        rows = self._catalog.rows(
            f"SELECT {bar} AS bar, count(*) FILTER (WHERE {condition}) AS inside, "
            f"count(*) AS every FROM records "
            f"WHERE {column} IS NOT NULL AND isfinite({column}::DOUBLE) GROUP BY 1"
        )
        counts, of = [0] * bars, [0] * bars
        for at, inside, every in rows:
            counts[at], of[at] = inside, every
        return {
            "column": name,
            "title": title,
            "kind": "histogram",
            "edges": edges,
            "counts": counts,
            "of": of,
            "column_sql": column,
        }


def _contains(column: str, find: str) -> str:
    if not find:
        return "true"
    return f"contains(lower({column}::VARCHAR), lower({sql_text(find)}))"


def _where(column: str, kind: str, value: object) -> str:
    if value is None:
        return f"{column} IS NULL"
    if isinstance(value, str):
        return f"{column} = {sql_text(value)}"
    if isinstance(value, float):
        return f"isnan({column})" if math.isnan(value) else f"{column} = '{value!r}'::{kind}"
    return f"{column} = {value!r}"

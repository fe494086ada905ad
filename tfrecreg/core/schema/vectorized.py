"""Finds the records of a batch that certainly conform. The caller checks the others one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.core.example.columns import Column, Layout
from tfrecreg.core.example.model import Kind
from tfrecreg.core.records.batch import RecordBatch
from tfrecreg.core.schema.check import KINDS, Checker
from tfrecreg.core.schema.compiled import CompiledSchema
from tfrecreg.core.schema.definition import (
    BoolDomain,
    FloatDomain,
    ImageDomain,
    IntDomain,
    SchemaFeature,
    StringDomain,
)
from tfrecreg.core.schema.payload_kinds import Table, tables_of

_MAX_PLANS = 64
"""Maximum number of plans to keep. Layouts come from the data, so there may be very many."""
_INT64 = np.iinfo(np.int64)
_Bools = NDArray[np.bool_]
_ColumnCheck = Callable[[bytes, Column], _Bools]
"""Returns for each record whether its values in a column conform."""


class _Plan(NamedTuple):
    """The checks for the records of one layout, if such records can conform to the schema."""

    checks: tuple[tuple[int, _ColumnCheck], ...]
    """Each check, with the number of its slot."""
    absent: tuple[str, ...]
    """The schema's optional features that are missing from the layout."""
    masses: tuple[str, ...]
    """Names of the features whose values are counted."""


class VectorizedCheck:
    """Uses the tables of a batch to find the records that conform to the schema."""

    def __init__(self, schema: CompiledSchema, checker: Checker) -> None:
        self._schema = schema
        self._checker = checker
        self._plans: dict[Layout, _Plan | None] = {}
        # Columns cannot compare one feature with another.
        self._usable = not (schema.sparse or schema.weighted)

    def remaining(self, batch: RecordBatch) -> Sequence[int]:
        """Ascending positions of the records that must be checked one by one. The others conform,
        and are added to the checker's counts.
        """
        if not self._usable:
            return range(len(batch))
        tables = tables_of(batch)
        left = [np.asarray(tables.rest, np.int64)]
        for table in tables.tables:
            left.append(table.positions[~self._conforming(batch.memory, table)])
        positions: list[int] = np.sort(np.concatenate(left)).tolist()
        return positions

    def _conforming(self, memory: bytes, table: Table) -> _Bools:
        """Whether each row conforms. Rows that conform are added to the checker's counts."""
        layout = tuple(slot for slot, _ in table.columns.values())
        if layout not in self._plans:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[layout] = self._plan(layout)
        plan = self._plans[layout]
        if plan is None:
            return np.zeros(len(table.positions), np.bool_)
        good = np.ones(len(table.positions), np.bool_)
        columns = [column for _, column in table.columns.values()]
        for number, check in plan.checks:
            good &= check(memory, columns[number])
        examples = int(np.count_nonzero(good))
        for name in plan.absent if examples else ():
            self._checker.absent[name] += examples
        for name in plan.masses:
            self._checker.masses[name].total += examples
        return good

    def _plan(self, layout: Layout) -> _Plan | None:
        slots = {slot.name: number for number, slot in enumerate(layout)}
        checks: list[tuple[int, _ColumnCheck]] = []
        absent: list[str] = []
        masses: list[str] = []
        for feature in self._schema.features:
            place = slots.pop(feature.name, None)
            if place is None:
                if feature.is_required:
                    return None
                absent.append(feature.name)
                continue
            slot = layout[place]
            has_kind = feature.kind is None or KINDS.get(feature.kind) is slot.kind
            is_long = feature.max_values is not None and slot.values > feature.max_values
            is_odd = slot.values < feature.min_values or slot.values % feature.multiple_of
            if not has_kind or is_long or is_odd or feature.distinct is not None:
                return None
            check = _column_check(feature, slot.kind, slot.values)
            if check is None:
                return None
            checks.append((place, check))
            if feature.domain_mass < 1:
                masses.append(feature.name)
        if not slots.keys() <= self._schema.ignored:
            return None
        return _Plan(tuple(checks), tuple(absent), tuple(masses))


def _column_check(feature: SchemaFeature, kind: Kind, count: int) -> _ColumnCheck | None:
    """The check of a column's values; None if they must be checked one by one."""
    domain = feature.checked_domain
    if domain is None:
        return _any_value
    if isinstance(domain, ImageDomain):
        return _any_value if domain.max_bytes is None else _size_check(domain.max_bytes)
    if isinstance(domain, StringDomain):
        return _member_check(domain.allowed)
    if kind is Kind.INT64 and isinstance(domain, IntDomain):
        return _range_check(domain.min, domain.max)
    if kind is Kind.INT64 and isinstance(domain, BoolDomain):
        return _range_check(0, 1)
    if kind is Kind.FLOAT and isinstance(domain, FloatDomain):
        return _float_check(domain, count)
    return None


def _any_value(memory: bytes, column: Column) -> _Bools:
    del memory
    return np.ones(len(column.start), np.bool_)


def _size_check(limit: int) -> _ColumnCheck:
    def check(memory: bytes, column: Column) -> _Bools:
        del memory
        good: _Bools = column.stop - column.start <= limit
        return good

    return check


def _member_check(allowed: frozenset[bytes]) -> _ColumnCheck:
    def check(memory: bytes, column: Column) -> _Bools:
        spans = zip(column.start.tolist(), column.stop.tolist(), strict=True)
        return np.array([memory[start:stop] in allowed for start, stop in spans], np.bool_)

    return check


def _range_check(low: int | None, high: int | None) -> _ColumnCheck:
    least = _INT64.min if low is None else low
    most = _INT64.max if high is None else high

    def check(memory: bytes, column: Column) -> _Bools:
        del memory
        values = column.integers
        good: _Bools = (values >= least) & (values <= most)
        return good

    return check


def _float_check(domain: FloatDomain, count: int) -> _ColumnCheck:
    low = -np.inf if domain.min is None else domain.min
    high = np.inf if domain.max is None else domain.max

    def check(memory: bytes, column: Column) -> _Bools:
        # Every four bytes in a row, at any offset.
        words: NDArray[np.float32] = np.ndarray((len(memory) - 3,), "<f4", memory, strides=(1,))
        values = words[column.start[:, None] + np.arange(0, 4 * count, 4)].astype(np.float64)
        fine = np.isfinite(values) & (values >= low) & (values <= high)
        good: _Bools = fine.all(axis=1)
        return good

    return check

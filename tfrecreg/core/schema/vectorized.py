"""Vectorized pre-filter: marks the records of a batch that certainly conform.

The caller checks the rest one by one; no finding is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.core.example.columns import Column, Layout, layout_of
from tfrecreg.core.example.model import Example, Kind
from tfrecreg.core.records.batch_columns import layout_columns
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

_MAX_LAYOUTS = 6
"""Maximum number of layouts to learn from a shard; optional features make many."""

_MIN_RECORDS = 32
"""Number of records from which arrays are faster than a loop."""

_INT64 = np.iinfo(np.int64)

_Bools = NDArray[np.bool_]

_ColumnCheck = Callable[[bytes, Column], _Bools]
"""Returns for each record whether its values in a column conform."""


class _Plan(NamedTuple):
    """A layout that can conform, and the checks of its values."""

    layout: Layout
    checks: tuple[tuple[int, _ColumnCheck], ...]
    """Checks by number of the slot."""
    absent: tuple[int, ...]
    """Numbers of the schema's features that the layout lacks, all optional."""
    masses: tuple[str, ...]
    """Features whose values are counted."""


class VectorizedCheck:
    """Finds the records of known layouts that conform."""

    def __init__(self, schema: CompiledSchema, checker: Checker) -> None:
        self._schema = schema
        self._checker = checker
        self._plans: dict[Layout, _Plan | None] = {}
        # Columns cannot compare one feature with another.
        self._usable = not (schema.sparse or schema.weighted)

    def remaining(
        self,
        memory: bytes,
        starts: Sequence[int],
        lengths: Sequence[int],
        decode: Callable[[int], Example | None],
    ) -> Sequence[int]:
        """Positions of the records that must be checked one by one.

        The others conform, and are added to the counts of the checker.
        """
        positions: Sequence[int] = range(len(starts))
        if not self._usable or len(positions) < _MIN_RECORDS:
            return positions
        start = np.asarray(starts, dtype=np.int64)
        length = np.asarray(lengths, dtype=np.int64)
        rows = np.arange(len(starts))
        for plan in list(self._plans.values()):
            if plan is not None and len(rows) >= _MIN_RECORDS:
                rows = self._remove_conforming(plan, memory, start, length, rows)
        while len(rows) >= _MIN_RECORDS and len(self._plans) < _MAX_LAYOUTS:
            plan = self._learn(decode(int(rows[0])))
            if plan is None:
                break
            before = len(rows)
            rows = self._remove_conforming(plan, memory, start, length, rows)
            if len(rows) == before:
                break  # the record that the plan was learned from does not conform
        return positions if len(rows) == len(positions) else rows.tolist()

    def _learn(self, example: Example | None) -> _Plan | None:
        """The plan for records like this one, if it is new and there can be one."""
        layout = None if example is None else layout_of(example)
        if layout is None or layout in self._plans:
            return None
        plan = self._plans[layout] = self._plan(layout)
        return plan

    def _plan(self, layout: Layout) -> _Plan | None:
        slots = {slot.name: number for number, slot in enumerate(layout)}
        checks: list[tuple[int, _ColumnCheck]] = []
        absent: list[int] = []
        masses: list[str] = []
        for number, feature in enumerate(self._schema.features):
            place = slots.pop(feature.name, None)
            if place is None:
                if feature.is_required:
                    return None
                absent.append(number)
                continue
            slot = layout[place]
            if not _fits(feature, slot.kind, slot.values) or feature.distinct is not None:
                return None
            check = _column_check(feature, slot.kind, slot.values)
            if check is None:
                return None
            checks.append((place, check))
            if feature.domain_mass < 1:
                masses.append(feature.name)
        if not slots.keys() <= self._schema.ignored:
            return None
        return _Plan(layout, tuple(checks), tuple(absent), tuple(masses))

    def _remove_conforming(
        self,
        plan: _Plan,
        memory: bytes,
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        rows: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """The rows that do not conform by `plan`; the others are counted."""
        found, columns = layout_columns(plan.layout, memory, starts[rows], lengths[rows])
        if not found.size:
            return rows
        good = np.ones(len(found), np.bool_)
        for number, check in plan.checks:
            good &= check(memory, columns[number])
        examples = int(np.count_nonzero(good))
        for number in plan.absent:
            self._checker.count_absent(number, examples)
        for name in plan.masses:
            self._checker.masses[name].total += examples
        return np.delete(rows, found[good])


def _fits(feature: SchemaFeature, kind: Kind, count: int) -> bool:
    """Whether the feature may have that kind and number of values."""
    if feature.kind is not None and KINDS.get(feature.kind) is not kind:
        return False
    if count < feature.min_values or count % feature.multiple_of:
        return False
    return feature.max_values is None or count <= feature.max_values


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

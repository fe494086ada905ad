"""Checking many records of one layout at once: the quick way past all that are in order.

It never finds anything. It tells which records of a batch are certainly in order, and whoever
checks looks at the others one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tfrecreg.example import Example, Kind
from tfrecreg.example.columns import Column, Layout, layout_of, read_columns
from tfrecreg.schema.check import Checker
from tfrecreg.schema.contract import Contract, FeatureRule
from tfrecreg.schema.model import BoolDomain, FloatDomain, IntDomain

__all__ = ["Swift"]

_LAYOUTS = 6
"""Layouts of a shard that are learnt: optional features make many."""

_WORTH_IT = 32
"""Records from which arrays are quicker than a loop."""

_INT64 = np.iinfo(np.int64)

Bools = NDArray[np.bool_]

_Judge = Callable[[bytes, Column], Bools]
"""Says for each record whether the values of one column are in order."""


class _Plan(NamedTuple):
    """A layout that can be in order, and how to see whether the values are."""

    layout: Layout
    judges: tuple[tuple[int, _Judge], ...]
    """By number of the slot, for those whose values matter."""
    absent: tuple[int, ...]
    """Numbers of the contract's features that are not in it, and need not be."""
    masses: tuple[str, ...]
    """Features of it whose values are counted."""


class Swift:
    """Tells which records are in order, for those of a layout that it has seen before.

    Args:
        contract: what records have to be.
        checker: keeps the counts that all records go into.
    """

    def __init__(self, contract: Contract, checker: Checker) -> None:
        self._contract = contract
        self._checker = checker
        self._plans: dict[Layout, _Plan | None] = {}
        # What has to be compared from feature to feature is not for columns.
        self._apart = frozenset(rule.name for rule in contract.features if rule.distinct)
        self._able = not (contract.sparse or contract.weights)

    def rest(
        self,
        memory: bytes,
        starts: Sequence[int],
        lengths: Sequence[int],
        decode: Callable[[int], Example | None],
    ) -> Sequence[int]:
        """Positions of the records that are to be looked at one by one.

        The others are in order, and what is counted of records is counted of them.

        Args:
            memory: holds the payloads.
            starts: where each starts in `memory`.
            lengths: bytes of each.
            decode: gives the example at a position, to learn its layout from.
        """
        left: Sequence[int] = range(len(starts))
        if not self._able or len(left) < _WORTH_IT:
            return left
        start = np.asarray(starts, dtype=np.int64)
        length = np.asarray(lengths, dtype=np.int64)
        rows = np.arange(len(starts))
        for plan in list(self._plans.values()):
            if plan is not None and len(rows) >= _WORTH_IT:
                rows = self._without(plan, memory, start, length, rows)
        while len(rows) >= _WORTH_IT and len(self._plans) < _LAYOUTS:
            plan = self._learn(decode(int(rows[0])))
            if plan is None:
                break
            before = len(rows)
            rows = self._without(plan, memory, start, length, rows)
            if len(rows) == before:
                break  # the very record it was learnt from is not in order
        return left if len(rows) == len(left) else rows.tolist()

    def _learn(self, example: Example | None) -> _Plan | None:
        """The plan for records like this one, where it is new and there can be one."""
        layout = None if example is None else layout_of(example)
        if layout is None or layout in self._plans:
            return None
        plan = self._plans[layout] = self._plan(layout)
        return plan

    def _plan(self, layout: Layout) -> _Plan | None:
        there = {slot.name: number for number, slot in enumerate(layout)}
        judges: list[tuple[int, _Judge]] = []
        absent: list[int] = []
        masses: list[str] = []
        for number, rule in enumerate(self._contract.features):
            place = there.pop(rule.name, None)
            if place is None:
                if rule.required:
                    return None
                absent.append(number)
                continue
            slot = layout[place]
            if not _fits(rule, slot.kind, slot.values) or rule.name in self._apart:
                return None
            judge = _judge(rule, slot.kind, slot.values)
            if judge is None:
                return None
            judges.append((place, judge))
            if rule.min_domain_mass < 1:
                masses.append(rule.name)
        if not there.keys() <= self._contract.ignored:
            return None
        return _Plan(layout, tuple(judges), tuple(absent), tuple(masses))

    def _without(
        self,
        plan: _Plan,
        memory: bytes,
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        rows: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """The rows that `plan` does not show to be in order; the others are counted."""
        found, columns = read_columns(plan.layout, memory, starts[rows], lengths[rows])
        if not found.size:
            return rows
        good = np.ones(len(found), np.bool_)
        for number, judge in plan.judges:
            good &= judge(memory, columns[number])
        examples = int(np.count_nonzero(good))
        for number in plan.absent:
            self._checker.absent_in(number, examples)
        for name in plan.masses:
            self._checker.masses[name].total += examples
        return np.delete(rows, found[good])


def _fits(rule: FeatureRule, kind: Kind, count: int) -> bool:
    """Whether so many values of that kind are what the rule asks for."""
    kinds = {"BYTES": Kind.BYTES, "FLOAT": Kind.FLOAT, "INT": Kind.INT64}
    if rule.kind is not None and kinds.get(rule.kind) is not kind:
        return False
    if count < rule.min_values or count % rule.multiple_of:
        return False
    return rule.max_values is None or count <= rule.max_values


def _judge(rule: FeatureRule, kind: Kind, count: int) -> _Judge | None:
    """How to see that values are in order; None where that takes a closer look."""
    domain = rule.domain
    if rule.is_picture:
        return _anything if rule.max_bytes is None else _no_longer_than(rule.max_bytes)
    if domain is None:
        return _anything
    if isinstance(domain, frozenset):
        return _one_of(domain)
    if kind is Kind.INT64 and isinstance(domain, (IntDomain, BoolDomain)):
        low, high = (0, 1) if isinstance(domain, BoolDomain) else (domain.min, domain.max)
        return _whole(low, high)
    if kind is Kind.FLOAT and isinstance(domain, FloatDomain):
        return _floats(domain, count)
    return None


def _anything(memory: bytes, column: Column) -> Bools:
    del memory
    return np.ones(len(column.start), np.bool_)


def _no_longer_than(limit: int) -> _Judge:
    def judge(memory: bytes, column: Column) -> Bools:
        del memory
        good: Bools = column.stop - column.start <= limit
        return good

    return judge


def _one_of(allowed: frozenset[bytes]) -> _Judge:
    def judge(memory: bytes, column: Column) -> Bools:
        spans = zip(column.start.tolist(), column.stop.tolist(), strict=True)
        return np.array([memory[start:stop] in allowed for start, stop in spans], np.bool_)

    return judge


def _whole(low: int | None, high: int | None) -> _Judge:
    least = _INT64.min if low is None else low
    most = _INT64.max if high is None else high

    def judge(memory: bytes, column: Column) -> Bools:
        del memory
        values = column.integers
        good: Bools = (values >= least) & (values <= most)
        return good

    return judge


def _floats(domain: FloatDomain, count: int) -> _Judge:
    low = -np.inf if domain.min is None else domain.min
    high = np.inf if domain.max is None else domain.max

    def judge(memory: bytes, column: Column) -> Bools:
        # Every four bytes in a row, wherever they start.
        words: NDArray[np.float32] = np.ndarray((len(memory) - 3,), "<f4", memory, strides=(1,))
        values = words[column.start[:, None] + np.arange(0, 4 * count, 4)].astype(np.float64)
        fine = np.isfinite(values) & (values >= low) & (values <= high)
        good: Bools = fine.all(axis=1)
        return good

    return judge

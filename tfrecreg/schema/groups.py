"""Checking features that belong together: sparse ones by their parts, weighted ones by weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from tfrecreg.example import Example, Feature, Kind
from tfrecreg.schema.contract import Contract, SparseRule, WeightRule
from tfrecreg.schema.wording import counted, rule_text
from tfrecreg.suggest import listed
from tfrecreg.text import safe

__all__ = ["Groups", "Mismatch"]

Mismatch = tuple[str, str, str]
"""The name of the feature that is made of others, the message, and what is the case here."""


class Groups:
    """Says how the parts of composite features disagree, and counts in how many examples they are.

    Args:
        contract: what records have to be.
    """

    def __init__(self, contract: Contract) -> None:
        self._sparse = contract.sparse
        self._weights = contract.weights
        self.absent: dict[str, int] = {}
        """In how many examples each sparse feature was missing, where in any."""
        self.required = frozenset(rule.name for rule in contract.sparse if rule.required)

    def __bool__(self) -> bool:
        """Whether there is anything to look at."""
        return bool(self._sparse or self._weights)

    def __call__(self, example: Example) -> Sequence[Mismatch]:
        """What is wrong with the composite features of one example; empty where nothing is."""
        found = [each for rule in self._sparse for each in self._of_sparse(rule, example)]
        return found + [each for rule in self._weights for each in _of_weights(rule, example)]

    def _of_sparse(self, rule: SparseRule, example: Example) -> Iterator[Mismatch]:
        parts = {name: _there(example, name) for name in (*rule.indices, rule.values)}
        missing = [name for name, part in parts.items() if part is None]
        if len(missing) == len(parts):
            self.absent[rule.name] = self.absent.get(rule.name, 0) + 1
            if rule.required:
                yield rule.name, rule_text(rule, "be in every example"), "found none of its parts"
            return
        asks = f"have `{safe(rule.values)}` and {_indices(rule)} together"
        if missing:
            yield rule.name, rule_text(rule, asks), f"{listed(missing)} missing"
            return
        sizes = {name: part.count for name, part in parts.items() if part is not None}
        if len(set(sizes.values())) > 1:
            shown = ", ".join(f"{counted(n, 'value')} in `{safe(k)}`" for k, n in sizes.items())
            yield rule.name, rule_text(rule, "have one index for each value"), f"found {shown}"
            return
        yield from _of_indices(rule, [parts[name] for name in rule.indices])


def _of_indices(rule: SparseRule, parts: Sequence[Feature | None]) -> Iterator[Mismatch]:
    # Of another kind, the feature has a finding of its own.
    columns = [part.values for part in parts if part is not None and part.kind is Kind.INT64]
    if len(columns) != len(parts):
        return
    for name, size, column in zip(rule.indices, rule.sizes, columns, strict=True):
        good = _within(size)
        wrong = [(place, index) for place, index in enumerate(column) if not good(index)]
        if wrong:
            place, index = wrong[0]
            last = "upwards" if size is None else f"to {size - 1}"
            asks = f"have indices from 0 {last} in `{safe(name)}`"
            detail = f"found {index}, value {place} of {len(column)}"
            if len(wrong) > 1:
                detail += f"; {len(wrong)} such values"
            yield rule.name, rule_text(rule, asks), detail
    if rule.is_sorted:
        rows = list(zip(*columns, strict=True))
        for number, (before, after) in enumerate(pairwise(rows), 1):
            if before >= after:
                detail = f"found {_row(after)} behind {_row(before)}, value {number}"
                yield rule.name, rule_text(rule, "have indices that rise"), detail
                return


def _of_weights(rule: WeightRule, example: Example) -> Iterator[Mismatch]:
    values, weights = _there(example, rule.values), _there(example, rule.weights)
    if values is None and weights is None:
        return
    asks = f"have one weight in `{safe(rule.weights)}` for each value of `{safe(rule.values)}`"
    if values is None or weights is None:
        name = rule.values if values is None else rule.weights
        yield rule.name, rule_text(rule, asks), f"`{safe(name)}` missing"
    elif values.count != weights.count:
        found = f"found {counted(weights.count, 'weight')} for {counted(values.count, 'value')}"
        yield rule.name, rule_text(rule, asks), found


def _there(example: Example, name: str) -> Feature | None:
    feature = example.get(name)
    return None if feature is None or feature.kind is Kind.UNSET else feature


def _within(size: int | None) -> Callable[[int], bool]:
    return lambda index: index >= 0 and (size is None or index < size)


def _indices(rule: SparseRule) -> str:
    return listed(rule.indices)


def _row(row: tuple[int, ...]) -> str:
    return str(row[0]) if len(row) == 1 else str(row)

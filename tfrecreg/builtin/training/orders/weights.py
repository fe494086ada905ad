"""Draws with replacement, by weights: an order in which some records come more often.

The weights become integers, so that sums are exact: w of n records, divided by the largest, times
2^k, rounded, and 1 at least where w > 0; k is 53 less the bits of n, and 32 at most. Draw number i
takes a fraction f of 53 bits from the mixing function of
:mod:`tfrecreg.builtin.training.orders.block_order`, over i times the golden ratio and a key, and
then the record
in which f times the sum of all weights lies. So any draw is computed alone, on every machine alike.

``docs/formats.md`` has the formula. It never changes after 1.0, since saved states depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from blake3 import blake3

from tfrecreg.builtin.training.orders.block_order import mix
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.core.values.errors import UsageError
from tfrecreg.core.values.text import safe

ValuesOf: TypeAlias = Callable[[str], "npt.NDArray[np.float64]"]
"""Gives the value of an SQL expression for each record of the shards, shape (n,)."""

GIVEN = "numbers"
"""The name, in messages and states, of weights that a program gave as numbers."""
_BY_CLASS = "class"
_CLASS = "dense_rank() OVER (ORDER BY label)"
_PREFIX = "tfrecreg draws v1"
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TO_53_BITS = np.uint64(9)
_BITS = 53
"""Integers below 2^53 are exact as float64."""
_MOST_BITS = 32


class Weights:
    """How often each record is drawn, in relation to the others. Picklable."""

    def __init__(self, values: npt.ArrayLike, by: str, name: str) -> None:
        self.by = by
        hint = "a list of numbers, `class`, or an expression in SQL"
        try:
            numbers = np.asarray(values, np.float64)
        except (TypeError, ValueError):
            shown = safe(repr(values), limit=60)
            raise UsageError(
                f"weights should be one number per record, found `{shown}`", hint=hint
            ) from None
        if numbers.ndim != 1:
            raise UsageError(
                f"weights should be one number per record, found shape {numbers.shape}", hint=hint
            )
        bad = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
        if len(bad):
            found = numbers[bad[0]]
            shown = "NULL" if np.isnan(found) else f"{found:g}"
            raise UsageError(
                f"the weight of record {bad[0]} of `{name}` is {shown}, by `{safe(by, limit=200)}`",
                hint="weights are finite and not negative; coalesce(x, 0) gives 0 for NULL",
            )
        largest = float(numbers.max(initial=0.0))
        if not largest:
            raise UsageError(
                f"no record of `{name}` has a weight above zero, by `{safe(by, limit=200)}`",
                hint="a record of weight 0 is never drawn",
            )
        bits = min(_BITS - len(numbers).bit_length(), _MOST_BITS)
        whole = np.rint(numbers / largest * float(1 << bits)).astype(np.int64)
        whole[(whole == 0) & (numbers > 0)] = 1
        self.ends: npt.NDArray[np.int64] = np.cumsum(whole)
        """Sums of the weights of all records up to each, as integers; shape (n,)."""

    def __len__(self) -> int:
        return len(self.ends)

    @cached_property
    def digest(self) -> str:
        """Hex digest of the integers. States of orders hold it."""
        return blake3(self.ends.astype("<i8").tobytes()).hexdigest(16)


def weights_of(
    weights: str | npt.ArrayLike, name: str, selection: Selection, ask: ValuesOf | None
) -> Weights:
    """The weights of the records of a source: by an expression, by class, or as they are given."""
    if not isinstance(weights, str):
        return Weights(weights, GIVEN, name)
    if ask is None:
        raise UsageError(
            f"`weights={weights!r}` needs the catalog, which a copy of a source lacks",
            hint="make the order where the source was opened: orders can be pickled",
        )
    chosen = selection.numbers(np.arange(len(selection), dtype=np.int64))
    if weights != _BY_CLASS:
        return Weights(ask(weights)[chosen], weights, name)
    try:
        ranks = ask(_CLASS)[chosen]
    except UsageError as error:
        raise UsageError(
            f'no record of `{name}` has a class, which `weights="class"` needs',
            hint='weight by another column: `weights="boxes"`',
        ) from error
    _, classes, counts = np.unique(ranks, return_inverse=True, return_counts=True)
    return Weights(1.0 / counts[classes], weights, name)


class Draws:
    """The records that are drawn in an epoch, by the number of the draw."""

    def __init__(self, weights: Weights, seed: int, epoch: int) -> None:
        self._ends = weights.ends
        text = f"{_PREFIX}\n{seed}\n{epoch}\n{weights.digest}\n"
        self._key = np.frombuffer(blake3(text.encode("ascii")).digest(8), "<u8")[0]

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The records of these draws."""
        total = self._ends[-1] if len(self._ends) else np.int64(0)
        bits = mix(places.astype(np.uint64) * _GOLDEN, self._key) >> _TO_53_BITS
        points = np.floor(bits * 2.0**-_BITS * float(total)).astype(np.int64)
        # A fraction next to 1 may be rounded to the sum itself, which is in no record.
        found: npt.NDArray[np.int64] = np.searchsorted(
            self._ends, np.minimum(points, total - 1), side="right"
        ).astype(np.int64)
        return found

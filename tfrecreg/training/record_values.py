"""Numbers for the records of a source, as the caller of `order` gives them or the catalog says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrecreg.errors import UsageError
from tfrecreg.training.length_buckets import LengthBuckets
from tfrecreg.training.packing import Packs
from tfrecreg.training.selection import Selection
from tfrecreg.training.weights import GIVEN, Weights

ValuesOf: TypeAlias = Callable[[str], "npt.NDArray[np.float64]"]
"""Gives the value of an SQL expression for each record of the shards, shape (n,)."""
LengthsLike: TypeAlias = "str | Callable[[Any], float] | npt.ArrayLike"

BY_CLASS = "class"
_CLASS = "dense_rank() OVER (ORDER BY label)"


class RecordValues(NamedTuple):
    """Asks for numbers of the records of a source."""

    name: str
    """Of the source, escaped."""
    selection: Selection
    """Its records."""
    ask: ValuesOf | None
    """None in a copy of the source, which has no registry."""

    def weights(self, weights: str | npt.ArrayLike) -> Weights:
        """Weights by an expression, by class, or as they are given.

        Raises:
            UsageError, RefusedError, MissingExtraError: as `DataSource.order`.
        """
        if not isinstance(weights, str):
            return Weights(weights, GIVEN, self.name)
        if weights != BY_CLASS:
            return Weights(self._of("weights", weights, weights), weights, self.name)
        try:
            ranks = self._of("weights", weights, _CLASS)
        except UsageError as error:
            if self.ask is None:
                raise
            raise UsageError(
                f'no record of `{self.name}` has a class, which `weights="class"` needs',
                hint='weight by another column: `weights="boxes"`',
            ) from error
        _, classes, counts = np.unique(ranks, return_inverse=True, return_counts=True)
        return Weights(1.0 / counts[classes], weights, self.name)

    def buckets(
        self,
        lengths: LengthsLike,
        buckets: int | Sequence[float],
        global_batch: int,
        varying: Collection[str],
    ) -> LengthBuckets:
        """Buckets by a feature, by an expression, or by lengths as they are given.

        Args:
            lengths: as for `DataSource.order`, but no function.
            buckets: how many, or where the next one begins.
            global_batch: the size of batches.
            varying: features whose number of values varies.

        Raises:
            UsageError, RefusedError, MissingExtraError: as `DataSource.order`.
        """
        numbers, by = self._lengths("bucket_by", lengths, varying)
        return LengthBuckets(numbers, by, buckets, global_batch, self.name)

    def packs(
        self, lengths: LengthsLike, pack_to: int, window: int, varying: Collection[str]
    ) -> Packs:
        """Rows of so many values, by lengths as those of buckets.

        Raises:
            UsageError, RefusedError, MissingExtraError: as `DataSource.order`.
        """
        numbers, by = self._lengths("by", lengths, varying)
        return Packs(numbers, by, pack_to, window, self.name)

    def _lengths(
        self, argument: str, lengths: LengthsLike, varying: Collection[str]
    ) -> tuple[npt.ArrayLike, str]:
        if not isinstance(lengths, str):
            return lengths, GIVEN  # type: ignore[return-value]
        expression = f'"{lengths}.count"' if lengths in varying else lengths
        return self._of(argument, lengths, expression), lengths

    def _of(self, argument: str, given: str, expression: str) -> npt.NDArray[np.float64]:
        if self.ask is None:
            raise UsageError(
                f"`{argument}={given!r}` needs the catalog, which a copy of a source lacks",
                hint="make the order where the source was opened: orders can be pickled",
            )
        chosen = self.selection.numbers(np.arange(len(self.selection), dtype=np.int64))
        return self.ask(expression)[chosen]

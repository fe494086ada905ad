"""Numbers for the records of a source, as the caller of `order` gives them or the catalog says."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from tfrecreg.errors import UsageError
from tfrecreg.training.selection import Selection
from tfrecreg.training.weights import GIVEN, Weights

ValuesOf: TypeAlias = Callable[[str], "npt.NDArray[np.float64]"]
"""Gives the value of an SQL expression for each record of the shards, shape (n,)."""

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
            return Weights(self._of(weights, weights), weights, self.name)
        try:
            ranks = self._of(weights, _CLASS)
        except UsageError as error:
            if self.ask is None:
                raise
            raise UsageError(
                f'no record of `{self.name}` has a class, which `weights="class"` needs',
                hint='weight by another column: `weights="boxes"`',
            ) from error
        _, classes, counts = np.unique(ranks, return_inverse=True, return_counts=True)
        return Weights(1.0 / counts[classes], weights, self.name)

    def _of(self, given: str, expression: str) -> npt.NDArray[np.float64]:
        if self.ask is None:
            raise UsageError(
                f"`weights={given!r}` needs the catalog, which a copy of a source lacks",
                hint="make the order where the source was opened: orders can be pickled",
            )
        chosen = self.selection.numbers(np.arange(len(self.selection), dtype=np.int64))
        return self.ask(expression)[chosen]

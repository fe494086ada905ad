"""Numbers of records that know their epoch, which decides the random crops of images."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, SupportsIndex


class InEpoch(int):
    """The number of a record with the epoch whose crop it gets. Picklable.

    A sampler gives them to workers, which know no epoch.
    """

    epoch: int

    def __new__(cls, number: int, epoch: int) -> InEpoch:
        made = super().__new__(cls, number)
        made.epoch = epoch
        return made

    def __reduce__(self) -> tuple[type[InEpoch], tuple[int, int]]:
        return InEpoch, (int(self), self.epoch)


class HasEpochs(Protocol):
    """A source whose elements differ by epoch."""

    def with_epoch(self, epoch: int) -> HasEpochs:
        """The same records in another epoch."""
        ...

    def elements_or_none(self, records: Iterable[SupportsIndex]) -> list[Any]:
        """The elements with these numbers."""
        ...


def elements_in_epochs(source: HasEpochs, records: Sequence[SupportsIndex]) -> list[Any] | None:
    """The elements with these numbers, each in its epoch; None if no number says one."""
    epochs = [each.epoch if isinstance(each, InEpoch) else None for each in records]
    if set(epochs) <= {None}:
        return None
    found: list[Any] = [None] * len(records)
    for epoch in set(epochs):
        places = [at for at, each in enumerate(epochs) if each == epoch]
        numbers = [int(operator.index(records[at])) for at in places]
        chosen = source if epoch is None else source.with_epoch(epoch)
        for at, element in zip(places, chosen.elements_or_none(numbers), strict=True):
            found[at] = element
    return found

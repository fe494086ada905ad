"""Reading ahead along an order, of shards behind URLs that are read through a cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from tfrecreg.builtin.training.orders.order import Order
from tfrecreg.builtin.training.selection import Selection
from tfrecreg.core.records.reading.shards import ShardRecords

if TYPE_CHECKING:
    from tfrecreg.core.storage.far.far_files import FarFiles

PART = 64
"""Number of records of a part, for reading ahead one by one."""


def cache_of(place: Sequence[str | int] | None) -> FarFiles | None:
    """The cache of a source from another process; None without one."""
    if place is None:
        return None
    from tfrecreg.core.storage.far.far_files import far_files

    folder, limit = place
    return far_files(str(folder), limit)


def read_ahead(
    shards: ShardRecords,
    selection: Selection,
    order: Order,
    numbers: Iterator[list[SupportsIndex]],
) -> Iterator[list[SupportsIndex]]:
    """The same lists of numbers; where there is a cache, those that follow are fetched into it."""
    far = shards.far
    if far is None:
        return numbers
    from tfrecreg.core.storage.far.ahead import ahead

    # By blocks, what is beside a record is wanted soon, while all that are mixed fit.
    mixed = 0 if order.blocks is None else order.blocks.mixed * shards.mean_bytes
    soon = order.blocks is not None and far.fits(mixed)

    def request(part: list[SupportsIndex]) -> int:
        positions = np.array(part, np.int64)
        return shards.request(selection.numbers(positions).tolist(), soon=soon)

    return ahead(numbers, request)

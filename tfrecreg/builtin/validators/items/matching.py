"""Which records hold which items: rows with equal digests, one range of digests at a time.

Beside the range, a byte is held for each record and each item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.validators.duplicates.sorted_runs import Rows as RunRows
from tfrecreg.builtin.validators.duplicates.sorted_runs import Run, read_in_order
from tfrecreg.builtin.validators.items.visitor import ItemRows
from tfrecreg.core.storage.interface import Storage

_Numbers = npt.NDArray[np.int64]
NOT, BY_BYTES, BY_NAME, BY_NAME_ALONE = 0, 1, 2, 3
"""How a record or an item was matched: not; by the bytes of its image; by a name, and its image has
other bytes; by a name, and one of both has no image.
"""


_Digests = npt.NDArray[np.void]
_Take = Callable[[_Digests, _Numbers, _Digests, _Numbers], None]


class Matching:
    """Matches records with items."""

    def __init__(self, storage: Storage, parts: Sequence[ItemRows], items: ItemRows) -> None:
        self._storage = storage
        self._parts = parts
        self._items = items
        self._starts = np.cumsum([0, *(part.records for part in parts)], dtype=np.int64)
        total = int(self._starts[-1])
        self.records = np.zeros(total, np.uint8)
        """How each record was matched, in the order of shards."""
        self.items = np.zeros(items.records, np.uint8)
        """How each item was matched, in the order of the source."""
        self._has_image = [np.zeros(total, np.bool_), np.zeros(items.records, np.bool_)]

    def run(self) -> None:
        """Match by bytes, then what is left by names."""
        self._merge([part.images for part in self._parts], self._items.images, self._by_bytes)
        for way, names in enumerate(self._items.names):
            self._merge([part.names[way] for part in self._parts], names, self._by_name)

    def place(self, record: int) -> tuple[int, int]:
        """Number of the shard of a record, and its number there."""
        shard = int(np.searchsorted(self._starts, record, side="right")) - 1
        return shard, record - int(self._starts[shard])

    def _merge(self, records: Sequence[Sequence[Run]], items: Sequence[Run], take: _Take) -> None:
        flat = [(int(self._starts[at]), run) for at, runs in enumerate(records) for run in runs]
        count = len(flat)
        flat += [(0, run) for run in items]
        for rows in read_in_order(self._storage, [run for _, run in flat]):
            left = _numbers(flat[:count], rows[:count])
            right = _numbers(flat[count:], rows[count:])
            take(*left, *right)

    def _by_bytes(
        self,
        digests: _Digests,
        records: _Numbers,
        known: _Digests,
        items: _Numbers,
    ) -> None:
        self._has_image[0][records] = True
        self._has_image[1][items] = True
        self.records[records[np.isin(digests, known)]] = BY_BYTES
        self.items[items[np.isin(known, digests)]] = BY_BYTES

    def _by_name(
        self,
        digests: _Digests,
        records: _Numbers,
        known: _Digests,
        items: _Numbers,
    ) -> None:
        """Match by names that one item has alone, and one record of those that are left."""
        free = self.records[records] == NOT
        digests, records = _once(digests[free], records[free])
        known, items = _once(known, items)
        free = self.items[items] == NOT
        known, items = known[free], items[free]
        _, one, other = np.intersect1d(digests, known, return_indices=True)
        records, items = records[one], items[other]
        both = self._has_image[0][records] & self._has_image[1][items]
        how = np.where(both, BY_NAME, BY_NAME_ALONE).astype(np.uint8)
        self.records[records], self.items[items] = how, how


def _numbers(runs: Sequence[tuple[int, Run]], rows: Sequence[RunRows]) -> tuple[_Digests, _Numbers]:
    """The digests of the rows of some runs, as one value each, and the numbers of their records."""
    pairs = [(start + run.first, each) for (start, run), each in zip(runs, rows, strict=True)]
    pairs = [pair for pair in pairs if len(pair[1])]
    if not pairs:
        return np.empty(0, "V16"), np.empty(0, np.int64)
    numbers = np.concatenate([first + each["record"].astype(np.int64) for first, each in pairs])
    halves = np.empty((len(numbers), 2), ">u8")
    halves[:, 0] = np.concatenate([each["high"] for _, each in pairs])
    halves[:, 1] = np.concatenate([each["low"] for _, each in pairs])
    return halves.view("V16").reshape(-1), numbers


def _once(digests: _Digests, numbers: _Numbers) -> tuple[_Digests, _Numbers]:
    """The rows whose digest no other row has."""
    _, first, counts = np.unique(digests, return_index=True, return_counts=True)
    alone = first[counts == 1]
    return digests[alone], numbers[alone]

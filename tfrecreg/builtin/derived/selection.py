"""Selects the records that a derived dataset takes from its parents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.derived.parents import Ancestor, DerivedOptions, share_of
from tfrecreg.builtin.derived.schemas import Classes, classes_in
from tfrecreg.core.build.sources.deal import key_hash
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.records.index import Index
from tfrecreg.core.values.errors import DamagedRecordError

_Numbers = npt.NDArray[np.int64]
"""Record numbers in a shard, in ascending order."""

_SAMPLE = b"tfrecreg derived sample v1\0"
_LIMIT = b"tfrecreg derived limit v1\0"
_HASHES = 1 << 64
_TOGETHER = 4 << 20
"""Approximate size in bytes of the payloads that are read at once to find classes."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The records that are taken from one shard."""

    parent: int
    shard: int
    index: Index
    numbers: _Numbers


class RecordSelection:
    """Chooses the records, and counts the records whose classes are all left out."""

    def __init__(
        self, parents: Sequence[Ancestor], classes: Classes, options: DerivedOptions
    ) -> None:
        self._parents = parents
        self._classes = classes
        self._options = options
        self._share = int(share_of(options.sample) * _HASHES)
        drops = any(
            number is None
            for changes in classes.by_parent
            for change in changes
            for number in change.numbers.values()
        )
        self._reads_classes = drops or options.limit is not None
        self.left_out: Counter[str] = Counter()
        """Per split, the number of records whose classes are all left out."""

    def taken(self) -> Iterator[Taken]:
        if self._options.limit is not None:
            yield from self._limited(self._sampled(), self._options.limit)
            return
        for each in self._sampled():
            if self._reads_classes:
                classes = self._classes_of(each)
                kept = [number for number, found in classes if found is not None]
                yield replace(each, numbers=np.array(kept, np.int64))
            else:
                yield each

    def _sampled(self) -> Iterator[Taken]:
        for place, parent in enumerate(self._parents):
            parent.expect_here()
            matching: list[_Numbers] | None = None
            if self._options.where is not None:
                # Needs DuckDB, which only a condition uses.
                from tfrecreg.builtin.query.where import matching_records

                matching = matching_records(parent.target(), self._options.where, listed=True)
            for number, shard in enumerate(parent.shards):
                index = parent.index(shard)
                numbers = np.arange(len(index)) if matching is None else matching[number]
                if self._share < _HASHES:
                    hashes = (key_hash(_SAMPLE, index.key(each)) for each in numbers.tolist())
                    drawn = [each < self._share for each in hashes]
                    numbers = numbers[np.array(drawn, bool)]
                yield Taken(place, number, index, numbers)

    def _limited(self, found: Iterable[Taken], limit: int) -> Iterator[Taken]:
        """Up to `limit` records per class and split: the records whose keys have the lowest hashes.

        A record of several classes is taken unless all of them have reached `limit`. All records
        without a class count as one class.
        """
        indexes: dict[tuple[int, int], Index] = {}
        splits: dict[str, list[tuple[int, int, int, int, frozenset[tuple[str, int]]]]] = {}
        for each in found:
            indexes[each.parent, each.shard] = each.index
            split = self._parents[each.parent].shards[each.shard].split
            candidates = splits.setdefault(split, [])
            for number, classes in self._classes_of(each):
                if classes is not None:
                    order = key_hash(_LIMIT, each.index.key(number))
                    candidates.append((order, each.parent, each.shard, number, classes))
        chosen: dict[tuple[int, int], list[int]] = {}
        for candidates in splits.values():
            full: Counter[tuple[str, int]] = Counter()
            candidates.sort(key=lambda each: each[:4])
            for _, parent, shard, number, classes in candidates:
                counted = classes or {("", 0)}
                if any(full[each] < limit for each in counted):
                    full.update(counted)
                    chosen.setdefault((parent, shard), []).append(number)
        for (parent, shard), index in indexes.items():
            numbers = np.array(sorted(chosen.get((parent, shard), ())), np.int64)
            yield Taken(parent, shard, index, numbers)

    def _classes_of(self, taken: Taken) -> Iterator[tuple[int, frozenset[tuple[str, int]] | None]]:
        """The number and the classes of each record. None means that the record is left out."""
        parent = self._parents[taken.parent]
        shard = parent.shards[taken.shard]
        changes = self._classes.by_parent[taken.parent]
        with parent.records(shard, taken.index) as records:
            for numbers in _together(taken):
                for number, payload in zip(numbers, records.read_each(numbers), strict=True):
                    if isinstance(payload, DamagedRecordError):
                        raise parent.damaged(shard, payload.message, number)
                    classes = classes_in(decode_or_none(payload) or {}, changes)
                    if classes is None:
                        self.left_out[shard.split] += 1
                    yield number, None if classes is None else frozenset(classes)


def _together(taken: Taken) -> Iterator[list[int]]:
    """Groups of record numbers. The payloads of a group have about :data:`_TOGETHER` bytes."""
    stretch: list[int] = []
    size = 0
    for number in taken.numbers.tolist():
        stretch.append(number)
        size += int(taken.index.lengths[number])
        if size > _TOGETHER:
            yield stretch
            stretch, size = [], 0
    if stretch:
        yield stretch

"""The records that a derived dataset takes of its parents."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfrecreg.builtin.derived.parents import (
    Ancestor,
    DerivedOptions,
    ParentShard,
    ancestor_target,
    damaged_record,
    expect_shards_here,
    share_of,
)
from tfrecreg.builtin.derived.schemas import Classes, classes_in
from tfrecreg.core.example.decode import decode_or_none
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reading.access import Records
from tfrecreg.core.records.reading.offsets import RecordOffsets
from tfrecreg.core.storage.interface import Readable
from tfrecreg.core.values.errors import DamagedRecordError, ManifestError, RawDataError

_Numbers = npt.NDArray[np.int64]
"""Numbers of records of a shard, ascending."""

_SAMPLE = b"tfrecreg derived sample v1\0"
_LIMIT = b"tfrecreg derived limit v1\0"
_HASHES = 1 << 64
_TOGETHER = 4 << 20
"""Bytes of payloads that are read at once for their classes."""


@dataclass(frozen=True, slots=True)
class Taken:
    """The records that are taken of one shard."""

    parent: int
    """Number of the parent, from 0."""
    shard: int
    """Number of the shard in the parent, from 0."""
    index: Index
    numbers: _Numbers


class RecordSelection:
    """Finds the records, and counts those of classes that are left out."""

    def __init__(
        self, raw: Readable, parents: Sequence[Ancestor], classes: Classes, options: DerivedOptions
    ) -> None:
        self._raw = raw
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
        """Records whose classes are all left out, by split."""

    def taken(self) -> Iterator[Taken]:
        """The records, shard by shard."""
        found = self._sampled()
        if self._options.limit is None:
            yield from (
                (self._without_classes(each) if self._reads_classes else each) for each in found
            )
        else:
            yield from self._limited(found, self._options.limit)

    def _sampled(self) -> Iterator[Taken]:
        for place, parent in enumerate(self._parents):
            expect_shards_here(self._raw, parent)
            matching = self._matching(parent)
            for number, shard in enumerate(parent.shards):
                index = _index(self._raw, parent, shard)
                numbers = np.arange(len(index)) if matching is None else matching[number]
                if self._share < _HASHES:
                    drawn = [
                        _hash(_SAMPLE, index.key(each)) < self._share for each in numbers.tolist()
                    ]
                    numbers = numbers[np.array(drawn, bool)]
                yield Taken(place, number, index, numbers)

    def _matching(self, parent: Ancestor) -> list[_Numbers] | None:
        if self._options.where is None:
            return None
        from tfrecreg.builtin.query.where import matching_records  # DuckDB, for a condition alone

        return matching_records(
            ancestor_target(self._raw, parent), self._options.where, listed=True
        )

    def _without_classes(self, taken: Taken) -> Taken:
        kept = [number for number, classes in self._classes_of(taken) if classes is not None]
        return Taken(taken.parent, taken.shard, taken.index, np.array(kept, np.int64))

    def _limited(self, found: Iterable[Taken], limit: int) -> Iterator[Taken]:
        """As many records of each class in each split as `limit` says, the first by their hashes.

        A record of several classes is taken while one of them is not full. Records without a class
        count as one.
        """
        indexes: dict[tuple[int, int], Index] = {}
        splits: dict[str, list[tuple[int, int, int, int, frozenset[tuple[str, int]]]]] = {}
        for each in found:
            indexes[each.parent, each.shard] = each.index
            split = self._parents[each.parent].shards[each.shard].split
            candidates = splits.setdefault(split, [])
            for number, classes in self._classes_of(each):
                if classes is not None:
                    order = _hash(_LIMIT, each.index.key(number))
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
        """The classes of each record; None for one that is left out with them."""
        parent = self._parents[taken.parent]
        shard = parent.shards[taken.shard]
        changes = self._classes.by_parent[taken.parent]
        with located_records(self._raw, shard, taken.index) as records:
            for numbers in _together(taken):
                for number, payload in zip(numbers, records.read_each(numbers), strict=True):
                    if isinstance(payload, DamagedRecordError):
                        raise damaged_record(parent, shard, number, payload.message)
                    classes = classes_in(decode_or_none(payload) or {}, changes)
                    if classes is None:
                        self.left_out[shard.split] += 1
                    yield number, None if classes is None else frozenset(classes)


def located_records(raw: Readable, shard: ParentShard, index: Index) -> Records:
    """The records of a shard by number, by its index, which was held against the manifest."""
    entry = raw.stat(shard.path, follow="all")
    places = RecordOffsets(
        shard.size,
        entry.mtime_ns if entry is not None else 0,
        index.offsets(),
        index.lengths.astype(np.int64),
        index.members,
        bool(index.members),
    )
    return Records.located(raw, shard.path, places, name=shard.path)


def _index(raw: Readable, parent: Ancestor, shard: ParentShard) -> Index:
    try:
        index = load_index(raw, shard.index, blake3_hex=shard.index_blake3)
    except ManifestError as error:
        raise RawDataError(
            f"an index of the parent `{parent.name}` is damaged: {error.message}",
            hint=f"tfrecreg repair {parent.name}",
        ) from None
    if (len(index), index.stream_bytes) != (shard.records, shard.stream):
        raise RawDataError(
            f"an index of the parent `{parent.name}` belongs to another shard: expected "
            f"{shard.records:,} records, found {len(index):,}",
            hint=f"tfrecreg check {parent.name}",
        )
    return index


def _together(taken: Taken) -> Iterator[list[int]]:
    """The numbers in stretches of about :data:`_TOGETHER` bytes."""
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


def _hash(domain: bytes, key: str) -> int:
    """A number below 2^64 that depends on the key alone, so other keys do not change it."""
    name = key.encode("utf-8", "surrogateescape")
    return int.from_bytes(hashlib.sha256(domain + name).digest()[:8], "big")

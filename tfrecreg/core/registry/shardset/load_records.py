"""The records of a split by number, and the fault of a record that could not be read."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from tfrecreg.core.check.scan.interface import Shard
from tfrecreg.core.records.batch import Fault, RecordBatch
from tfrecreg.core.records.index import Index, load_index
from tfrecreg.core.records.reader import scan
from tfrecreg.core.registry.manifest import ShardEntry
from tfrecreg.core.storage.raw import asked
from tfrecreg.core.values.errors import MissingFileError, RefusedError, TfrecregError, UsageError
from tfrecreg.core.values.text import safe


class PayloadFault(NamedTuple):
    """What is wrong with a payload: a sentence around the name of its record."""

    before: str
    after: str


DamageSearch: TypeAlias = Callable[[bytes], PayloadFault | None]
"""Finds the fault of a payload; None for a valid one."""


class SplitRecords:
    """The records of splits, numbered through all of their shards."""

    def __init__(self, shards: Sequence[Shard], name: str) -> None:
        self._all = [(each, _entry(each)) for each in shards]
        self._shards = [(each, entry) for each, entry in self._all if entry.records]
        self._name = name
        self._starts = [0, *accumulate(self.sizes)]
        self._indexes: dict[int, Index] = {}

    @property
    def total(self) -> int:
        """Records of the split."""
        return self._starts[-1]

    @property
    def starts(self) -> Sequence[int]:
        """The number of the first record of each of :attr:`paths`, and after them the total."""
        return self._starts

    @property
    def sizes(self) -> list[int]:
        """Records of each of :attr:`paths`."""
        return [entry.records for _, entry in self._shards]

    @property
    def paths(self) -> list[bytes]:
        """The shards that have records, as the file system knows them."""
        return [os.fsencode(f"{each.storage.root}/{each.path}") for each, _ in self._shards]

    def expect_whole(self) -> None:
        """Refuse shards that cannot be opened or do not have their size. Reads none of them."""
        in_store = not all(each.storage.is_local for each, _ in self._all)
        sizes = asked(_size, [each for each, _ in self._all], in_store=in_store)
        found = [(entry, size) for (_, entry), size in zip(self._all, sizes, strict=True)]
        missing = [entry for entry, size in found if size is None]
        altered = [each for each in found if each[1] not in (None, each[0].bytes)]
        hint = f"`tfrecreg check {self._name}` names them all"
        if missing:
            raise UsageError(
                f"{self._some(missing)} are not here; one is `{safe(missing[0].path)}`", hint=hint
            )
        if altered:
            entry, size = altered[0]
            raise RefusedError(
                f"{self._some(altered)} differ in size from the manifest; one is "
                f"`{safe(entry.path)}`, which should have {entry.bytes} bytes and has {size}",
                hint=hint,
            )

    def _some(self, shards: Sequence[object]) -> str:
        split = safe(self._all[0][0].split)
        return f"{len(shards)} of {len(self._all)} shards of the split `{split}` of `{self._name}`"

    def first_payload(self) -> bytes | None:
        """The payload of the first record; None if it is missing or damaged."""
        for shard, _ in self._shards:
            first = next(scan(shard.storage, shard.path), None)
            return first.payload(0) if isinstance(first, RecordBatch) and first.whole else None
        return None

    def named(self, number: int) -> str:
        """The record with this number in the split: its number in its shard, and the shard."""
        _, entry, record = self._place(number)
        return f"record {record} of `{safe(entry.path, limit=1000)}` of {self._name}"

    def key(self, number: int) -> str:
        """The end of a sentence with its key; empty if the index lacks it."""
        shard, entry, record = self._place(number)
        if not entry.index:
            return ""
        try:
            index = load_index(shard.storage, entry.index)
            return f"; its key is `{safe(index.key(record), limit=200)}`"
        except (TfrecregError, IndexError):
            return ""

    def why_more(self, number: int) -> str:
        """Error for a shard with more records than this number."""
        _, entry, _ = self._place(number)
        return self._fault_text(entry, f"should have {entry.records} records, it has more")

    def why_lost(self, numbers: Iterable[int], look: DamageSearch) -> str:
        """Why records are missing, in one sentence about the first faulty one."""
        by_shard: dict[int, set[int]] = {}
        for number in numbers:
            _, _, record = self._place(number)
            by_shard.setdefault(number - record, set()).add(record)
        for start, wanted in sorted(by_shard.items()):
            first = start + min(wanted)
            try:
                fault = self._fault(start, wanted, look)
            except TfrecregError as error:
                return f"{self.named(first)} cannot be read: {error.message}{self.key(first)}"
            if fault:
                return fault
        return f"{self.named(first)} was not read, although it is intact now{self.key(first)}"

    def _fault(self, start: int, wanted: Container[int], look: DamageSearch) -> str:
        """By the scanner, which reads the shard from its beginning: it happens once."""
        shard, entry, _ = self._place(start)
        count = 0
        for event in scan(shard.storage, shard.path):
            if isinstance(event, Fault):
                at = 0 if event.record is None else event.record
                number = start + min(at, entry.records - 1)
                why = f"{event.code}: {event.detail}"
                return f"{self.named(number)} is damaged: {why}{self.key(number)}"
            if isinstance(event, RecordBatch):
                count = event.first + len(event)
                for position in range(len(event)):
                    if not event.whole or event.first + position not in wanted:
                        continue
                    fault = look(event.payload(position))
                    if fault is not None:
                        number = start + event.first + position
                        named = f"{fault.before}{self.named(number)}{fault.after}"
                        return f"{named}{self.key(number)}"
        if count != entry.records:
            return self._fault_text(entry, f"should have {entry.records} records, it has {count}")
        return ""

    def find_key(self, number: int) -> str:
        """The key of a record."""
        shard, entry, record = self._place(number)
        index = self._indexes.get(number - record)
        if index is None:
            index = self._indexes[number - record] = load_index(shard.storage, entry.index)
        return index.key(record)

    @property
    def have_keys(self) -> bool:
        """Whether every shard has an index, which holds the keys."""
        return all(entry.index for _, entry in self._shards)

    @property
    def mean_bytes(self) -> int:
        """Mean size of a payload, in bytes, rounded up."""
        return -(-sum(entry.payload_bytes for _, entry in self._shards) // max(1, self.total))

    def _fault_text(self, entry: ShardEntry, fault: str) -> str:
        return f"`{safe(entry.path)}` of {self._name} {fault}: `tfrecreg check {self._name}`"

    def _place(self, number: int) -> tuple[Shard, ShardEntry, int]:
        at = bisect_right(self._starts, number, hi=len(self._shards)) - 1
        return *self._shards[at], number - self._starts[at]


def _entry(shard: Shard) -> ShardEntry:
    assert shard.entry is not None
    return shard.entry


def _size(shard: Shard) -> int | None:
    with suppress(MissingFileError), shard.storage.open(shard.path) as reader:
        return reader.size
    return None
